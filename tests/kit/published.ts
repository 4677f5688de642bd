/**
 * Asks Deno which files of the repository a release would carry.
 *
 * @module
 */

import process from "node:process";
import { repoFile } from "./pml_command.ts";

/**
 * Gives the files of a package that publishing would carry, and fails where publishing would. The
 * package is a folder of the repository that ends with a slash; without one it is PML.
 */
export async function publishedFiles(folder = ""): Promise<readonly string[]> {
  const { success, stdout, stderr } = await new Deno.Command(process.execPath, {
    // Types are checked elsewhere; what would be slow to read of them is told all the same.
    args: ["publish", "--dry-run", "--allow-dirty", "--no-check"],
    cwd: repoFile(folder),
    env: { NO_COLOR: "1" },
  }).output();
  const said = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)).join("\n");
  if (!success) throw new Error(`Publishing would fail: ${said}`);
  const listed = said.slice(said.indexOf("with files:")).matchAll(/^ *(file:\S+) \([^)]*\)$/gm);
  const root = new URL(`../../${folder}`, import.meta.url).href;
  return [...listed].map(([, url = ""]) => decodeURIComponent(url.replace(root, "")));
}
