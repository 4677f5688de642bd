import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { SessionAnswers } from "../calls/session_answers.ts";
import { resolvedContext } from "../calls/_context_test.ts";
import type { ApprovalReply } from "../protocol/answers.ts";
import type { Call, CallClient, Outcome } from "../protocol/call.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { Cancellation } from "../core/cancellation.ts";
import { toolId } from "../core/tool_id.ts";
import { NO_WARNINGS } from "../io/private_files.ts";
import { revokeSessionAnswer, sessionAnswersIn } from "../policy/session_files.ts";
import { knownDouble } from "../servers/_server_double_test.ts";
import { CallPathStage, OracleServer } from "./_call_path_stage_test.ts";

const HOUR = 3_600_000;
const FILE = { permissions: {}, mcpServers: { far: { command: "far" } } };

/** Opens a workspace with a server whose tool `go` has these members. */
async function open(pml: object = FILE, members: Partial<ToolDefinition> = {}) {
  const shown: { members: Partial<ToolDefinition>; onLook?: () => void } = { members };
  let server: OracleServer | undefined;
  const stage = await CallPathStage.open({
    pml,
    open: ({ name, ...listing }) => {
      const tools = () => [{ name: "go", inputSchema: { type: "object" }, ...shown.members }];
      return server = new OracleServer({
        ...knownDouble(name, { ...listing, name }),
        tools,
        onLook: () => shown.onLook?.(),
      });
    },
  });
  const { home } = stage.policy.now.loaded.environment;
  return {
    stage,
    shown,
    home,
    ran: () => server?.ran.length ?? 0,
    answers: () => sessionAnswersIn(home, NO_WARNINGS),
    [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose](),
  };
}

type Opened = Awaited<ReturnType<typeof open>>;

function clientOf(info: CallClient["info"] = { name: "a client" }) {
  const connection = new AbortController();
  return { client: { connection: connection.signal, info }, end: () => connection.abort() };
}

/** Calls the tool, and answers its question after a time that a user needs. */
async function answered(
  at: Opened,
  { client, reply, ms = 310, ...change }: Partial<Call> & {
    readonly client: CallClient;
    readonly reply: ApprovalReply;
    readonly ms?: number;
  },
): Promise<Outcome> {
  const outcome = await at.stage.call("far", "go", { client, ...change });
  assert.ok(outcome.kind === "ask");
  await new Promise((resolve) => setTimeout(resolve, ms));
  const answer = { handle: outcome.question.handle, reply };
  return await at.stage.call("far", "go", { client, ...change, answer });
}

async function kindOf(at: Opened, client: CallClient, change: Partial<Call> = {}) {
  return (await at.stage.call("far", "go", { client, ...change })).kind;
}

async function offers(at: Opened, client: CallClient, change: Partial<Call> = {}) {
  const outcome = await at.stage.call("far", "go", { client, ...change });
  assert.ok(outcome.kind === "ask");
  return outcome.question.answers.some(({ reply }) => reply === "Session");
}

Deno.test("an answer for a session covers a tool with any arguments, on one connection, until it ends", async () => {
  await using at = await open();
  const [one, same] = [clientOf(), clientOf()];
  assert.equal((await answered(at, { ...one, reply: "Session" })).kind, "result");
  assert.equal(await kindOf(at, one.client, { arguments: { other: 1 } }), "result");
  assert.equal(await kindOf(at, one.client, { via: "batch" }), "result");
  assert.equal(await kindOf(at, same.client), "ask", "another client with the same name");
  assert.equal(await kindOf(at, {}), "ask", "a client without a connection");
  const [{ tool, client, rule, workspace, pid } = assert.fail()] = await at.answers();
  const { config } = at.stage.policy.now;
  assert.deepEqual(
    { tool, client, rule, workspace, pid },
    {
      tool: "far:go",
      client: "a client",
      rule: "far:go",
      workspace: config.workspace,
      pid: Deno.pid,
    },
  );
  one.end();
  assert.deepEqual(await at.answers(), []);
  assert.equal(await kindOf(at, one.client), "ask");
  assert.equal(at.ran(), 3);
});

