/**
 * Every way in which a client, a user or a program can run a tool. A test over all of them fails
 * until a new meta-tool is listed here.
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
import { withoutTypeCheck } from "./code_tools.ts";
import { codeOf, textOf } from "./oracles.ts";
import { makeScene, type Scene, type SceneOptions } from "./stage.ts";

/** A scene that contains each entry point. */
export interface DoorScene extends Scene {
  /** The next action of the model of the user's provider. */
  next: { readonly name: string; readonly input: unknown } | undefined;
}

/**
 * Runs `server:tool` through one entry point. Returns the error code; undefined if the tool ran.
 */
export type EntryPoint = (
  scene: DoorScene,
  tool: string,
  args: Readonly<Record<string, unknown>>,
) => Promise<string | undefined>;

/** The meta-tools that run no tools. */
const RUNS_NONE: readonly string[] = ["search", "schema"];

/** The name of the entry point of models that servers ask. */
export const LOOP = "a sampling loop";
/** The result that a model gets for a tool that it may not see. It has no reason and no code. */
export const NOT_OFFERED = "NOT_OFFERED";
const UNSEEN = "You have no tool of this name";

/** Code that calls the tool in its arguments. Rules check each of its calls. */
const ANY = `const { tool, given } = args;
  const [server, name] = tool.split(":");
  try { await mcp[server][name](given); return "ran" } catch (error) { return "" + error.code }`;
/** A module that asks for a model, which may call one tool. */
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

/** Creates a scene with a capability that calls any tool, and a model that does so. */
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

/**
 * The entry points by name. The name of a meta-tool's entry begins with the name of the meta-tool.
 */
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
    // After an allowed task; the name of a member comes from its output.
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
    // Any tool is called, so types are of no use.
    return ended(await pml.callTool("execute_code", { code: withoutTypeCheck(code) }));
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
    const result = await runPml(ws, ["call", tool, "--args", JSON.stringify(args), "--json"]);
    return result.code === 0
      ? undefined
      : /[A-Z]+_[A-Z_]+/.exec(result.stdout + result.stderr)?.[0];
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

/** Returns the error code of the answer, or of its last part that failed. */
function anyCode(answer: Message): string | undefined {
  return codeOf(answer) ??
    [...textOf(answer).matchAll(/"code":"([A-Z_]+)"|^([A-Z]+_[A-Z_]+): /gm)].at(-1)?.slice(1).find(
      Boolean,
    );
}

/** Returns "ran", or the error code. */
function ended(answer: Message): string | undefined {
  const text = codeOf(answer) ?? textOf(answer).split("\n")[0] ?? "";
  if (text === UNSEEN) return NOT_OFFERED;
  return text === "ran" ? undefined : /^[A-Z]+_[A-Z_]+/.exec(text)?.[0] ?? text;
}
