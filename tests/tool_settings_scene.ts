/**
 * Servers of every kind whose definitions have the same settings for their tools: one renamed and
 * with fixed arguments, one disabled.
 *
 * @module
 */

import { textOf } from "./attacks/oracles.ts";
import { makeScene } from "./attacks/stage.ts";
import type { Era, Json } from "./kit/json_rpc.ts";
import type { RawStdio } from "./kit/raw_stdio.ts";
import { NEWEST, type Table } from "./kit/said_server.ts";
import { definitions, filesOf } from "./said_scene.ts";

export const TOKEN = "token-from-outside-4711";
export const env = { CODE_TOKEN: TOKEN };
export const INPUT = {
  type: "object",
  properties: {
    query: { type: "string" },
    owner: { type: "string", pattern: "^[a-z]+$" },
    token: { type: "string" },
  },
  required: ["owner", "query"],
  additionalProperties: false,
};
export const inputSchema = {
  type: "object",
  properties: { query: { type: "string" } },
  required: ["query"],
};
const SEARCH = { name: "search_code", description: "In its own words", inputSchema: INPUT };
const OTHERS = ["create_issue", "star"].map((name) => ({ name, inputSchema: { type: "object" } }));
export const TOOLS = [SEARCH, ...OTHERS];
export const TABLE: Table = {
  "tools/list": { result: { tools: TOOLS } },
  "tools/call": { echo: "*" },
};
export const SETTINGS = {
  search_code: {
    rename: "find_code",
    description: "Zebras in the code of acme",
    arguments: { owner: "acme", token: "${CODE_TOKEN}" },
  },
  create_issue: { disabled: true },
  no_such: { rename: "x" },
};
const MODULE = `
export const __meta__ = {
  name: "module",
  version: "1.0.0",
  tools: ${JSON.stringify(Object.fromEntries(TOOLS.map(({ name, ...tool }) => [name, tool])))},
};
const told = (name) => (args) => JSON.stringify({ name, arguments: args });
export const search_code = told("search_code");
export const create_issue = told("create_issue");
export const star = told("star");
`;
export const KINDS = ["http", "module", "newest", "older"];

interface Options {
  readonly rules?: Readonly<Record<string, readonly string[]>>;
  readonly settings?: object;
  readonly table?: Table;
  readonly trusted?: boolean;
}

/** Returns a workspace file with a server of every kind, and the files of the servers. */
export function world(url: string, { rules, settings = SETTINGS, table = TABLE }: Options = {}) {
  const tables = { older: table, newest: { ...table, ...NEWEST } };
  const stdio = Object.entries(definitions(tables))
    .map(([name, definition]) => [name, { ...definition, tools: settings }]);
  return {
    files: { ...filesOf(tables), "module.js": MODULE },
    pml: {
      version: 1,
      permissions: rules ?? { allow: KINDS.map((name) => `${name}:*`) },
      gateway: { tools_exposure: "hybrid", hybrid: { apply_semantic_filter: false } },
      mcpServers: { ...Object.fromEntries(stdio), http: { url, tools: settings } },
      // An exact rule applies to tools that may run programs only with exactly their arguments.
      grants: { module: { run: ["git"] } },
      private_mcps: { module: { type: "deno", path: "module.js", tools: settings } },
    },
  };
}

export async function sceneOf(era: Era, { url, ...options }: Options & { readonly url: string }) {
  const { trusted = true } = options;
  return await makeScene({
    ...world(url, options),
    era,
    limits: { first_list_ms: 60_000 },
    env,
    trusted,
    capabilities: { elicitation: { form: {} } },
  });
}

export async function toolsOf(pml: RawStdio): Promise<readonly Json[]> {
  const { result } = await pml.request("tools/list", {});
  return result?.tools as unknown as readonly Json[];
}

/** Returns the request that the server received. */
export function sentIn(message: Parameters<typeof textOf>[0]): Json {
  const { name, arguments: args } = JSON.parse(textOf(message));
  return { name, arguments: args };
}

export const call = (pml: RawStdio, tool: string, args: object = {}) =>
  pml.callTool("call", { tool, arguments: args });
export const MERGED = { query: "q", owner: "acme", token: TOKEN };
