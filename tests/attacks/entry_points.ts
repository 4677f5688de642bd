/**
 * Every way in which a client, a person or a program can have a tool run. A test that runs over
 * them all fails until a new meta-tool is listed here.
 *
 * @module
 */

import assert from "node:assert/strict";
import { META_TOOLS } from "../../src/config/gateway_options.ts";
import type { Message } from "../kit/json_rpc.ts";
import { runPml } from "../kit/run.ts";
import { codeOf, textOf } from "./oracles.ts";
import type { Scene } from "./stage.ts";

/** Runs `server:tool` in one way. Returns the code of the error; undefined if the tool ran. */
export type EntryPoint = (
  scene: Scene,
  tool: string,
  args: Readonly<Record<string, unknown>>,
) => Promise<string | undefined>;

/** The meta-tools that run no tool. */
const RUNS_NONE: readonly string[] = ["search", "schema"];

/** The entry points by their names. The first word of a meta-tool's entry is its name. */
export const ENTRY_POINTS: Readonly<Record<string, EntryPoint>> = {
  "tools/call": async ({ pml }, tool, args) =>
    codeOf(await pml.callTool(tool.replace(":", "__"), { ...args })),
  "tools/call with a client's prefix": async ({ pml }, tool, args) =>
    codeOf(await pml.callTool(`mcp__pml__${tool.replace(":", "__")}`, { ...args })),
  call: async ({ pml }, tool, args) =>
    codeOf(await pml.callTool("call", { tool, arguments: args })),
  "call by the name of tools/list": async ({ pml }, tool, args) =>
    codeOf(await pml.callTool("call", { tool: tool.replace(":", "__"), arguments: args })),
  batch: async ({ pml }, tool, args) =>
    anyCode(await pml.callTool("batch", { calls: [{ tool, arguments: args }] })),
  "batch with an allowed call before it": async ({ pml }, tool, args) =>
    anyCode(await pml.callTool("batch", { calls: [ALLOWED, { tool, arguments: args }] })),
  "execute_workflow with a plan": async ({ pml }, tool, args) => {
    const tasks = [{ id: "one", tool, arguments: args }];
    return anyCode(await pml.callTool("execute_workflow", { plan: { tasks } }));
  },
  "execute_workflow with a value of another task": async ({ pml }, tool, args) => {
    const [name, value] = Object.entries(args)[0] ?? [];
    // An allowed task before it, and the name of a member comes from its output.
    const when = { $ref: "first#" };
    const later = { id: "later", tool, arguments: args, when, depends_on: ["first"] };
    assert.ok(name !== undefined && value !== undefined);
    const tasks = [{ id: "first", ...ALLOWED }, later];
    return anyCode(await pml.callTool("execute_workflow", { plan: { tasks } }));
  },
  execute_code: async ({ pml }, tool, args) => {
    const [server, name] = tool.split(":");
    const call = `mcp[${JSON.stringify(server)}][${JSON.stringify(name)}](${JSON.stringify(args)})`;
    const code = `try { await ${call}; return "ran" } catch (error) { return "" + error.code }`;
    const answer = await pml.callTool("execute_code", { code });
    const said = codeOf(answer) ?? textOf(answer).split("\n")[0];
    return said === "ran" ? undefined : said;
  },
  cli: async ({ ws }, tool, args) => {
    const ran = await runPml(ws, ["call", tool, "--args", JSON.stringify(args), "--json"]);
    return ran.code === 0 ? undefined : /[A-Z]+_[A-Z_]+/.exec(ran.stdout + ran.stderr)?.[0];
  },
};

/** A call that every scene allows. */
const ALLOWED = { tool: "filesystem:read_file", arguments: { path: "good.txt" } };

/** Asserts that each meta-tool that runs tools is one of the entry points. */
export function assertAllListed(): void {
  const named = new Set(Object.keys(ENTRY_POINTS).map((name) => name.split(" ")[0]));
  const missing = META_TOOLS.filter((name) => !named.has(name) && !RUNS_NONE.includes(name));
  assert.deepEqual(missing, [], "meta-tools that are no entry point here");
}

/** Returns the code of the answer's error, or of the last part of it that failed. */
function anyCode(answer: Message): string | undefined {
  return codeOf(answer) ?? [...textOf(answer).matchAll(/"code":"([A-Z_]+)"/g)].at(-1)?.[1];
}
