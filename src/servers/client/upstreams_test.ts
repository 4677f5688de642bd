import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkedCall } from "../_server_double_test.ts";
import type { CheckedCall } from "../server.ts";
import { Cancellation } from "../../core/cancellation.ts";
import { PmlError } from "../../core/errors.ts";
import type { JsonObject } from "../../core/json.ts";
import { toolId } from "../../core/tool_id.ts";
import { pause, yieldTurn } from "../../io/waiting.ts";
import { type Call, NO_CLIENT } from "../../protocol/call.ts";
import { ERROR } from "../../protocol/errors.ts";
import { upstreamsHost } from "./_upstreams_host_test.ts";
import { Upstreams } from "./upstreams.ts";
import type { UpstreamServer, Wire, WireEvents } from "./wire.ts";

/** Returns the members of the answer to a call; undefined for no answer. */
type Script = (message: JsonObject, wire: ScriptedWire) => JsonObject | undefined;

const NEVER = new AbortController().signal;
const DONE: JsonObject = { result: { content: [] } };

/** The transport to a server on a pipe, whose answers a test scripts. */
class ScriptedWire implements Wire {
  readonly reportsChanges = true;
  isClosed = false;
  readonly #events: WireEvents;
  readonly #script: Script;

  constructor(events: WireEvents, script: Script) {
    this.#events = events;
    this.#script = script;
  }

  send(message: JsonObject): void {
    const { id = null } = message;
    const answer = this.#script(message, this);
    if (answer === undefined || id === null) return;
    queueMicrotask(() => this.say({ id, ...answer }));
  }

  /** Sends a message of the server. */
  say(message: JsonObject): void {
    this.#events.onMessage({ jsonrpc: "2.0", ...message });
  }

  downError(why: string, mayHaveRun: boolean): PmlError {
    return new PmlError("UPSTREAM_DOWN", why, { detail: { may_have_run: mayHaveRun } });
  }

  kill(): void {}

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }
}

/** The connections of a PML, to one server. */
class Stage implements AsyncDisposable {
  /** The messages that the server received. */
  readonly received: JsonObject[] = [];
  /** The transports, in the order of their starts. */
  readonly wires: ScriptedWire[] = [];
  /** The tools that it lists. */
  tools: readonly JsonObject[] = [{ name: "t", inputSchema: { type: "object" } }];
  /** The version of its definition. */
  version = "1";
  readonly upstreams: Upstreams;
  readonly #server: UpstreamServer;
  readonly #script: Script;
  readonly #hangs: () => boolean;

  /** Takes the answers to calls, and whether the server is silent now. */
  constructor(script: Script, hangs = () => false, idleMs = 60_000) {
    this.#script = script;
    this.#hangs = hangs;
    this.#server = {
      name: "s",
      tools: undefined,
      definition: {},
      hasFiles: false,
      version: () => this.version,
      prepare: () => Promise.resolve((events) => this.#open(events)),
    };
    const home = join(tmpdir(), `pml-${crypto.randomUUID()}`);
    const limits = { startMs: 5_000, catalogTools: 100, idleMs, idleChildren: 8 };
    this.upstreams = new Upstreams(upstreamsHost(home, { limits, upstreamOf: () => this.#server }));
  }

  /** Returns how many messages with a method the servers received. */
  count(method: string): number {
    return this.received.filter((message) => message.method === method).length;
  }

  /** Calls the tool, after its checks. */
  async call(more: Partial<CheckedCall> = {}): Promise<unknown> {
    const call: Call = {
      ...{ id: toolId("s", "t"), arguments: {}, via: "call", actor: "local", callId: "1" },
      ...{ cancellation: new Cancellation(), client: NO_CLIENT },
    };
    return await this.upstreams.call(this.#server, { ...checkedCall(call), ...more }, true);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.upstreams[Symbol.asyncDispose]();
  }

  #open(events: WireEvents): ScriptedWire {
    const wire = new ScriptedWire(events, (...of) => this.#answer(...of));
    this.wires.push(wire);
    return wire;
  }

  #answer(message: JsonObject, wire: ScriptedWire): JsonObject | undefined {
    this.received.push(message);
    if (this.#hangs()) return undefined;
    switch (message.method) {
      case "initialize":
        return {
          result: {
            protocolVersion: "2025-11-25",
            capabilities: {
              tools: { listChanged: true },
              tasks: { requests: { tools: { call: {} } } },
            },
            serverInfo: { name: "s", version: "1" },
          },
        };
      case "tools/list":
        return { result: { tools: [...this.tools] } };
      case "ping":
        return { result: {} };
      case "tools/call":
        return this.#script(message, wire);
      default:
        return undefined;
    }
  }
}

Deno.test("a call whose user opened a page is sent again only if its tool has not changed", async () => {
  const elicitationId = "1";
  const elicitations = [{ mode: "url", elicitationId, url: "https://example.com/", message: "" }];
  const error = { code: ERROR.urlElicitationRequired, message: "", data: { elicitations } };
  const script: Script = (_, wire) => {
    if (stage.count("tools/call") !== 1) return DONE;
    queueMicrotask(() => {
      stage.tools = [{ name: "t", description: "another", inputSchema: { type: "object" } }];
      wire.say({ method: "notifications/tools/list_changed" });
      wire.say({ method: "notifications/elicitation/complete", params: { elicitationId } });
    });
    return { error };
  };
  await using stage = new Stage(script);
  const client = {
    ...NO_CLIENT,
    onServerRequest: () => Promise.resolve({ action: "accept" }),
    onOpen: () => Promise.resolve(true),
  };
  const compared: unknown[] = [];
  const assertListed = (listed: unknown) => {
    compared.push((listed as JsonObject).description);
    if (compared.length > 1) throw new PmlError("OVERLOADED", "it has changed");
  };
  await assert.rejects(stage.call({ client, assertListed }), { code: "OVERLOADED" });
  assert.deepEqual(compared, [undefined, "another"]);
  assert.equal(stage.count("tools/call"), 1);
});

Deno.test("a server that hangs before it has shown whether it takes members is replaced", async () => {
  let hangs = false;
  await using stage = new Stage(() => DONE, () => hangs);
  const members = { message: { "com.example/trace": "1" } };
  await stage.call();
  hangs = true;
  const cancellation = new Cancellation();
  const call = stage.call({ members, cancellation });
  await yieldTurn();
  cancellation.cancel(new PmlError("TIMED_OUT", "late"));
  await assert.rejects(call, { code: "TIMED_OUT" });
  // A ping without an answer for a second.
  await pause(1_100, NEVER);
  hangs = false;
  await stage.call({ members });
  assert.equal(stage.count("initialize"), 2);
});

Deno.test("a task keeps its server running when an earlier process of the server ends", async () => {
  let first: JsonObject = {};
  const script: Script = (message) => {
    if (stage.count("tools/call") > 1) {
      return { result: { task: { taskId: "1", status: "working" } } };
    }
    first = message;
    return undefined;
  };
  await using stage = new Stage(script, () => false, 50);
  const call = stage.call();
  while (stage.count("tools/call") === 0) await yieldTurn();
  stage.version = "2";
  await stage.call({ task: { isStateless: false, options: {} } });
  stage.wires[0]?.say({ id: first.id ?? null, ...DONE });
  await call;
  while (stage.wires[0]?.isClosed !== true) await yieldTurn();
  await pause(200, NEVER);
  assert.deepEqual(stage.wires.map(({ isClosed }) => isClosed), [true, false]);
});
