/**
 * A workspace for capabilities: a module with tools that read, write and are internal, and a client
 * whose user answers as the test chooses.
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

/** A module whose tools return their arguments. */
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

/** A scene, and the questions that the user was asked. */
export interface CapabilityScene extends Scene {
  readonly asked: string[];
}

/**
 * Creates the scene. The user answers each question with the result of `answers`, by default Yes.
 */
export async function capabilityScene(
  era: Era,
  options: Omit<SceneOptions, "pml"> & {
    readonly answers?: (text: string) => unknown;
    readonly permissions?: object;
    readonly canAsk?: boolean;
    readonly servers?: object;
    /** Whether types are checked. The checker is a process that takes over a second. */
    readonly typed?: boolean;
  } = {},
): Promise<CapabilityScene> {
  const requests: string[] = [];
  const { answers = () => picked("Yes"), canAsk = true, permissions, servers, ...rest } = options;
  const scene = await makeScene({
    era,
    ...rest,
    prepare: async (ws) => {
      // A file in the place of the checker's folder, so that the checker cannot start.
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
        requests.push(String(params.message));
        // A user takes longer to read than a client without a user takes to answer.
        await new Promise((resolve) => setTimeout(resolve, READING_MS));
        return answers(String(params.message));
      },
    }),
  });
  return {
    ...scene,
    asked: requests,
    [Symbol.asyncDispose]: async () => {
      // PML finishes its writes into its home before it ends.
      await scene.pml.close().catch(() => {}); // closed already
      await scene[Symbol.asyncDispose]();
    },
  };
}

/** Saves code as approved, whatever its tools are. */
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
    }, { shownHash: undefined });
  }
}

/** Code that asks for the weather of Paris. */
export const PARIS = `const said = await mcp.weather.get({ city: "Paris", days: 3 });
return { text: said.city + " for " + said.days, sun: said.sun };`;

/** Runs code, and saves it. Returns the report about the saving. */
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

/** Opens a PML whose user answers yes to each question after some time. */
export async function agreeing(ws: Workspace): Promise<RawStdio> {
  const answer = async () => {
    await read();
    return picked("Yes");
  };
  const pml = new RawStdio(ws, { era: "2026-07-28", answer });
  await pml.open();
  return pml;
}

/** Calls a tool by its id. Returns the text of its result. */
export async function called(
  pml: RawStdio,
  tool: string,
  args: Record<string, unknown> = {},
): Promise<string> {
  return textOf(await pml.callTool("call", { tool, arguments: args }));
}
