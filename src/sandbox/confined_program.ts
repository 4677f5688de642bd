/**
 * Confines a program that is not a module to certain files.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { isInside } from "../io/path_info.ts";
import { canRunKeepers } from "./_keeper.ts";
import { whyNoLandlock } from "./_libc.ts";
import {
  bubblewrapArgs,
  type Covers,
  findBubblewrap,
  type OsLayerChoice,
  systemPaths,
} from "./_os_layer.ts";
import type { Layer } from "./layer.ts";
import { openPrivateFolder, type PrivateFolder } from "./_private_folder.ts";
import type { Program } from "./program.ts";
import type { Reach } from "./boot/reach.ts";

export { openPrivateFolder, systemPaths };
export type { Covers, Layer, PrivateFolder, Reach };

/** The bubblewrap programs that worked, by the PATH and the workspace of the search. */
const bubblewraps = new Map<string, Layer & { readonly kind: "bwrap" }>();

/**
 * Returns the layer that can confine programs on this machine. Throws `SANDBOX_DENIED` if the
 * configuration requires a layer and there is none.
 */
export async function programLayer(
  choice: OsLayerChoice,
  path: string | undefined,
  workspace: string,
): Promise<Layer> {
  const layer = await availableLayer(choice, path, workspace);
  if (layer.kind !== "none" || choice !== "required") return layer;
  const message = `Cannot confine programs: no layer is available (${layer.why})`;
  throw new PmlError("SANDBOX_DENIED", message, {
    hint: "Install bubblewrap, or set `sandbox.os_layer: auto`",
  });
}

/**
 * Returns the layer that can confine programs on this machine, or the kind "none" with the reason,
 * even if the configuration requires a layer. Bubblewrap is found on the user's `path`, but not in
 * the workspace.
 */
export async function availableLayer(
  choice: OsLayerChoice,
  path: string | undefined,
  workspace: string,
): Promise<Layer> {
  if (choice === "off") return { kind: "none", why: "it is off" };
  const lack = choice === "bwrap"
    ? "it is off"
    : whyNoLandlock() ?? (canRunKeepers() ? undefined : "this system cannot run a keeper");
  if (lack === undefined) return { kind: "landlock" };
  const bubblewrap = choice === "landlock" ? "it is off" : await bubblewrapOf(path, workspace);
  if (typeof bubblewrap === "object") return bubblewrap;
  return { kind: "none", why: `no landlock: ${lack}; no bubblewrap: ${bubblewrap}` };
}

async function bubblewrapOf(
  path: string | undefined,
  workspace: string,
): Promise<Layer & { readonly kind: "bwrap" } | string> {
  const key = JSON.stringify([path, workspace]);
  const bubblewrap = bubblewraps.get(key) ?? await findBubblewrap(path, workspace);
  if (typeof bubblewrap === "object") bubblewraps.set(key, bubblewrap);
  return bubblewrap;
}

/** The confinement of a program. */
export interface ProgramConfinement {
  readonly layer: Layer;
  readonly reach: Reach;
  /** Paths that are mounted over. Requires bubblewrap. */
  readonly covers?: Covers;
}

/** Returns the command that runs a program in its layer, with access only to `reach`. */
export function confinedProgram(
  program: Program,
  { layer, reach, covers }: ProgramConfinement,
): Program {
  const { file, args, cwd } = program;
  if (layer.kind === "none") return program;
  if (layer.kind === "landlock") return { ...program, reach };
  const { read, write, fixed = [] } = reach;
  const isCwdReachable = [...read, ...write, ...fixed].some((root) => isInside(root, cwd));
  const wrap = bubblewrapArgs({
    read: isCwdReachable ? read : [...read, cwd],
    write: [...write, ...fixed],
    // With this workspace, `bubblewrapArgs()` mounts each path by itself.
    workspace: "/dev/null",
    lock: "/dev/null",
    privateFolders: [],
    net: true,
    cwd,
    ...covers && { covers },
  });
  return { ...program, file: layer.program, args: [...wrap, file, ...args] };
}
