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
  const words = [command, ...args].join(" ").split(/[\s"'`;&|()=]+/);
  return words.filter((one) => CODE.test(one) || one === command && one.includes("/"))
    .map((one) => resolve(cwd, one));
}
