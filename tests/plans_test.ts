/**
 * Plans through a spawned PML, in both revisions: questions, stored outputs, notifications during a
 * run, and the journal.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { ERAS, type Json, type Message } from "./kit/json_rpc.ts";
import type { RawStdio } from "./kit/raw_stdio.ts";
import { runPmlOnTerminal } from "./kit/run.ts";
import { until, waitUntil } from "./kit/wait.ts";
import {
  batchedCalls,
  codeOf,
  endWell,
  eventsOf,
  journalOf,
  ofKind,
  textOf,
} from "./attacks/oracles.ts";
import { answerOf, picked, questionOf, read } from "./attacks/questions.ts";
import { makeScene, type SceneOptions } from "./attacks/stage.ts";

const CAN_ASK = { elicitation: { form: {} } } as const;

/** A module that waits, fails while a file exists, and returns large results. */
const STEPS = {
  files: {
    "steps.js": `
      const any = { type: "object" };
      export const __meta__ = {
        name: "steps", version: "1.0.0", permissions: { read: ["."] },
        tools: {
          sleep: {
            inputSchema: {
              type: "object",
              properties: { ms: { type: "integer" }, then: {} },
              required: ["ms"],
              additionalProperties: false,
            },
          },
          fragile: { inputSchema: any },
          many: { inputSchema: any },
          checked: { inputSchema: any, outputSchema: any },
        },
      };
      export async function sleep({ ms, then = null }) {
        await new Promise((resolve) => setTimeout(resolve, ms));
        return { then };
      }
      export async function fragile({ path }) {
        const text = await Deno.readTextFile(path);
        if (text === "broken") throw new Error("it is broken");
        return text;
      }
      export const many = () => Array.from({ length: 3000 }, (_, id) => ({ id, name: "n" + id }));
      export const checked = () => ({ items: many() });`,
  },
  pml: {
    version: 1,
    permissions: { allow: ["steps:*", "filesystem:read_file"] },
    private_mcps: { steps: { type: "deno", path: "steps.js" } },
  },
} as const;

function scene(options: SceneOptions = {}) {
  return makeScene({ ...STEPS, ...options });
}

function planOf(...tasks: readonly Record<string, unknown>[]) {
  return { name: "execute_workflow", arguments: { plan: { tasks } } };
}

function sleep(id: string, more: Record<string, unknown> = {}) {
  return { id, tool: "steps:sleep", arguments: { ms: 1 }, ...more };
}

function write(id: string, path: unknown, content = "made") {
  return { id, tool: "filesystem:write_file", arguments: { path, content } };
}

function told(message: Message): Json {
  const text = textOf(message);
  assert.ok(text.startsWith("{"), text);
  return JSON.parse(text);
}

async function ran(pml: RawStdio, args: Record<string, unknown>): Promise<Json> {
  return told(await pml.callTool("execute_workflow", args));
}