Deno.test("an answer for a session is recorded once for a call whose checks begin again", async () => {
  await using at = await open();
  const { client } = clientOf();
  await answered(at, { client, reply: "Session" });
  let passes = 0;
  at.shown.onLook = () => {
    if (passes++ === 0) at.stage.policy.approve(new Map());
  };
  assert.equal(await kindOf(at, client), "result");
  assert.ok(passes > 1, `${passes} passes`);
  const [file = ""] = await readdir(join(at.home, "journal"));
  const text = await readFile(join(at.home, "journal", file), "utf8");
  assert.equal(text.split('"answer":"session"').length - 1, 1);
});

Deno.test("an answer for a session covers exactly the arguments where Always does", async () => {
  await using at = await open({ ...FILE, grants: { far: { run: ["make"] } } });
  const { client } = clientOf();
  const change = { arguments: { target: "a" } };
  assert.equal((await answered(at, { client, reply: "Session", ...change })).kind, "result");
  assert.equal(await kindOf(at, client, change), "result");
  assert.equal(await kindOf(at, client, { arguments: { target: "b" } }), "ask");
  assert.equal(await kindOf(at, client), "ask");
});

Deno.test("an answer for a session within 300 ms counts once", async () => {
  await using at = await open();
  const { client } = clientOf();
  assert.equal((await answered(at, { client, reply: "Session", ms: 0 })).kind, "result");
  assert.deepEqual(await at.answers(), []);
  assert.equal(await kindOf(at, client), "ask");
});

Deno.test("an answer for a session is not taken from another connection than the asked one", async () => {
  await using at = await open();
  const [one, other] = [clientOf(), clientOf()];
  const outcome = await at.stage.call("far", "go", { client: one.client });
  assert.ok(outcome.kind === "ask");
  await new Promise((resolve) => setTimeout(resolve, 310));
  const answer = { handle: outcome.question.handle, reply: "Session" } as const;
  assert.equal(await kindOf(at, other.client, { answer }), "result", "the yes covers the call");
  assert.deepEqual(await at.answers(), []);
  assert.equal(await kindOf(at, other.client), "ask");
});

Deno.test("an answer at a terminal is kept by the connection that asked, and by no other", async () => {
  await using at = await open();
  const { approvals } = at.stage.path;
  for (const isSame of [false, true]) {
    const [one, other] = [clientOf(), clientOf()];
    const outcome = await at.stage.call("far", "go", { client: one.client });
    assert.ok(outcome.kind === "ask");
    const pending = await approvals.saveForTerminal(outcome.question.handle);
    await approvals.grant(pending?.id ?? "", true);
    const { client } = isSame ? one : other;
    assert.equal(await kindOf(at, client), "result");
    assert.equal(await kindOf(at, client), isSame ? "result" : "ask");
    assert.equal((await at.answers()).length, isSame ? 1 : 0);
  }
});

Deno.test("an answer for a session is offered only where calls are alike", async () => {
  await using at = await open();
  const { client } = clientOf();
  assert.equal(await offers(at, client), true);
  assert.equal(await offers(at, {}), false);
  assert.equal(await offers(at, client, { members: { params: { more: 1 } } }), false);
  assert.equal(await offers(at, client, { actor: "ci" }), false);
  at.shown.members = { annotations: { destructiveHint: true } };
  assert.equal(await offers(at, client), false);
  await using untrusted = await CallPathStage.open({ trusted: false, pml: { permissions: {} } });
  assert.equal(
    untrusted.path.alwaysRules.offeredRule({ id: toolId("far", "go"), arguments: {} }),
    undefined,
  );
});

Deno.test("an answer for a session does not cover calls with unlisted members", async () => {
  await using at = await open();
  const { client } = clientOf();
  await answered(at, { client, reply: "Session" });
  assert.equal(await kindOf(at, client, { members: { params: { more: 1 } } }), "ask");
  assert.equal(await kindOf(at, client, { actor: "ci" }), "ask");
  assert.equal(await kindOf(at, client), "result");
});

