/**
 * A workspace for capabilities: a module with tools that read, write and are internal, and a client
 * whose person answers what the test says.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ToolId } from "../src/core/tool_id.ts";
import type { Capability } from "../src/servers/capability/capability.ts";
import { CapabilityStore } from "../src/workflow/capability_store.ts";
import { makeScene, type Scene, type SceneOptions } from "./attacks/stage.ts";
import { picked, read, READING_MS } from "./attacks/questions.ts";
import { textOf } from "./attacks/oracles.ts";
import type { Era } from "./kit/json_rpc.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import type { Workspace } from "./kit/workspace.ts";

/** A module whose tools say what they were called with. */
export const WEATHER = `
  export const __meta__ = {
    name: "weather", version: "1.0.0",
    tools: {
      get: {
        description: "Weather of a city",
        inputSchema: { type: "object", properties: { city: { type: "string" }, days: { type: "number" } }, required: ["city"] },
        annotations: { readOnlyHint: true },
      },
      warn: { description: "Warn somebody", inputSchema: { type: "object" } },
      vault: { description: "The inner one", visibility: "internal", inputSchema: { type: "object" } },
    },
  };
  export const get = ({ city, days = 1 }) => ({ city, days, sun: true });
  export const warn = (args) => ({ warned: args });
  export const vault = () => ({ gold: 7 });`;

/** A scene, and what the person was asked. */
export interface CapabilityScene extends Scene {
  readonly asked: string[];
}

/** Makes the scene. The person says what \`answers\` gives for a question; Yes unless told. */
export async function capabilityScene(
  era: Era,
  options: Omit<SceneOptions, "pml"> & {
    readonly answers?: (text: string) => unknown;
    readonly permissions?: object;
    readonly canAsk?: boolean;
    readonly servers?: object;
    /** Whether types are checked: the checker is a process that takes over a second. */
    readonly typed?: boolean;
  } = {},
): Promise<CapabilityScene> {
  const asked: string[] = [];
  const { answers = () => picked("Yes"), canAsk = true, permissions, servers, ...rest } = options;
  const scene = await makeScene({
    era,
    ...rest,
    prepare: async (ws) => {
      // A file is where the folder of the checker would be.
      if (!options.typed) await writeFile(join(ws.home, "types"), "");
      await options.prepare?.(ws);
    },
    files: { "weather.js": WEATHER, ...options.files },
    pml: {
      version: 1,
      permissions: permissions ?? { allow: ["weather:get", "filesystem:read_file"] },
      private_mcps: { weather: { type: "deno", path: "weather.js" }, ...servers },
    },
    ...(canAsk && {
      answer: async (_method, params) => {
        asked.push(String(params.message));
        // A person takes longer to read than a client that answers by itself.
        await new Promise((resolve) => setTimeout(resolve, READING_MS));
        return answers(String(params.message));
      },
    }),
  });
  return {
    ...scene,
    asked,
    [Symbol.asyncDispose]: async () => {
      // What it still writes into its home is then written.
      await scene.pml.close().catch(() => {}); // closed already
      await scene[Symbol.asyncDispose]();
    },
  };
}

/** Saves code as approved, whatever it says of itself. */
export async function approve(
  ws: Workspace,
  all: Readonly<Record<string, string>>,
  change: Partial<Capability> = {},
): Promise<void> {
  const store = new CapabilityStore(ws.home);
  for (const [id, text] of Object.entries(all)) {
    await store.save(id as ToolId, {
      kind: "code",
      text,
      parameters: { type: "object" },
      toolsUsed: {},
      ...change,
    }, { over: undefined });
  }
}

/** Code that asks for the weather of Paris. */
export const PARIS = `const said = await mcp.weather.get({ city: "Paris", days: 3 });
return { text: said.city + " for " + said.days, sun: said.sun };`;

/** Runs code, and saves it; returns what is said of that. */
export async function savedCode(
  pml: RawStdio,
  code: string,
  saveAs: unknown,
): Promise<Record<string, unknown>> {
  const { result, error } = await pml.callTool("execute_code", { code, save_as: saveAs });
  assert.equal(error, undefined, JSON.stringify(error));
  const texts = result?.content as unknown as readonly { readonly text: string }[];
  const last = texts.findLast(({ text }) => text.startsWith('{"save_as"'));
  assert.ok(last !== undefined, JSON.stringify(result));
  return JSON.parse(last.text).save_as;
}

/** Opens a PML whose person says yes to whatever is asked, after reading it. */
export async function agreeing(ws: Workspace): Promise<RawStdio> {
  const answer = async () => {
    await read();
    return picked("Yes");
  };
  const pml = new RawStdio(ws, { era: "2026-07-28", answer });
  await pml.open();
  return pml;
}

/** Calls a tool by its id; returns the text of its result. */
export async function called(
  pml: RawStdio,
  tool: string,
  args: Record<string, unknown> = {},
): Promise<string> {
  return textOf(await pml.callTool("call", { tool, arguments: args }));
}