for (const era of ERAS) {
  Deno.test(`a plan asks once for all known calls, and for the rest while others run, on ${era}`, async () => {
    await using at = await scene({ era, trusted: false, capabilities: CAN_ASK });
    const { ws, pml } = at;
    const approval = await questionOf(
      pml,
      planOf(
        { id: "name", tool: "steps:sleep", arguments: { ms: 1, then: "late.txt" } },
        write("now", "now.txt"),
        write("late", { $ref: "name#/then" }),
        { id: "read", tool: "filesystem:read_file", arguments: { path: "good.txt" } },
        { id: "after", tool: "steps:sleep", arguments: { ms: 1 }, depends_on: ["late"] },
      ),
    );
    // One question for the trust in the file, with the calls that need it, and for the calls that
    // ask.
    assert.match(approval.text, /these 4 calls[^]*PML trusts the workspace file[^]*now\.txt/);
    assert.match(approval.text, /server "steps": a module[^]*runs unasked: steps:\*/);
    assert.doesNotMatch(approval.text, /"path": "late/);
    assert.deepEqual(approval.replies, ["Yes", "No"]);
    assert.equal(ofKind(await journalOf(ws), "start").length, 0, "something ran before the yes");
    const before = pml.messages.length;
    const first = approval.answer(picked("Yes"));
    const lateText = (message: Message) => {
      const [one] = Object.values(message.result?.inputRequests ?? {});
      const { message: text } = (message.params ?? one?.params ?? {}) as { message?: string };
      return text ?? "";
    };
    const isLate = (message: Message) => lateText(message).includes('"late.txt"');
    assert.ok(await waitUntil(() => pml.messages.slice(before).some(isLate)));
    // The other tasks ran meanwhile.
    const done = async () =>
      (await readFile(ws.file("now.txt"), "utf8").catch(() => "")) === "made";
    assert.ok(await waitUntil(done));
    const question = pml.messages.slice(before).find(isLate);
    assert.ok(question !== undefined);
    assert.match(lateText(question), /may "filesystem:write_file" run\?/);
    const answer = await replied(pml, { question, first, call: approval });
    const { done: states } = told(answer);
    assert.deepEqual(Object.keys(states ?? {}).sort(), ["after", "late", "name", "now", "read"]);
    assert.equal(await readFile(ws.file("late.txt"), "utf8"), "made");
    const ends = async () => ofKind(await journalOf(ws), "end");
    await until(async () =>
      (await ends()).filter(({ outcome }) => outcome === "result").length === 5
    );
    await endWell(ws, pml);
  });
}

Deno.test("all errors of a plan are reported at once, before anything runs", async () => {
  await using at = await scene({ era: "2025-11-25", capabilities: CAN_ASK });
  const { ws, pml } = at;
  const from = { $ref: "fine#/then" };
  const answer = await answerOf(
    pml,
    planOf(
      sleep("fine"),
      write("asks", "made.txt"),
      sleep("mistyped", { arguments: { ms: "1" } }),
      sleep("missing", { arguments: { then: from } }),
      sleep("extra", { arguments: { ms: from, more: 1 } }),
      sleep("beside", { arguments: { ms: "1", then: from } }),
      sleep("element", { for_each: [1, "2"], arguments: { ms: { $ref: "$item" } } }),
      { id: "unknown", tool: "steps:slep", arguments: {} },
      { id: "nowhere", tool: "no-such-server:x", arguments: { x: from } },
      sleep("kept", { arguments: { ms: { $ref: "aaaaaaaaaaaa.x" } } }),
      sleep("open", { arguments: { ms: from } }),
    ),
  );
  assert.equal(codeOf(answer), "BAD_ARGUMENTS");
  const lines = textOf(answer).split("\n").filter((line) => line.startsWith("task "));
  const wanted: readonly (readonly [string, RegExp])[] = [
    ["mistyped", /"steps:sleep": ms: .* not integer$/],
    ["missing", /Missing argument: ms/],
    ["extra", /"more"/],
    ["beside", / not integer/],
    ["element", / not integer/],
    ["unknown", /Cannot find the tool "steps:slep"; "steps" has sleep, fragile/],
    ["nowhere", /Cannot find the tool "no-such-server:x"/],
    ["kept", /Cannot find the result "aaaaaaaaaaaa.x"/],
  ];
  for (const [id, what] of wanted) {
    assert.match(lines.find((line) => line.startsWith(`task "${id}": `)) ?? id, what);
  }
  assert.equal(lines.length, wanted.length, lines.join("\n"));
  assert.equal(ofKind(await journalOf(ws), "start").length, 0);
  await endWell(ws, pml);
});

Deno.test("a No to a plan runs none of its calls", async () => {
  await using at = await scene({ era: "2026-07-28", capabilities: CAN_ASK });
  const { ws, pml } = at;
  const question = await questionOf(pml, planOf(sleep("a"), write("w", "made.txt")));
  await read();
  assert.equal(codeOf(await question.answer(picked("No"))), "APPROVAL_DECLINED");
  assert.equal(ofKind(await journalOf(ws), "start").length, 0);
  const alone = await answerOf(
    pml,
    planOf(...Array(11).fill(0).map((_, n) => write(`w${n}`, "x"))),
  );
  // A plan of more than ten calls is approved on the terminal.
  assert.equal(codeOf(alone), "APPROVAL_REQUIRED");
  assert.match(textOf(alone), /`pml approve`/);
  await endWell(ws, pml);
});

Deno.test("a plan that was approved on a terminal runs once", async () => {
  await using at = await scene({ era: "2025-11-25" });
  const { ws, pml } = at;
  const plan = planOf(sleep("a"), write("one", "1.txt"), write("two", "2.txt"));
  assert.equal(codeOf(await answerOf(pml, plan)), "APPROVAL_REQUIRED");
  await runPmlOnTerminal(ws, ["approve"], { typed: [["Approve exactly this call?", "y"]] });
  assert.deepEqual(Object.keys(told(await answerOf(pml, plan)).done ?? {}), ["a", "one", "two"]);
  assert.equal(codeOf(await answerOf(pml, plan)), "APPROVAL_REQUIRED");
  // A call with late arguments is approved late, and the run continues after the approval.
  const { run, failed } = told(
    await answerOf(
      pml,
      planOf(
        sleep("name", { arguments: { ms: 1, then: "3.txt" } }),
        write("late", { $ref: "name#/then" }),
      ),
    ),
  );
  assert.equal(String(failed?.late?.error?.code), "APPROVAL_REQUIRED");
  const hint = String(failed?.late?.error?.hint);
  assert.match(hint, /^This call was not run\./);
  assert.ok(hint.endsWith(`, then run execute_workflow {"resume":"${run}"}`), hint);
  await runPmlOnTerminal(ws, ["approve"], {
    typed: [["Approve exactly this call?", "n"], ["Approve exactly this call?", "y"]],
  });
  const again = await ran(pml, { resume: String(run) });
  assert.deepEqual([again.done?.name as unknown, again.done?.late?.state], [
    "earlier",
    undefined,
  ]);
  assert.equal(await readFile(ws.file("3.txt"), "utf8"), "made");
  await endWell(ws, pml);
});

Deno.test("failed tasks of a plan run again, and completed ones do not", async () => {
  const prepare: SceneOptions["prepare"] = (ws) => writeFile(ws.file("state"), "broken");
  await using at = await scene({ era: "2026-07-28", prepare });
  const { ws, pml } = at;
  const tasks = [
    sleep("first"),
    { id: "second", tool: "steps:fragile", arguments: { path: "state" }, depends_on: ["first"] },
    { id: "third", tool: "steps:sleep", arguments: { ms: 1, then: { $ref: "second" } } },
  ];
  const { run, done, failed, not_run: left } = await ran(pml, { plan: { tasks } });
  assert.deepEqual(Object.keys(done ?? {}), ["first"]);
  assert.match(JSON.stringify(failed), /it is broken/);
  assert.match(JSON.stringify(left), /it needs \\"second\\", which failed/);
  await writeFile(ws.file("state"), "well");
  const again = await ran(pml, { resume: String(run) });
  assert.equal(again.done?.first as unknown, "earlier");
  assert.equal(again.done?.third?.output?.then as unknown, "well");
  const starts = ofKind(await journalOf(ws), "start");
  const tools = starts.map(({ tool, via, run }) => [tool, via, run]);
  const of = (tool: string) => [`steps:${tool}`, "plan", run];
  assert.deepEqual(tools, [of("sleep"), of("fragile"), of("fragile"), of("sleep")]);
  const events = async () => (await eventsOf(ws)).filter((event) => event.startsWith("plan"));
  // The last record is written without a wait.
  await until(async () => (await events()).length === 4);
  assert.deepEqual(await events(), ["plan began", "plan ended", "plan began", "plan ended"]);
  const changed = { tasks: [sleep("first", { arguments: { ms: 2 } })] };
  const refused = await pml.callTool("execute_workflow", { plan: changed, resume: String(run) });
  assert.match(
    textOf(refused),
    /^BAD_ARGUMENTS: .*"first" changed/,
  );
  await endWell(ws, pml);
});

Deno.test("the error of a plan names the tasks that may have run", async () => {
  await using at = await scene({ era: "2025-11-25", limits: { call_ms: 5_000 } });
  const no = { id: "each", tool: "steps:fragile", for_each: ["no"], arguments: { path: "no" } };
  const tasks = [sleep("late", { arguments: { ms: 60_000 } }), no];
  const { run, may_have_run: unsure } = await ran(at.pml, { plan: { tasks } });
  assert.ok((unsure as unknown as string[]).includes("late"));
  const mended = [sleep("late"), sleep("each", { for_each: [1], arguments: { ms: 2 } })];
  const again = await ran(at.pml, { plan: { tasks: mended }, resume: String(run) });
  assert.deepEqual([again.retry, again.may_have_run], [undefined, undefined]);
  await endWell(at.ws, at.pml);
});

Deno.test("a large output is stored as a resource, and read in parts", async () => {
  await using at = await scene({ era: "2026-07-28", limits: { inline_bytes: 2000 } });
  const { ws, pml } = at;
  const { run, done, read: how } = await ran(pml, {
    plan: { tasks: [{ id: "all", tool: "steps:many" }] },
  });
  const uri = `pml://results/${run}.all`;
  assert.equal(done?.all?.kept as unknown, uri);
  assert.equal(done?.all?.shape as unknown, "array(3000) of {id: number, name: string}");
  assert.match(String(how), /execute_workflow \{"read":"pml:\/\/results\//);
  const part = await ran(pml, { read: `${uri}?offset=2999#` });
  assert.deepEqual(part, { value: [{ id: 2999, name: "n2999" }], offset: 2999, total: 3000 });
  const { result } = await pml.request("resources/read", { uri: `${uri}#/7/name` });
  const [content] = (result?.contents ?? []) as unknown as { text: string }[];
  assert.deepEqual(JSON.parse(content?.text ?? ""), { value: "n7", total: 2 });
  const shown = async (uri: string) => {
    const { result } = await pml.request("resources/read", { uri });
    const [content] = (result?.contents ?? []) as unknown as { text: string }[];
    const { value, total } = JSON.parse(content?.text ?? "");
    return [value[0].name, total];
  };
  assert.deepEqual(await shown(uri), ["n0", 3000]);
  const templates = await pml.request("resources/templates/list");
  assert.match(JSON.stringify(templates.result), /pml:\/\/results\/\{output\}/);
  const later = await ran(pml, {
    plan: { tasks: [sleep("x", { arguments: { ms: 1, then: { $ref: `${run}.all#/5/id` } } })] },
  });
  assert.equal(later.done?.x?.output?.then as unknown, 5);
  const single = await pml.callTool("call", { tool: "steps:many" });
  const kept = /pml:\/\/results\/\S+?result/.exec(textOf(single))?.[0] ?? "";
  assert.match(kept, /^pml:\/\/results\/[a-z2-7]{12}\.result$/);
  assert.equal((await ran(pml, { read: `${kept}#/1/id` })).value as unknown, 1);
  assert.deepEqual(await shown(kept), ["n0", 3000]);
  const calls = [{ tool: "steps:many" }, { tool: "steps:checked" }];
  const [first, second] = batchedCalls(await pml.callTool("batch", { calls }));
  assert.deepEqual(await shown(String(first?.content[1]?.uri)), ["n0", 3000]);
  assert.equal(JSON.parse(String(second?.content[0]?.text)).items.length, 3000);
  // A client that knows an output schema gets the whole result.
  const whole = await pml.callTool("steps__checked");
  assert.equal((whole.result?.structuredContent?.items as unknown as unknown[]).length, 3000);
  const gone = await pml.request("resources/read", { uri: "pml://results/aaaaaaaaaaaa.all" });
  assert.match(JSON.stringify(gone.error), /it is not kept/);
  await endWell(ws, pml);
});

Deno.test("a plan reports its progress, and a client may cancel it", async () => {
  await using at = await scene({ era: "2025-11-25" });
  const { ws, pml } = at;
  const plan = planOf(sleep("a"), sleep("b", { depends_on: ["a"] }));
  await pml.request("tools/call", { ...plan, _meta: { progressToken: "p" } });
  const progress = pml.messages.filter(({ method }) => method === "notifications/progress");
  assert.deepEqual(progress.map(({ params }) => params?.message), [
    "a: done (1 of 2)",
    "b: done (2 of 2)",
  ]);
  const long = planOf(
    sleep("a", { arguments: { ms: 600_000 } }),
    sleep("b", { depends_on: ["a"] }),
  );
  const { id, answer } = pml.begin("tools/call", long);
  answer.catch(() => {}); // it never comes
  const starts = async () => ofKind(await journalOf(ws), "start").length;
  assert.ok(await waitUntil(async () => await starts() === 3));
  await pml.notify("notifications/cancelled", { requestId: id });
  const ends = async () => ofKind(await journalOf(ws), "end");
  assert.ok(await waitUntil(async () => (await ends()).length === 3));
  assert.equal((await ends()).at(-1)?.code, "CANCELLED");
  assert.equal(await starts(), 3, "a task began after the cancellation");
});

/** Answers the question that came during a plan, and returns the plan's answer. */
async function replied(
  pml: RawStdio,
  { question, first, call }: {
    readonly question: Message;
    readonly first: Promise<Message>;
    readonly call: Awaited<ReturnType<typeof questionOf>>;
  },
): Promise<Message> {
  const { id, method, result } = question;
  if (method !== undefined) {
    await pml.sendJson({ jsonrpc: "2.0", id, result: picked("Yes") });
    return await first;
  }
  assert.notEqual(String(result?.requestState), call.state);
  const [key = ""] = Object.keys(result?.inputRequests ?? {});
  return await pml.request("tools/call", {
    ...call.call,
    requestState: String(result?.requestState),
    inputResponses: { [key]: picked("Yes") },
  });
}
