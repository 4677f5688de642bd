/**
 * Bytes that PML allocates for a call, and those that V8 moves to its old generation because something
 * still refers to an ended call. Both do not depend on the load of the machine. V8 reports each
 * garbage collection on stdout; the difference between runs with different numbers of calls is the
 * cost of one call.
 */

import assert from "node:assert/strict";
import type { JsonObject } from "../src/core/json.ts";
import { Collector } from "./kit/collector.ts";
import { denoCommand, pmlCommand } from "./kit/pml_command.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const FEWER = 1_500;
const MORE = 13_500;
const IN_FLIGHT = 64;
/** Allocations after the last collection are not reported: at most one young generation. */
const V8_FLAGS = "--trace-gc-nvp,--max-semi-space-size=4";
/**
 * The most kilobytes of a call that may be promoted, and the calls in flight then: each of them may
 * survive two collections. A call that stays referenced promotes 2 KB.
 */
const MOST_PROMOTED = 1;
const FEW_IN_FLIGHT = 4;

/** A report: the sizes of the heap before and after, and of promoted objects, in bytes. */
const SIZES = /"start_object_size":(\d+),"end_object_size":(\d+)/;
const PROMOTED = /"promoted":(\d+)/;
/** The start of a message. A report is JSON, too. */
const MESSAGE = /\{"(?:result|error|method|jsonrpc)":/;

/** The bytes that PML allocated, and those that were promoted, until its last collection. */
interface Heap {
  readonly allocated: number;
  readonly promoted: number;
}

const echo = (at: number) => ({ name: "plain__echo", arguments: { text: `call ${at}` } });

/** The parameters of calls, and the most kilobytes that one of them may allocate. */
const SCENES: Readonly<Record<string, readonly [most: number, (at: number) => JsonObject]>> = {
  "a plain call": [21, echo],
  "a call with the _meta of Claude Code": [22, (at) => ({
    ...echo(at),
    _meta: { "claudecode/toolUseId": `toolu_${at}`, progressToken: at },
  })],
  "a call with the _meta of VS Code": [22, (at) => ({
    ...echo(at),
    _meta: {
      progressToken: crypto.randomUUID(),
      "vscode.conversationId": "4f1c7e0a-6d3b",
      "vscode.requestId": `request_${at}`,
    },
  })],
  "a call through call": [26, (at) => {
    const { name: _, ...rest } = echo(at);
    return { name: "call", arguments: { tool: "plain:echo", ...rest } };
  }],
  "a call of a built-in": [33, () => ({
    name: "filesystem__read_file",
    arguments: { path: "good.txt" },
  })],
};

async function workspaceOf(): Promise<Workspace> {
  const [command, ...args] = denoCommand("bench/floor/server.ts");
  return await makeWorkspace({
    files: { "good.txt": "good\n" },
    pml: {
      version: 1,
      gateway: { tools_exposure: "full_proxy" },
      permissions: { allow: ["plain:*", "filesystem:*"] },
      mcpServers: { plain: { command, args } },
    },
  });
}

/** A PML whose stdout contains reports of V8 between the messages, and also within a message. */
class TracedPml {
  readonly #child: Deno.ChildProcess;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #waiting = new Map<number, (message: JsonObject) => void>();
  readonly #read: Promise<void>;
  #report = "";
  #after = 0;
  #allocated = 0;
  #promoted = 0;

  constructor(ws: Workspace, env: Readonly<Record<string, string>>) {
    const [file, run = "", ...args] = pmlCommand();
    this.#child = new Deno.Command(file, {
      args: [run, `--v8-flags=${V8_FLAGS}`, ...args, "stdio"],
      cwd: ws.path,
      env: { ...ws.env, ...env },
      clearEnv: true,
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    this.#stdin = this.#child.stdin.getWriter();
    this.#read = this.#follow();
  }

  async request(id: number, method: string, params: JsonObject): Promise<JsonObject> {
    const answer = new Promise<JsonObject>((resolve) => this.#waiting.set(id, resolve));
    await this.send({ id, method, params });
    return await answer;
  }

  async send(message: JsonObject): Promise<void> {
    const line = `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`;
    await this.#stdin.write(new TextEncoder().encode(line));
  }

  /** Ends it. Returns what its garbage collections reported. */
  async end(): Promise<Heap> {
    await this.#stdin.close();
    await Promise.all([this.#child.status, this.#read]);
    return { allocated: this.#allocated, promoted: this.#promoted };
  }

  async #follow(): Promise<void> {
    let rest = "";
    for await (const text of this.#child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#take(line);
    }
  }

  #take(line: string): void {
    const at = line.search(MESSAGE);
    if (at < 0) return this.#collected(`${line}\n`);
    this.#collected(line.slice(0, at));
    const message = JSON.parse(line.slice(at));
    this.#waiting.get(message.id)?.(message);
    this.#waiting.delete(message.id);
  }

  #collected(text: string): void {
    const lines = (this.#report + text).split("\n");
    this.#report = lines.pop() ?? "";
    for (const line of lines) {
      const [, before, after] = SIZES.exec(line) ?? [];
      if (after === undefined) continue;
      this.#promoted += Number(PROMOTED.exec(line)?.[1] ?? 0);
      this.#allocated += Number(before) - this.#after;
      this.#after = Number(after);
    }
  }
}

/** The settings of a run that differ between tests. */
interface Run {
  readonly env?: Readonly<Record<string, string>>;
  readonly inFlight?: number;
}

/** Returns the bytes that PML allocates in a run with this number of calls. */
async function heapOf(
  calls: number,
  paramsOf: (at: number) => JsonObject,
  { env = {}, inFlight = IN_FLIGHT }: Run = {},
): Promise<Heap> {
  await using ws = await workspaceOf();
  const pml = new TracedPml(ws, env);
  const clientInfo = { name: "allocation", version: "1" };
  const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  await pml.request(0, "initialize", hello);
  await pml.send({ method: "notifications/initialized" });
  await pml.request(1, "tools/list", {});
  let next = 2;
  await Promise.all(Array.from({ length: inFlight }, async () => {
    while (next < calls + 2) {
      const id = next++;
      const { result } = await pml.request(id, "tools/call", paramsOf(id));
      assert.ok(!Object(result).isError, JSON.stringify(result));
    }
  }));
  return await pml.end();
}

/** Asserts the bytes that a call allocates. */
async function assertAllocates(
  most: number,
  paramsOf: (at: number) => JsonObject,
  env?: Readonly<Record<string, string>>,
): Promise<void> {
  const run = env === undefined ? {} : { env };
  const [fewer, more] = [await heapOf(FEWER, paramsOf, run), await heapOf(MORE, paramsOf, run)];
  const each = (more.allocated - fewer.allocated) / (MORE - FEWER) / 1_000;
  assert.ok(each > 1 && each <= most, `${each.toFixed(1)} KB`);
}

for (const [name, [most, paramsOf]] of Object.entries(SCENES)) {
  Deno.test({
    name: `${name} allocates at most ${most} KB`,
    ignore: Deno.build.os !== "linux",
    fn: () => assertAllocates(most, paramsOf),
  });
}

/** The most kilobytes of a call with spans. Without a collector, the first scene is that call. */
const TRACED_MAX = 29;

Deno.test({
  name: `a call with its spans allocates at most ${TRACED_MAX} KB`,
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    await using collector = new Collector();
    await assertAllocates(TRACED_MAX, echo, collector.env);
    assert.ok(collector.requests.length > 1);
  },
});

Deno.test({
  name: "nothing refers to a call that has ended",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const [, paramsOf] = SCENES["a call with the _meta of Claude Code"] ?? assert.fail();
    const heap = async (calls: number) =>
      await heapOf(calls, paramsOf, { inFlight: FEW_IN_FLIGHT });
    const [fewer, more] = [await heap(FEWER), await heap(MORE)];
    const each = (more.promoted - fewer.promoted) / (MORE - FEWER) / 1_000;
    assert.ok(each <= MOST_PROMOTED, `${each.toFixed(1)} KB of each call were promoted`);
  },
});
