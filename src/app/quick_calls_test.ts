import assert from "node:assert/strict";
import type { Outcome } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import type { Back, Cancel } from "../core/quick_tool.ts";
import type { Server } from "../core/server.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { ToolId } from "../core/tool_id.ts";
import { until } from "../../tests/kit/wait.ts";
import { QuickCalls } from "./quick_calls.ts";
import { CallPathStage } from "./_call_path_stage_test.ts";

const ID = "s:go" as ToolId;
const DEFINITION: ToolDefinition = { name: "go", inputSchema: { type: "object" } };
const DONE: Outcome = { kind: "result", result: { content: [] } };
const PML = {
  permissions: { allow: ["s:*"] },
  mcpServers: { s: { command: "no-such-program" } },
};

/** A server whose tool can be called at once, and what became of it. */
class QuickServer {
  holds = true;
  fails = false;
  readonly sent: Back[] = [];
  readonly cancelled: unknown[] = [];
  /** What a call through the gates was answered. */
  gated = 0;

  /** Returns it as a server. */
  of(name: string): Server {
    const call = (_: unknown, back: Back): Cancel => {
      if (this.fails) throw new PmlError("UPSTREAM_DOWN", "It is gone");
      this.sent.push(back);
      return (reason) => {
        this.cancelled.push(reason);
        back.failed(reason);
      };
    };
    return {
      name,
      title: undefined,
      origin: "private",
      kind: "stdio",
      definition: this,
      settings: undefined,
      tells: true,
      checksArguments: true,
      blocked: () => undefined,
      identity: () => Promise.resolve(undefined),
      unapproved: () => Promise.resolve(undefined),
      definitionFor: () => Promise.resolve(DEFINITION),
      consentLines: () => Promise.resolve([]),
      permissionLines: () => Promise.resolve([]),
      onlyReads: () => Promise.resolve(undefined),
      remark: () => Promise.resolve(undefined),
      list: () => Promise.resolve([]),
      call: () => Promise.resolve(DONE).finally(() => this.gated++),
      quick: () => ({ holds: () => this.holds, call }),
      forget: () => {},
    };
  }
}

/** What a client was told of a call that ran at once. */
interface Told {
  readonly said: string[];
  readonly cancel: Cancel | undefined;
}

/** Begins a call at once, if it can. */
function begin({ path }: CallPathStage, args = {}): Told {
  const said: string[] = [];
  const back = {
    answered: () => void said.push("answered"),
    failed: (error: unknown) => void said.push(String(Reflect.get(error as object, "code"))),
    ways: () => ({}),
  };
  const about = { id: ID, arguments: args, via: "tools/call", actor: "local", request: "1" };
  const call = { ...about, toolset: undefined, back, again: () => void said.push("again") };
  return { said, cancel: path.begin(call) };
}

/** Calls through the gates. */
async function call(stage: CallPathStage, more: { readonly via?: string } = {}): Promise<void> {
  await stage.call("s", "go", more);
  // What a call found out is kept a little after it.
  await new Promise((resolve) => setTimeout(resolve));
}

async function staged(): Promise<{ readonly stage: CallPathStage; readonly server: QuickServer }> {
  const server = new QuickServer();
  const open = ({ name }: { readonly name: string }) => server.of(name);
  return { stage: await CallPathStage.open({ pml: PML, open }), server };
}

Deno.test("A call runs at once after one that passed the gates, while nothing changes", async () => {
  const { stage, server } = await staged();
  await using _ = stage;
  assert.equal(begin(stage).cancel, undefined, "no call passed the gates yet");
  await call(stage);
  const first = begin(stage);
  assert.deepEqual([first.cancel !== undefined, server.sent.length], [true, 0]);
  await until(() => server.sent.length === 1);
  server.sent[0]?.answered(DONE);
  server.sent[0]?.failed(new Error("twice"));
  assert.deepEqual(first.said, ["answered"]);
  server.holds = false;
  assert.equal(begin(stage).cancel, undefined);
  server.holds = true;
  assert.equal(begin(stage).cancel, undefined, "it has to pass the gates again");
  await call(stage);
  assert.notEqual(begin(stage).cancel, undefined);
  const { version } = stage.policy.now;
  await stage.change({ ...PML, permissions: { allow: ["s:go", "other:*"] } });
  assert.notEqual(stage.policy.now.version, version);
  assert.equal(begin(stage).cancel, undefined, "what holds has another version");
  await until(() => server.sent.length === 2);
  for (const one of server.sent) one.answered(DONE);
});

Deno.test("A call that was recorded is not sent if something changed since, and passes the gates", async () => {
  const { stage, server } = await staged();
  await using _ = stage;
  await call(stage);
  const { said, cancel } = begin(stage);
  assert.notEqual(cancel, undefined);
  server.holds = false;
  await until(() => said.length + server.sent.length > 0);
  for (const one of server.sent) one.answered(DONE);
  assert.deepEqual([said, server.sent], [["again"], []]);
  cancel?.("too late");
  assert.deepEqual(said, ["again"]);
});

Deno.test("A call that cannot be sent, or was cancelled before, ends once", async () => {
  const { stage, server } = await staged();
  await using _ = stage;
  await call(stage);
  server.fails = true;
  const failed = begin(stage);
  await until(() => failed.said.length > 0);
  assert.deepEqual(failed.said, ["UPSTREAM_DOWN"]);
  server.fails = false;
  const given = begin(stage);
  given.cancel?.(undefined);
  const late = begin(stage);
  await until(() => server.sent.length === 1);
  assert.deepEqual(given.said, ["CANCELLED"]);
  late.cancel?.(undefined);
  assert.deepEqual(late.said, ["CANCELLED"]);
  assert.equal(server.cancelled.length, 1);
});

Deno.test("A draft, and a call of a capability, open no way at once", async () => {
  const { stage, server } = await staged();
  await using _ = stage;
  await call(stage, { via: "capability" });
  const inner = begin(stage);
  inner.cancel?.(undefined);
  assert.equal(inner.cancel, undefined, "it may have been an internal tool");
  await call(stage);
  stage.path.draft = server.of("s");
  const ofDraft = begin(stage);
  ofDraft.cancel?.(undefined);
  assert.equal(ofDraft.cancel, undefined);
  stage.path.draft = undefined;
  const { cancel } = begin(stage);
  assert.notEqual(cancel, undefined);
  cancel?.(undefined);
});

Deno.test("An identity, whose calls are counted, passes the gates each time", async () => {
  for (const identity of [undefined, { name: "ci", rates: [] }]) {
    const judge = () => ({ kind: "allow", rule: "*", source: "defaults" });
    const now = { version: "1", config: { narrowing: identity && { identity } }, judge };
    const seen: string[] = [];
    const calls = new QuickCalls({
      policy: { now, isCurrent: () => true },
      schemas: { fitsAtOnce: () => true },
      capacity: { enter: () => seen.push("enter") > 0 },
      records: { isSound: true, begin: () => {} },
      isDraft: () => false,
    } as never);
    const server = new QuickServer().of("s");
    const pass = { server, version: "1", isBlocked: false, definition: server.definitionFor };
    await calls.passed({ id: ID, via: "call", pass } as never);
    calls.begin({ id: ID, arguments: {}, via: "call" } as never);
    assert.equal(seen.length, identity === undefined ? 1 : 0);
  }
});
