import assert from "node:assert/strict";
import type { Call, CallTool, Outcome } from "../core/call.ts";
import { textResult } from "../core/call.ts";
import { ERROR_CODES, PmlError } from "../core/errors.ts";
import { toolId } from "../core/tool_id.ts";
import { auditGate, startOf } from "./gate.ts";
import type { JournalRecord } from "./journal.ts";

const CALL: Call = {
  id: toolId("filesystem", "read_file"),
  arguments: { path: "SECRET-PATH", options: { key: "SECRET-KEY" } },
  via: "batch",
  actor: "alice",
  signal: new AbortController().signal,
  callId: "c7",
  verdict: { kind: "deny", rule: "filesystem:*", source: ".pml.json" },
};

async function recordsOf(next: CallTool, call = CALL): Promise<JournalRecord[]> {
  const records: JournalRecord[] = [];
  const journal = {
    write: (record: JournalRecord) => Promise.resolve(void records.push(record)),
    note: (record: JournalRecord) => void records.push(record),
  };
  await auditGate(journal)(next)(call).catch(() => undefined);
  return records;
}

function gives(outcome: Outcome): CallTool {
  return () => Promise.resolve(outcome);
}

Deno.test("auditGate() writes who called what, the rule that decided and the shape", async () => {
  const [start] = await recordsOf(gives({ kind: "result", result: textResult("x") }));
  assert.deepEqual(start, {
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

Deno.test("auditGate() keeps the arguments that a rule names out of the journal", async () => {
  const rule = 'shell:exec({"command":\n"SECRET-COMMAND"})';
  const verdict = { kind: "allow", rule, source: ".pml.json" } as const;
  const done: Outcome = { kind: "result", result: textResult("x") };
  const records = await recordsOf(gives(done), { ...CALL, verdict });
  assert.match(JSON.stringify(records), /"rule":"shell:exec\(\{\.\.\.\}\)"/);
  assert.doesNotMatch(JSON.stringify(records), /SECRET/);
});

Deno.test("auditGate() writes one start and one end, however the call ends", async () => {
  const question = { handle: "h", text: "Run?", always: true, terminalOnly: false };
  const cases: readonly (readonly [CallTool, string, string?])[] = [
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
  for (const [next, outcome, code] of cases) {
    const records = await recordsOf(next);
    assert.deepEqual(records.map((record) => record.kind), ["start", "end"]);
    const end = records[1];
    assert.ok(end?.kind === "end" && end.callId === "c7" && end.ms >= 0);
    assert.deepEqual([end.outcome, end.code], [outcome, code]);
    assert.doesNotMatch(JSON.stringify(records), /SECRET/);
  }
});

Deno.test("auditGate() records every code of the closed list", async () => {
  for (const code of ERROR_CODES) {
    const [, end] = await recordsOf(() => Promise.reject(new PmlError(code, "Cannot")));
    assert.ok(end?.kind === "end" && end.code === code);
  }
});

Deno.test("auditGate() passes outcomes and errors on unchanged", async () => {
  const journal = { write: () => Promise.resolve(), note: () => {} };
  const outcome: Outcome = { kind: "result", result: textResult("x") };
  assert.equal(await auditGate(journal)(gives(outcome))(CALL), outcome);
  const error = new Error("x");
  await assert.rejects(
    auditGate(journal)(() => Promise.reject(error))(CALL),
    (thrown) => thrown === error,
  );
});

Deno.test("auditGate() never reaches the tool before its start is written, nor if it cannot be", async () => {
  let ran = false;
  const next: CallTool = () => {
    ran = true;
    return Promise.resolve({ kind: "result", result: textResult("x") });
  };
  let written = () => {};
  const write = () => new Promise<void>((resolve) => written = resolve);
  const call = auditGate({ write, note: () => {} })(next)(CALL);
  await Promise.resolve();
  assert.equal(ran, false);
  written();
  await call;
  assert.equal(ran, true);

  ran = false;
  const refused = () => Promise.reject(new PmlError("AUDIT_UNAVAILABLE", "Cannot write"));
  await assert.rejects(auditGate({ write: refused, note: () => {} })(next)(CALL), {
    code: "AUDIT_UNAVAILABLE",
  });
  assert.equal(ran, false);
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
