import assert from "node:assert/strict";
import { YES_OR_NO } from "../protocol/answers.ts";
import type { JournalRecord } from "../audit/journal.ts";
import type { Call, Outcome } from "../protocol/call.ts";
import { textResult } from "../protocol/call.ts";
import { ERROR_CODES, PmlError } from "../core/errors.ts";
import { toolId } from "../core/tool_id.ts";
import { DENY, DONE, newCall, newPipeline } from "./_context_test.ts";
import { startOf } from "./record.ts";

const CALL: Call = newCall({
  id: toolId("filesystem", "read_file"),
  arguments: { path: "SECRET-PATH", options: { key: "SECRET-KEY" } },
  via: "batch",
  actor: "alice",
  callId: "c7",
});
const VERDICT = { ...DENY, rule: "filesystem:*", source: ".pml.json" };

async function recordsOf(
  run: () => Promise<Outcome>,
  verdict: Call["verdict"] = VERDICT,
): Promise<readonly JournalRecord[]> {
  using pipeline = newPipeline({ verdict, run });
  await pipeline.callTool(CALL).catch(() => undefined);
  return pipeline.records();
}

function gives(outcome: Outcome): () => Promise<Outcome> {
  return () => Promise.resolve(outcome);
}

Deno.test("the start record says who called what, the rule that decided and the shape", async () => {
  const [start] = await recordsOf(gives(DONE));
  assert.deepEqual(JSON.parse(JSON.stringify(start)), {
    kind: "start",
    callId: "c7",
    actor: "alice",
    via: "batch",
    tool: "filesystem:read_file",
    verdict: "deny",
    rule: "filesystem:*",
    source: ".pml.json",
    arguments: { path: "string(11)", options: { key: "string(10)" } },
  });
});

Deno.test("the arguments that a rule names are kept out of the journal", async () => {
  const rule = 'shell:exec({"command":\n"SECRET-COMMAND"})';
  const verdict = { kind: "allow", rule, source: ".pml.json" } as const;
  const records = await recordsOf(gives(DONE), verdict);
  assert.match(JSON.stringify(records), /"rule":"shell:exec\(\{\.\.\.\}\)"/);
  assert.doesNotMatch(JSON.stringify(records), /SECRET/);
});

Deno.test("a call has one start record and one end record, however it ends", async () => {
  const question = {
    handle: "h",
    text: "Run?",
    answers: YES_OR_NO,
    suggested: "Yes" as const,
    terminalOnly: false,
  };
  const cases: readonly (readonly [() => Promise<Outcome>, string, string?])[] = [
    [gives({ kind: "result", result: textResult("SECRET-RESULT") }), "result"],
    [gives({ kind: "result", result: { ...textResult("x"), isError: true } }), "tool error"],
    [gives({ kind: "ask", question }), "ask"],
    [() => Promise.reject(new Error("SECRET-MESSAGE")), "failed", "BUG"],
    [
      () => {
        throw new PmlError("TIMED_OUT", "SECRET-MESSAGE");
      },
      "failed",
      "TIMED_OUT",
    ],
  ];
  for (const [run, outcome, code] of cases) {
    const records = await recordsOf(run);
    assert.deepEqual(records.map((record) => record.kind), ["start", "end"]);
    const end = records[1];
    assert.ok(end?.kind === "end" && end.callId === "c7" && end.ms >= 0);
    assert.deepEqual([end.outcome, end.code], [outcome, code]);
    assert.doesNotMatch(JSON.stringify(records), /SECRET/);
  }
});

Deno.test("the end record has every code of the closed list", async () => {
  for (const code of ERROR_CODES) {
    const [, end] = await recordsOf(() => Promise.reject(new PmlError(code, "Cannot")));
    assert.ok(end?.kind === "end" && end.code === code);
  }
});

