/**
 * The scene of an attack on registries: a spawned hub whose file the attacker may change, a proxy
 * in front of it that the attacker scripts, and users whose PML uses either.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { integrityOf } from "../../src/core/hash.ts";
import { FakeRegistry } from "../kit/fake_registry.ts";
import { type HubOptions, type Offer, put, startHub, type TestHub } from "../kit/hub.ts";
import type { Message } from "../kit/json_rpc.ts";
import { RawStdio, type RawStdioOptions } from "../kit/raw_stdio.ts";
import { runPml } from "../kit/run.ts";
import { makeWorkspace, type Workspace, type WorkspaceOptions } from "../kit/workspace.ts";
import { GOOD, textOf } from "./oracles.ts";
import { outcomeOf, picked, read } from "./questions.ts";

/** A hub, its publisher, and write access to its file. */
export interface HubScene extends AsyncDisposable {
  readonly hub: TestHub;
  readonly key: string;
  /** Publishes a version of the module `acme`, or another module. */
  readonly publish: (version: string, offer?: Partial<Offering>) => Promise<void>;
  /** Changes the file of the hub, and returns the number of changed rows. */
  readonly change: (sql: string, ...values: readonly SQLInputValue[]) => number;
  /** The proxy between the hub and its clients. */
  readonly proxy: FakeRegistry;
}

/** The content of a module. */
interface Offering {
  readonly fqdn: string;
  /** The answer of its tool. */
  readonly said: string;
  /** The body of its tool. */
  readonly body: string;
  /** The text before everything else. */
  readonly first: string;
}

const NOTHING = { read: [], write: [], net: [], run: [], env: [] };

/** Returns a module with the tool `go`, or with a tool named after a capability. */
export function goModule(version: string, offering: Partial<Offering> = {}): Offer {
  const { fqdn = "acme", said = `${fqdn} ${version}`, first = "" } = offering;
  const { body = `return ${JSON.stringify(said)};` } = offering;
  const [name, tool = "go"] = fqdn.split(":");
  const code = `${first}export const __meta__ = {
  name: "${name}", version: "${version}",
  tools: { ${tool}: { description: "Goes", inputSchema: { type: "object" } } },
};
export async function ${tool}() { ${body} }\n`;
  const tools = [{
    ...{ name: tool, description: "Goes", inputSchema: { type: "object" }, permissions: NOTHING },
  }];
  return {
    code,
    manifest: {
      ...{ fqdn, type: "deno", version, permissions: NOTHING, tools },
      ...{ env_required: [], warnings: [], routing: "local", integrity: hashOf(code) },
    },
  };
}

/** Returns the hash of a text in the format of a registry. */
export function hashOf(text: string): string {
  return integrityOf(new TextEncoder().encode(text));
}

/** Spawns a hub that contains the module `acme` 1.0.0. */
export async function openHub(options?: Pick<HubOptions, "ownProcess">): Promise<HubScene> {
  await using stack = new AsyncDisposableStack();
  const hub = stack.use(await startHub({ args: ["--rate", "999999"], ...options }));
  const proxy = stack.use(await before(hub));
  const { key } = await hub.key("acme");
  const publish = async (version: string, offering?: Partial<Offering>) => {
    const { status, body } = await put(hub.url, key, goModule(version, offering));
    assert.equal(status, 201, JSON.stringify(body));
  };
  await publish("1.0.0");
  const change = (sql: string, ...values: readonly SQLInputValue[]) => {
    using db = new DatabaseSync(hub.ws.file("hub-data/hub.db"), { timeout: 10_000 });
    return Number(db.prepare(sql).run(...values).changes);
  };
  const all = stack.move();
  return {
    ...{ hub, key, publish, change, proxy },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Starts a proxy that forwards the responses of a hub, except for the scripted faults. */
export async function before(
  hub: Pick<TestHub, "url">,
  spoil: (body: string) => string = (body) => body,
): Promise<FakeRegistry> {
  return await FakeRegistry.open([], async ({ method, target, accept, ifNoneMatch }) => {
    const response = await fetch(new URL(target, hub.url), {
      ...{ method, redirect: "manual" },
      headers: {
        ...accept !== undefined && { accept },
        ...ifNoneMatch !== undefined && { "if-none-match": ifNoneMatch },
      },
    });
    const bytes = await response.bytes();
    const isPage = /^\/mcp\/?(\?|$)/.test(target);
    const body = isPage ? new TextEncoder().encode(spoil(new TextDecoder().decode(bytes))) : bytes;
    const headers = Object.fromEntries(response.headers);
    delete headers.date;
    delete headers.connection;
    if (isPage) headers["content-length"] = String(body.length);
    return { status: response.status, headers, body };
  });
}

/** Creates the workspace of a user who has configured registries. */
export function userWorkspace(
  registries: string,
  { pml = {}, files = {}, env = {} }: Omit<WorkspaceOptions, "pml"> & { pml?: object } = {},
): Promise<Workspace> {
  return makeWorkspace({
    env: { PML_REGISTRIES: registries, ...env },
    files: { ...GOOD, ...files },
    pml: { version: 1, permissions: { allow: ["*"] }, ...pml },
  });
}

/** The outcome of a call: the question, if there was one, and the answer. */
export interface CallOutcome {
  readonly asked: string | undefined;
  readonly said: string;
}

/** Calls a tool in a running PML, and answers the question. */
export async function callWithReply(
  pml: RawStdio,
  tool = "acme:go",
  reply = "Yes",
): Promise<CallOutcome> {
  const outcome = await outcomeOf(pml, { name: "call", arguments: { tool, arguments: {} } });
  if (outcome.kind === "answered") return { asked: undefined, said: told(outcome.message) };
  const { text, answer } = outcome.asked;
  await read();
  return { asked: text, said: told(await answer(picked(reply))) };
}

function told(message: Message): string {
  return message.error === undefined ? textOf(message) : JSON.stringify(message.error);
}

/** Spawns PML in a workspace, uses it, and asserts that it ends well. */
export async function within<T>(
  ws: Workspace,
  use: (pml: RawStdio) => Promise<T>,
  options: Pick<RawStdioOptions, "env" | "ownProcess"> = {},
): Promise<T> {
  await using pml = new RawStdio(ws, { capabilities: { elicitation: {} }, ...options });
  await pml.open();
  const made = await use(pml);
  assert.equal((await pml.close()).code, 0, pml.stderr);
  return made;
}

/** Calls a tool in a new PML. */
export function callOnce(ws: Workspace, tool?: string, reply?: string): Promise<CallOutcome> {
  return within(ws, (pml) => callWithReply(pml, tool, reply));
}

/** Lets PML request the current lists of the registries. */
export async function refreshLists(ws: Workspace): Promise<string> {
  const { stdout, stderr } = await runPml(ws, ["tools", "--refresh"]);
  return stdout + stderr;
}

/**
 * Returns the files of a user's cache, and asserts that the hash in each name matches the content.
 */
export async function cachedCode(ws: Workspace): Promise<readonly string[]> {
  const folder = join(ws.home, "cache");
  const names = await readdir(folder).catch(() => []);
  const code = names.filter((name) => name.endsWith(".code"));
  for (const name of code) {
    const hash = createHash("sha256").update(await readFile(join(folder, name))).digest("hex");
    assert.equal(name, `sha256-${hash}.code`);
  }
  return code.map((name) => join(folder, name));
}
