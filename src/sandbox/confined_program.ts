/**
 * Confines a program that is not a module to certain files.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { canKeep } from "./_keeper.ts";
import {
  bubblewrapArgs,
  lacking,
  type Layer,
  type OsLayerOptions,
  OsLayers,
  tried,
} from "./_os_layer.ts";
import { openPrivateFolder, type PrivateFolder } from "./_private.ts";
import type { Program } from "./process.ts";
import type { Reach } from "./boot/reach.ts";

export { openPrivateFolder };
export type { Layer, OsLayerOptions, PrivateFolder, Reach };

/**
 * Finds the layer that can confine programs on this machine. Throws if the person requires one and
 * there is none.
 */
export async function programLayer(options: OsLayerOptions, reach: Reach): Promise<Layer> {
  const begin = async (layer: Layer) => {
    if (layer.kind !== "landlock") return layer;
    if (!canKeep()) throw lacking("no landlock: no program can be kept");
    const { ok, text } = await tried("/bin/sh", ["-c", ":"], { reach });
    if (ok) return layer;
    throw lacking(text.trim().slice(0, 200) || "no landlock");
  };
  return await new OsLayers(options).start(begin).catch((error) => {
    if (!(error instanceof PmlError)) throw error;
    const { code, message, hint } = error;
    throw new PmlError(code, message.replace("run modules", "run install scripts"), { hint });
  });
}

/** Returns a program that can read and write nothing but `reach`, as its layer starts it. */
export function confinedProgram(
  program: Program,
  { layer, reach }: { readonly layer: Layer; readonly reach: Reach },
): Program {
  const { file, args, cwd } = program;
  if (layer.kind === "landlock") return { ...program, reach };
  if (layer.kind === "none") return program;
  const sight = { ...reach, workspace: cwd, lock: "/dev/null", own: [cwd], net: true };
  return { ...program, file: layer.program, args: [...bubblewrapArgs(sight), file, ...args] };
}
