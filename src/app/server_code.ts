/**
 * The files that servers run from.
 *
 * @module
 */

import { resolve } from "node:path";
import type { ServerDefinition } from "../config/servers.ts";

/** The names of files that run. */
const CODE = /\.(?:[cm]?[jt]sx?|py|rb|pl|php|sh|jar)$/i;

/** Returns the files that a server runs from, as far as its definition names them. */
export function codeOf(server: ServerDefinition, workspace: string): readonly string[] {
  if (server.kind === "deno") return [server.path];
  if (server.kind !== "stdio") return [];
  const { command, args, cwd = workspace } = server;
  // A path may have blanks, and an argument may be a line of a shell.
  const words = [command, ...args].flatMap((one) => [one, ...one.split(/[\s"'`;&|()=]+/)]);
  const files = words.filter((one) => CODE.test(one) || one === command && one.includes("/"));
  return files.map((one) => resolve(cwd, one));
}
