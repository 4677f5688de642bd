/**
 * Every way in which a client, a person or a program can have a tool run. A test that runs over
 * them all fails until a new meta-tool is listed here.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { META_TOOLS } from "../../src/config/exposure.ts";
import { approve } from "../capability_scene.ts";
import { FakeProvider, type Reply } from "../kit/fake_provider.ts";
import type { Message } from "../kit/json_rpc.ts";
import { runPml } from "../kit/run.ts";
import { untyped } from "./code_tools.ts";
import { codeOf, textOf } from "./oracles.ts";
import { makeScene, type Scene, type SceneOptions } from "./stage.ts";

/** A scene in which each entry point is there. */
export interface DoorScene extends Scene {
  /** What the model of the person's provider does next. */
  next: { readonly name: string; readonly input: unknown } | undefined;
}

/** Runs `server:tool` in one way. Returns the code of the error; undefined if the tool ran. */
export type EntryPoint = (
  scene: DoorScene,
  tool: string,
  args: Readonly<Record<string, unknown>>,
) => Promise<string | undefined>;

/** The meta-tools that run no tool. */
const RUNS_NONE: readonly string[] = ["search", "schema"];

/** The name of the entry point of models that servers ask. */
export const LOOP = "a sampling loop";
/** What a model is told of a tool that it may not see. It says not why, and has no code. */
export const NOT_OFFERED = "NOT_OFFERED";
const UNSEEN = "You have no tool of this name";

/** Code that calls any tool, as it was told. Rules judge each of its calls. */
const ANY = `const { tool, given } = args;
  const [server, name] = tool.split(":");
  try { await mcp[server][name](given); return "ran" } catch (error) { return "" + error.code }`;
/** A module that has a model asked, which may call one tool. */
const DOOR = `export const __meta__ = {
    name: "door", version: "1.0.0", tools: { go: { inputSchema: { type: "object" } } },
  };
  export async function go({ tool }, host) {
    const messages = [{ role: "user", content: "Go" }];
    const _meta = { allowedToolPatterns: [tool, "filesystem:read_file"] };
    try {
      return (await host.sample({ messages, maxTokens: 50, _meta })).content.text;
    } catch (error) {
      return "" + error.code;
    }
  }`;
const DOORS = ["my:any", "door:go", "door:@sampling"];

/** Makes a scene with a capability that calls any tool, and a model that does. */
export async function makeDoorScene(options: SceneOptions): Promise<DoorScene> {
  const { pml: own, files, prepare } = options;
  const { permissions = {}, private_mcps, ...rest } = (own ?? {}) as {
    readonly permissions?: { readonly allow?: readonly string[] };
    readonly private_mcps?: object;
  };
  const model: Reply = ({ body }) => {
    const { content } = JSON.parse(body).messages.at(-1);
    const [{ type, is_error: isError, content: [said] = [] }] = [content].flat();
    if (type === "tool_result") return { text: isError ? said.text : "ran" };
    return scene.next === undefined ? { text: "nothing" } : { uses: [scene.next] };
  };
  const provider = new FakeProvider("anthropic", model);
  const made = await makeScene({
    ...options,
    files: { "door.js": DOOR, ...files },
    pml: {
      ...rest,
      permissions: { ...permissions, allow: [...DOORS, ...permissions.allow ?? []] },
      private_mcps: { door: { type: "deno", path: "door.js" }, ...private_mcps },
    },
    env: { ANTHROPIC_API_KEY: "sk-ant-of-the-person-123456", ...options.env },
    prepare: async (ws) => {
      const config = provider.config({ allowed_tool_patterns: ["*"], requests_per_minute: 600 });
      await writeFile(join(ws.home, "config.yaml"), config);
      await approve(ws, { "my:any": ANY });
      await prepare?.(ws);
    },
  });
  const scene: DoorScene = {
    ...made,
    next: undefined,
    [Symbol.asyncDispose]: async () => {
      await made[Symbol.asyncDispose]();
      await provider[Symbol.asyncDispose]();
    },
  };
  return scene;
}

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
    // Any tool is tried, so that the types tell nothing.
    return ended(await pml.callTool("execute_code", { code: untyped(code) }));
  },
  "a saved capability": async ({ pml }, tool, given) => {
    const arguments_ = { tool, given };
    const answer = await pml.callTool("call", { tool: "my:any", arguments: arguments_ });
    return ended(answer);
  },
  [LOOP]: async (scene, tool, input) => {
    scene.next = { name: tool.replace(":", "__"), input };
    return ended(await scene.pml.callTool("call", { tool: "door:go", arguments: { tool } }));
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

/** Returns how something ended that says "ran", or the code of an error. */
function ended(answer: Message): string | undefined {
  const said = codeOf(answer) ?? textOf(answer).split("\n")[0] ?? "";
  if (said === UNSEEN) return NOT_OFFERED;
  return said === "ran" ? undefined : /^[A-Z]+_[A-Z_]+/.exec(said)?.[0] ?? said;
}