Deno.test("recorded outcomes and errors are passed on unchanged", async () => {
  const outcome: Outcome = { kind: "result", result: textResult("x") };
  using fine = newPipeline({ run: gives(outcome) });
  assert.equal(await fine.callTool(CALL), outcome);
  const error = new Error("x");
  using failing = newPipeline({ run: () => Promise.reject(error) });
  await assert.rejects(failing.callTool(CALL), (thrown) => thrown === error);
});

Deno.test("a call never reaches its server before its start is written, nor if it cannot be", async () => {
  let ran = false;
  const run = () => {
    ran = true;
    return Promise.resolve(DONE);
  };
  const written = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  using slow = newPipeline({
    run,
    checks: [
      () => isWritten ? undefined : assert.fail("a check began before the start was written"),
    ],
    written: () => {
      asked.resolve();
      return written.promise;
    },
  });
  let isWritten = false;
  const call = slow.callTool(CALL);
  await asked.promise;
  await Promise.resolve();
  assert.equal(ran, false);
  isWritten = true;
  written.resolve();
  await call;
  assert.equal(ran, true);

  ran = false;
  const refused = () => Promise.reject(new PmlError("AUDIT_UNAVAILABLE", "Cannot write"));
  using unwritten = newPipeline({ run, written: refused });
  await assert.rejects(unwritten.callTool(CALL), { code: "AUDIT_UNAVAILABLE" });
  assert.equal(ran, false);
});

Deno.test("a call that may run without a record says so, in a result and in an error", async () => {
  const written = () => Promise.reject(new PmlError("AUDIT_UNAVAILABLE", "Cannot write"));
  using fine = newPipeline({ written, mayRunUnrecorded: () => true });
  const outcome = await fine.callTool(CALL);
  assert.ok(outcome.kind === "result");
  const [done, lost, ...others] = outcome.result.content.map(({ text }) => text);
  assert.deepEqual([done, others], ["done", []]);
  assert.match(`${lost}`, /^PML: .*not recorded\. Cannot write$/);
  assert.deepEqual(outcome.result._meta, { "pml/journal": "not recorded" });
  using failing = newPipeline({
    written,
    mayRunUnrecorded: () => true,
    run: () => Promise.reject(new PmlError("TIMED_OUT", "late", { hint: "Ask for less" })),
  });
  await assert.rejects(failing.callTool(CALL), {
    code: "TIMED_OUT",
    hint: `Ask for less\n${lost}`,
  });
});

Deno.test("a call without a record runs as it was decided first, or not at all", async () => {
  const written = () => Promise.reject(new PmlError("AUDIT_UNAVAILABLE", "Cannot write"));
  let passes = 0;
  using pipeline = newPipeline({
    written,
    mayRunUnrecorded: () => true,
    checks: [() => ++passes === 1 ? "restart" : undefined],
    run: () => assert.fail("it ran"),
  });
  await assert.rejects(pipeline.callTool(CALL), { code: "OVERLOADED" });
  assert.equal(passes, 1);
});

Deno.test("startOf() records the size of arguments whose shape is too large (GX13)", () => {
  const call = { callId: "1", actor: "a", via: "call", id: "s:t" } as const;
  const names = (at: number) =>
    Object.fromEntries(
      Array.from({ length: 32 }, (_, n) => [`name_${at}_${n}_${"x".repeat(40)}`, 1]),
    );
  const large = Object.fromEntries(
    Array.from({ length: 32 }, (_, at) => [`group_${at}`, names(at)]),
  );
  const { arguments: shape, argumentsOmitted, argumentsBytes } = startOf({
    ...call,
    arguments: large,
  } as never);
  assert.deepEqual([shape, argumentsOmitted], [null, true]);
  assert.equal(argumentsBytes, new TextEncoder().encode(JSON.stringify(large)).length);
  const small = startOf({ ...call, arguments: { é: "é" } } as never);
  assert.deepEqual(Object.keys(small).filter((key) => key.startsWith("arguments")), ["arguments"]);
});
