/**
 * Bytes that PML allocates for a call, which do not depend on the load of the machine. V8 reports
 * each garbage collection on stdout; the difference between runs with different numbers of calls is
 * the cost of one call.
 */

import assert from "node:assert/strict";
import type { JsonObject } from "../src/core/json.ts";
import { denoCommand, pmlCommand } from "./kit/pml_command.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const FEWER = 1_500;
const MORE = 13_500;
const IN_FLIGHT = 64;
const MIB = 1 << 20;
/** Allocations after the last collection are not reported: at most one young generation. */
const V8_FLAGS = "--trace-gc,--max-semi-space-size=4";

/** The start of a report, and the sizes of the heap before and after, in mebibytes. */
const COLLECTION = /ms: \w[\w -]*? (\d+\.\d) \(\d+\.\d\) -> (\d+\.\d) \(\d+\.\d\) MB/;

const echo = (at: number) => ({ name: "plain__echo", arguments: { text: `call ${at}` } });

/** The parameters of calls, and the most kilobytes that one of them may allocate. */
const SCENES: Readonly<Record<string, readonly [most: number, (at: number) => JsonObject]>> = {
  "a plain call": [24, echo],
  "a call with the _meta of Claude Code": [24, (at) => ({
    ...echo(at),
    _meta: { "claudecode/toolUseId": `toolu_${at}`, progressToken: at },
  })],
  "a call with the _meta of VS Code": [25, (at) => ({
    ...echo(at),
    _meta: {
      progressToken: crypto.randomUUID(),
      "vscode.conversationId": "4f1c7e0a-6d3b",
      "vscode.requestId": `request_${at}`,
    },
  })],
  "a call through call": [30, (at) => {
    const { name: _, ...rest } = echo(at);
    return { name: "call", arguments: { tool: "plain:echo", ...rest } };
  }],
  "a call of a built-in": [36, () => ({
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

  constructor(ws: Workspace) {
    const [file, run = "", ...args] = pmlCommand();
    this.#child = new Deno.Command(file, {
      args: [run, `--v8-flags=${V8_FLAGS}`, ...args, "stdio"],
      cwd: ws.path,
      env: ws.env,
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

  /** Ends it. Returns the bytes that it allocated until its last garbage collection. */
  async end(): Promise<number> {
    await this.#stdin.close();
    await Promise.all([this.#child.status, this.#read]);
    return this.#allocated * MIB;
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
    const at = line.indexOf("{");
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
      const [, before, after] = COLLECTION.exec(line) ?? [];
      if (after === undefined) continue;
      this.#allocated += Number(before) - this.#after;
      this.#after = Number(after);
    }
  }
}

/** Returns the bytes that PML allocates in a run with this number of calls. */
async function allocatedBy(calls: number, paramsOf: (at: number) => JsonObject): Promise<number> {
  await using ws = await workspaceOf();
  const pml = new TracedPml(ws);
  const clientInfo = { name: "allocation", version: "1" };
  const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  await pml.request(0, "initialize", hello);
  await pml.send({ method: "notifications/initialized" });
  await pml.request(1, "tools/list", {});
  let next = 2;
  await Promise.all(Array.from({ length: IN_FLIGHT }, async () => {
    while (next < calls + 2) {
      const id = next++;
      const { result } = await pml.request(id, "tools/call", paramsOf(id));
      assert.ok(!Object(result).isError, JSON.stringify(result));
    }
  }));
  return await pml.end();
}

for (const [name, [most, paramsOf]] of Object.entries(SCENES)) {
  Deno.test({
    name: `${name} allocates at most ${most} KB`,
    ignore: Deno.build.os !== "linux",
    fn: async () => {
      const [fewer, more] = [await allocatedBy(FEWER, paramsOf), await allocatedBy(MORE, paramsOf)];
      const each = (more - fewer) / (MORE - FEWER) / 1_000;
      assert.ok(each > 1 && each <= most, `${each.toFixed(1)} KB`);
    },
  });
}
