/**
 * Passes `pml publish` on to the program of the hub, which is a separate package: bundling and signing
 * are no part of PML.
 *
 * @module
 */

import { dirname, resolve } from "node:path";
import { VERSION } from "../core/version.ts";
import { followedInfo } from "../io/place.ts";
import { runOnTerminal } from "../sandbox/process.ts";

/** Runs `pml-hub publish` with these words, from the checkout or else the exact published version. */
export async function publish(words: readonly string[]): Promise<number> {
  const checkout = import.meta.resolve("../../hub/mod.ts");
  const hub = checkout.startsWith("file:") && followedInfo(new URL(checkout))?.isFile
    ? [checkout]
    : ["--no-config", "--no-lock", `jsr:@casys/pml-hub@${VERSION}`];
  const file = Deno.execPath();
  return await runOnTerminal({
    file,
    args: ["run", "-A", ...hub, "publish", ...words.map(absolute)],
    // The folder of a module could have Deno take packages from elsewhere.
    cwd: dirname(file),
  });
}

/** Makes the path of a file absolute, also where it is the value of an option. */
function absolute(word: string): string {
  const [, option = "", path = ""] = /^(--[\w-]+=)?(.*)$/s.exec(word) ?? [];
  // The hub reports paths that are no files.
  return followedInfo(path)?.isFile ? option + resolve(path) : word;
}
