/**
 * The scene of the tests of sampling: servers and a module that ask a model, a user's configuration
 * with a provider on loopback, and a PML between them.
 *
 * @module
 */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { journalOf } from "./attacks/oracles.ts";
import { makeAttackWorkspace, type Scene, type SceneOptions } from "./attacks/stage.ts";
import { full } from "./full_scene.ts";
import type { FakeProvider } from "./kit/fake_provider.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import type { Workspace } from "./kit/workspace.ts";

/** The key of the user. */
export const KEY = "sk-ant-of-the-person-123456";
/** The default text that `sample` of the servers asks about. */
export const TEXT = "Say it";

/** A module that asks a model, and returns the answer or the error. */
export const WRITER = `export const __meta__ = {
  name: "writer",
  tools: {
    ask: { inputSchema: { type: "object" } },
    later: { inputSchema: { type: "object" } },
  },
};
let kept;
export async function ask(params, host) {
  kept = host;
  const messages = [{ role: "user", content: "Write it" }];
  try {
    const { content, model } = await host.sample({ messages, maxTokens: 50, ...params });
    return { said: content.text, model };
  } catch (error) {
    return { code: error.code, message: error.message };
  }
}
export async function later() {
  try {
    await kept.sample({ messages: [{ role: "user", content: "later" }], maxTokens: 5 });
  } catch (error) {
    return { code: error.code };
  }
}
`;

/** Options of the scene. */
export interface SamplingOptions extends Omit<SceneOptions, "pml"> {
  readonly provider?: FakeProvider;
  /** More keys of the section `sampling`. */
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly rules?: Readonly<Record<string, readonly string[]>>;
  /** Servers; by default one of each revision on stdio. */
  readonly servers?: Readonly<Record<string, unknown>>;
  /** Whether the environment has the key. */
  readonly hasKey?: boolean;
}

/** Creates a workspace with servers and a module that ask a model. */
export async function samplingWorkspace(options: SamplingOptions = {}): Promise<Workspace> {
  const { provider, settings, rules = {}, files, limits, ...rest } = options;
  const { servers = { legacy: full("legacy"), modern: full("modern") } } = options;
  const names = Object.keys(servers);
  const allow = [...names.map((name) => `${name}:sample`), "writer:ask", "writer:later"];
  return await makeAttackWorkspace({
    ...rest,
    files: { "writer.js": WRITER, ...files },
    pml: {
      version: 1,
      permissions: { ...rules, allow: [...allow, "filesystem:read_file", ...rules.allow ?? []] },
      mcpServers: servers,
      private_mcps: { writer: { type: "deno", path: "writer.js" } },
    },
    prepare: async (ws) => {
      const bounds = limits === undefined ? "" : `limits: ${JSON.stringify(limits)}\n`;
      const text = (provider?.config(settings) ?? "") + bounds;
      await writeFile(join(ws.home, "config.yaml"), text);
      await options.prepare?.(ws);
    },
  });
}

/** Returns the environment with the user's key. */
export function keyed({ hasKey = true }: SamplingOptions): Readonly<Record<string, string>> {
  return hasKey ? { ANTHROPIC_API_KEY: KEY, OPENAI_API_KEY: KEY } : {};
}

/** Creates the workspace, and a PML in it. */
export async function samplingScene(options: SamplingOptions = {}): Promise<Scene> {
  const ws = await samplingWorkspace(options);
  const pml = new RawStdio(ws, { ...options, env: { ...keyed(options), ...options.env } });
  const dispose = async () => {
    await pml[Symbol.asyncDispose]();
    await ws[Symbol.asyncDispose]();
  };
  try {
    await pml.open();
  } catch (error) {
    await dispose();
    throw error;
  }
  return { ws, pml, [Symbol.asyncDispose]: dispose };
}

/** Returns the journal's records of requests to a provider. */
export async function sampledIn(ws: Workspace): Promise<readonly unknown[]> {
  const lines = await journalOf(ws);
  return lines.filter(({ event }) => event === "sampled").map(({ about }) => about);
}
