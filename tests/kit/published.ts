/**
 * Lists the files of the repository that a release would contain.
 *
 * @module
 */

import process from "node:process";
import { repoFile } from "./pml_command.ts";

/**
 * Returns the files of a package that publishing would contain, and throws if publishing would
 * fail. The package is a folder of the repository that ends with a slash; without one it is PML.
 */
export async function publishedFiles(folder = ""): Promise<readonly string[]> {
  const { success, stdout, stderr } = await new Deno.Command(process.execPath, {
    // Types are checked elsewhere; slow types are reported all the same.
    args: ["publish", "--dry-run", "--allow-dirty", "--no-check"],
    cwd: repoFile(folder),
    env: { NO_COLOR: "1" },
  }).output();
  const text = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)).join("\n");
  if (!success) throw new Error(`publishing would fail: ${text}`);
  const listed = text.slice(text.indexOf("with files:")).matchAll(/^ *(file:\S+) \([^)]*\)$/gm);
  const root = new URL(`../../${folder}`, import.meta.url).href;
  return [...listed].map(([, url = ""]) => decodeURIComponent(url.replace(root, "")));
}
