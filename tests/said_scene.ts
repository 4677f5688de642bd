/**
 * Servers over stdio that answer with tables, which are files of the workspace.
 *
 * @module
 */

import process from "node:process";
import { repoFile } from "./kit/pml_command.ts";
import type { Table } from "./kit/said_server.ts";

/** The table of each server, by its name. */
export type Tables = Readonly<Record<string, Table>>;

/** Returns the files of a workspace that contain the tables. */
export function filesOf(tables: Tables): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(tables).map(([name, table]) => [`${name}.json`, JSON.stringify(table)]),
  );
}

/** Defines the servers, in the form of `mcpServers`. */
export function definitions(tables: Tables): Readonly<Record<string, object>> {
  const script = repoFile("tests/kit/said_server.ts");
  const args = ["run", "-A", "--no-config", "--quiet", script];
  return Object.fromEntries(
    Object.keys(tables).map((name) => [
      name,
      { command: process.execPath, args: [...args, `./${name}.json`] },
    ]),
  );
}
