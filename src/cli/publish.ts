/**
 * Passes `pml publish` on to the program of the hub. It is a separate package, because PML contains no
 * code for bundling and signing.
 *
 * @module
 */

import { dirname, resolve } from "node:path";
import { VERSION } from "../core/version.ts";
import { infoAfterLinks } from "../io/path_info.ts";
import { runOnTerminal } from "../sandbox/process.ts";

/**
 * Runs `pml-hub publish` with these words: from the checkout if this code is in one, or else the
 * published package of this version.
 */
export async function publish(words: readonly string[]): Promise<number> {
  const checkout = import.meta.resolve("../../hub/mod.ts");
  // In the npm package this code is in another folder, next to packages of other authors.
  const isCheckout = import.meta.url.endsWith("/src/cli/publish.ts");
  const hub =
    isCheckout && checkout.startsWith("file:") && infoAfterLinks(new URL(checkout))?.isFile
      ? [checkout]
      : ["--no-config", "--no-lock", `jsr:@casys/pml-hub@${VERSION}`];
  const file = Deno.execPath();
  return await runOnTerminal({
    file,
    args: ["run", "-A", ...hub, "publish", ...words.map(toAbsolute)],
    // A `deno.json` in the folder of a module could make Deno load packages from elsewhere.
    cwd: dirname(file),
  });
}

/** Makes the path of a file absolute, also where it is the value of an option. */
function toAbsolute(word: string): string {
  const [, option = "", path = ""] = /^(--[\w-]+=)?(.*)$/s.exec(word) ?? [];
  // The hub reports paths that are not files.
  return infoAfterLinks(path)?.isFile ? option + resolve(path) : word;
}
