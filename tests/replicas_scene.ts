/**
 * The scene of the tests with several processes of one PML: a workspace, tools that write a ledger,
 * and processes that share a sealing key.
 *
 * @module
 */

import assert from "node:assert/strict";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { createHash } from "node:crypto";
import { journalOf, ofKind } from "./attacks/oracles.ts";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { full } from "./full_scene.ts";
import { servePml, type TestServer } from "./kit/pml_serve.ts";
import type { Workspace } from "./kit/workspace.ts";

/** Requests are forwarded to another process. */
const OWN_PROCESS = { ownProcess: true } as const;

/** The sealing key of all scenes. */
export const KEY = "0123456789abcdef0123456789abcdef-of-a-test";
/** The token of the identity `ci`. */
export const CI = "token-of-the-ci-0001";
export const RULES = {
  allow: ["asks:ask_name", "note:wait", "note:wait_again"],
  ask: ["note:add", "note:add_other", "note:add_slowly"],
};

/** A module that writes a line for each run; some tools run until a file exists. */
const NOTE = `
  export const __meta__ = {
    name: "note", version: "1.0.0", permissions: { read: ["."], write: ["."] },
    tools: { add: {}, add_other: {}, add_slowly: {}, wait: {} },
  };
  export async function add({ text }) {
    await Deno.writeTextFile("ran.txt", text + "\\n", { append: true });
    return "added " + text;
  }
  export const add_other = add;
  export async function wait({ path }) {
    for (;;) {
      try {
        await Deno.stat(path);
        return "went";
      } catch (error) {
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
  export async function add_slowly({ text, path }) {
    await add({ text });
    return await wait({ path });
  }
`;

/** The `_meta` of each request. */
export const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } },
};
/** The client's answer after its user answered yes. */
export const YES = { approval: { action: "accept", content: { answer: "Yes" } } };

/** Creates the workspace of a scene. */
export async function sceneryOf(
  { rules = RULES, config = {}, key = KEY, trusted = true }: {
    readonly rules?: Readonly<Record<string, readonly string[]>>;
    readonly config?: object;
    readonly key?: string;
    readonly trusted?: boolean;
  } = {},
): Promise<Workspace> {
  const ws = await makeAttackWorkspace({
    trusted,
    files: { "note.js": NOTE },
    pml: {
      version: 1,
      permissions: rules,
      private_mcps: { note: { type: "deno", path: "note.js" } },
      mcpServers: { asks: full("legacy", "asks") },
    },
  });
  await writeFile(`${ws.home}/sealing_key`, `${key}\n`);
  await chmod(`${ws.home}/sealing_key`, 0o600);
  await configure(ws, config);
  return ws;
}

/** Writes `config.yaml`. */
export async function configure(ws: Workspace, config: object = {}): Promise<void> {
  const identities = {
    ci: {
      token: createHash("sha256").update(CI).digest("hex"),
      permissions: { allow: ["note:*"] },
    },
  };
  const serve = { sealing_key: "sealing_key" };
  await writeFile(`${ws.home}/config.yaml`, JSON.stringify({ serve, identities, ...config }));
}

export interface Two extends AsyncDisposable {
  readonly one: TestServer;
  readonly two: TestServer;
}

/** Starts two processes. */
export async function twoOf(ws: Workspace): Promise<Two> {
  const [one, two] = await Promise.all([
    servePml(ws, [], OWN_PROCESS),
    servePml(ws, [], OWN_PROCESS),
  ]);
  return {
    one,
    two,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([one[Symbol.asyncDispose](), two[Symbol.asyncDispose]()]);
    },
  };
}

/** The answer to a request of the newest revision. */
export interface Answered {
  readonly status: number;
  readonly result?: Readonly<Record<string, unknown>> & {
    readonly requestState?: string;
    readonly isError?: boolean;
    readonly inputRequests?: Readonly<
      Record<string, { readonly params: { readonly message: string } }>
    >;
  };
  readonly error?: { readonly message: string };
  /** The whole body, as text. */
  readonly text: string;
}

/** Calls a tool with a request of the newest revision. */
export async function callAt(
  { url, token }: Pick<TestServer, "url" | "token">,
  tool: string,
  { args = {}, code, ...more }: {
    /** Code to run instead of a call of the tool. */
    readonly code?: string;
    readonly args?: Readonly<Record<string, unknown>>;
    readonly requestState?: string | undefined;
    readonly inputResponses?: Readonly<Record<string, unknown>>;
    readonly _meta?: Readonly<Record<string, unknown>>;
  } = {},
): Promise<Answered> {
  const call = code === undefined
    ? { name: "call", arguments: { tool, arguments: args } }
    : { name: tool, arguments: { code } };
  const params = { ...call, _meta: META, ...more };
  const response = await fetch(url, {
    method: "POST",
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": call.name,
    },
  });
  const text = await response.text();
  const [json = text] = text.split("\n").filter((line) => /^(data: )?\{"/.test(line))
    .map((line) => line.replace(/^data: /, "")).filter((line) => /"(result|error)":/.test(line));
  const { status } = response;
  if (!json.startsWith("{")) return { status, text };
  return { status, ...JSON.parse(json), text };
}

/** Starts a call that asks. Returns the state of its question. */
export async function stateOf(
  at: Pick<TestServer, "url" | "token">,
  tool: string,
  args: Readonly<Record<string, unknown>>,
): Promise<string> {
  const asked = await callAt(at, tool, { args });
  const state = asked.result?.requestState;
  assert.ok(state !== undefined, asked.text);
  return state;
}

/** Returns the lines that the tools wrote, one for each run. */
export async function ranIn(ws: Workspace): Promise<readonly string[]> {
  const text = await readFile(ws.file("ran.txt"), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

/**
 * Returns the tools of the calls that have a start and no end in the journal. Ends are written
 * without a wait.
 */
export async function openIn(ws: Workspace): Promise<readonly (string | undefined)[]> {
  const lines = await journalOf(ws);
  const ended = new Set(ofKind(lines, "end").map(({ callId }) => callId));
  return ofKind(lines, "start").filter(({ callId }) => !ended.has(callId)).map(({ tool }) => tool);
}
