/**
 * Opens a PML with the tools of a catalog file, which has a line of JSON for each tool.
 *
 * @module
 */

import { join } from "node:path";
import { type App, openApp } from "../src/app/app.ts";
import { environmentOf } from "../src/config/env.ts";
import type { JsonObject } from "../src/core/json.ts";
import type { ToolDefinition } from "../src/protocol/tool.ts";
import { serverDouble } from "../src/servers/_server_double_test.ts";

/** A tool of a catalog. */
export interface Row {
  readonly server: string;
  readonly tool: string;
  readonly description?: string;
  readonly inputSchema: JsonObject;
}

/** The time limit for the start of a server, which may have to be installed first. */
const INSTALL_MS = 120_000;

/** Replaces the servers of a PML by the servers of a catalog, and lists their tools. */
export async function listTools(app: App, rows: readonly Row[]): Promise<void> {
  const tools = Map.groupBy(rows, ({ server }) => server.toLowerCase());
  app.servers.lists.replace([...tools].map(([name, serverRows]) =>
    serverDouble(name, {
      reportsChanges: true,
      list: (list) => Promise.resolve(list === "tools" ? serverRows.map(definitionOf) : []),
    })
  ));
  await app.servers.lists.prepare();
}

/** Returns the definition of a tool. */
export function definitionOf({ tool, description = "", inputSchema }: Row): ToolDefinition {
  return { name: tool, description, inputSchema };
}

/** Opens a PML in temporary folders, with trusted servers, while `work` runs. */
export async function withApp<T>(mcpServers: object, work: (app: App) => Promise<T>): Promise<T> {
  const root = await Deno.realPath(await Deno.makeTempDir({ prefix: "pml-bench-" }));
  const [ws, home] = [join(root, "ws"), join(root, "home")];
  try {
    await Deno.mkdir(ws);
    await Deno.mkdir(home, { mode: 0o700 });
    await Deno.writeTextFile(join(home, "config.yaml"), `limits: { start_ms: ${INSTALL_MS} }\n`);
    await Deno.writeTextFile(join(ws, ".pml.json"), JSON.stringify({ version: 1, mcpServers }));
    const variables = {
      PML_HOME: home,
      PML_TRUST: ws,
      PML_REGISTRIES: "none",
      PML_LOG_LEVEL: "error",
    };
    const environment = environmentOf({ ...Deno.env.toObject(), ...variables, PML_WORKSPACE: ws });
    await using app = await openApp({ cwd: ws, environment });
    return await work(app);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

/** Returns the rows of a file of JSON lines; undefined if there is no such file. */
export async function rowsOf<T>(path: string): Promise<readonly T[] | undefined> {
  try {
    const text = await Deno.readTextFile(path);
    return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