Deno.test("an answer for a session ends with the definition that was shown", async () => {
  await using at = await open(FILE, { annotations: { readOnlyHint: true } });
  const { client } = clientOf();
  await answered(at, { client, reply: "Session" });
  at.shown.members = { annotations: { readOnlyHint: true, destructiveHint: true } };
  assert.equal(await kindOf(at, client), "ask");
  at.shown.members = { annotations: { readOnlyHint: true }, description: "other" };
  assert.equal(await kindOf(at, client), "ask");
  at.shown.members = { annotations: { readOnlyHint: true } };
  assert.equal(await kindOf(at, client), "ask", "a definition that comes back is asked about");
  assert.deepEqual(await at.answers(), []);
});

Deno.test("a deny wins over an answer for a session at once, and any other change ends it", async () => {
  await using at = await open();
  const { client } = clientOf();
  await answered(at, { client, reply: "Session" });
  await at.stage.change({ ...FILE, permissions: { deny: ["far:go"] } });
  await assert.rejects(kindOf(at, client), { code: "PERMISSION_DENIED" });
  assert.deepEqual(await at.answers(), []);
  await at.stage.change(FILE);
  assert.equal(await kindOf(at, client), "ask");
  await answered(at, { client, reply: "Session" });
  await at.stage.change({ ...FILE, permissions: { allow: ["other:tool"] } });
  assert.equal(await kindOf(at, client), "ask");
});

Deno.test("an answer for a session can be revoked, and a copy of its file allows nothing", async () => {
  await using at = await open();
  const { client } = clientOf();
  await answered(at, { client, reply: "Session" });
  const [{ id } = assert.fail()] = await at.answers();
  const folder = join(at.home, "sessions");
  await Deno.copyFile(join(folder, `${id}.json`), join(folder, `${"a".repeat(64)}.json`));
  for (const name of ["..", "", `../sessions/${id}`]) {
    assert.equal(revokeSessionAnswer(at.home, name), false);
  }
  assert.equal(revokeSessionAnswer(at.home, id), true);
  assert.equal(revokeSessionAnswer(at.home, id), false);
  assert.equal(await kindOf(at, client), "ask");
  // The answer is gone also if its file comes back.
  await Deno.copyFile(join(folder, `${"a".repeat(64)}.json`), join(folder, `${id}.json`));
  assert.equal(await kindOf(at, client), "ask");
});

Deno.test("the answers of an ended PML are removed by those who list them", async () => {
  await using at = await open();
  const { client } = clientOf();
  await answered(at, { client, reply: "Session" });
  const folder = join(at.home, "sessions");
  const [{ id } = assert.fail()] = await at.answers();
  const stored = JSON.parse(await Deno.readTextFile(join(folder, `${id}.json`)));
  const dead = await new Deno.Command("true").spawn();
  await dead.status;
  for (const [name, change] of [["b", { pid: dead.pid }], ["c", { expires: 1 }]] as const) {
    await Deno.writeTextFile(
      join(folder, `${name.repeat(64)}.json`),
      JSON.stringify({ ...stored, ...change }),
    );
  }
  assert.deepEqual((await at.answers()).map((one) => one.id), [id]);
  assert.deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name), [`${id}.json`]);
});

Deno.test("an answer for a session lasts 12 hours, and not beyond a clock that was set back", async () => {
  await using at = await open();
  const { policy, path: { alwaysRules: always } } = at.stage;
  const clock = { at: Date.now(), now: () => clock.at };
  using answers = new SessionAnswers({ policy, always, log: NO_WARNINGS, clock });
  const server = at.stage.directory.get("far");
  const definition = () => ({ name: "go", inputSchema: { type: "object" } });
  const { client } = clientOf();
  const call = resolvedContext({
    id: toolId("far", "go"),
    arguments: {},
    via: "call",
    actor: "local",
    callId: "1",
    cancellation: new Cancellation(),
    client,
  }, { server, definition });
  const since = clock.at;
  for (const [ms, isCovered] of [[12 * HOUR - 1, true], [12 * HOUR, false]] as const) {
    clock.at = since;
    await answers.keep(call);
    clock.at = since + ms;
    assert.equal(await answers.covers(call), isCovered);
  }
  clock.at = since;
  await answers.keep(call);
  clock.at = since - 1;
  assert.equal(await answers.covers(call), false);
});
