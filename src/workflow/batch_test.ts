import assert from "node:assert/strict";
import { type Call, type Outcome, type Question, textResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { type ToolId, toolId } from "../core/tool_id.ts";
import { type Asked, type BatchCall, type BatchOptions, runBatch } from "./batch.ts";

const QUESTION: Question = { handle: "h", text: "?", always: false, terminalOnly: false };

function batchCall(tool: string): BatchCall {
  return {
    id: undefined,
    tool,
    call: {
      id: toolId("s", tool),
      arguments: {},
      via: "batch",
      actor: "local",
      signal: new AbortController().signal,
      callId: tool,
    },
  };
}

function house(asked: Asked) {
  const ran: string[] = [];
  const askedFor: string[][] = [];
  const options: BatchOptions = {
    callTool: (call: Call): Promise<Outcome> => {
      if (call.id === "s:bad") return Promise.reject(new PmlError("BAD_ARGUMENTS", "no"));
      if (call.id === "s:denied") return Promise.reject(new PmlError("PERMISSION_DENIED", "no"));
      if (call.id === "s:asks" && call.answer === undefined) {
        return Promise.resolve({ kind: "ask", question: QUESTION });
      }
      ran.push(call.id);
      return Promise.resolve({ kind: "result", result: textResult(call.id) });
    },
    judge: (id: ToolId) => ({
      kind: id === "s:asks" || id === "s:bad" ? "ask" : id === "s:denied" ? "deny" : "allow",
      rule: "x",
      source: "x",
    }),
    check: (call) =>
      call.id === "s:bad" ? Promise.reject(new PmlError("BAD_ARGUMENTS", "no")) : Promise.resolve(),
    ask: (calls) => {
      askedFor.push(calls.map((call) => call.id));
      return Promise.resolve(asked);
    },
  };
  return { options, ran, askedFor };
}

Deno.test("runBatch() runs nothing before the one question is answered", async () => {
  const { options, ran, askedFor } = house({ kind: "ask", question: QUESTION });
  const outcome = await runBatch(["a", "asks", "denied", "bad"].map(batchCall), options);
  assert.equal(outcome.kind, "ask");
  assert.deepEqual([ran, askedFor], [[], [["s:asks"]]]);
});

Deno.test("runBatch() gives results in order, and one failure stops no other", async () => {
  const answers = new Map([["asks", { handle: "t", reply: "Yes" as const }]]);
  const { options, ran } = house({ kind: "answers", answers });
  const unknown = { id: "u", tool: "??", call: new PmlError("UNKNOWN_TOOL", "no") };
  const calls = [...["denied", "asks", "bad", "a"].map(batchCall), unknown];
  const outcome = await runBatch(calls, options);
  assert.ok(outcome.kind === "items");
  assert.deepEqual(outcome.items.map(({ tool, error }) => [tool, error?.code]), [
    ["denied", "PERMISSION_DENIED"],
    ["asks", undefined],
    ["bad", "BAD_ARGUMENTS"],
    ["a", undefined],
    ["??", "UNKNOWN_TOOL"],
  ]);
  assert.deepEqual(ran.sort(), ["s:a", "s:asks"]);
});

Deno.test("runBatch() judges each call with its arguments", async () => {
  const { options } = house({ kind: "ask", question: QUESTION });
  const seen: unknown[] = [];
  const judge: BatchOptions["judge"] = (id, args) => {
    seen.push([id, args]);
    return options.judge(id, args);
  };
  const one = batchCall("a");
  await runBatch([one], { ...options, judge });
  assert.ok(!(one.call instanceof PmlError));
  assert.deepEqual(seen, [[one.call.id, one.call.arguments]]);
});

Deno.test("runBatch() asks nobody where nothing asks", async () => {
  const { options, askedFor } = house({ kind: "ask", question: QUESTION });
  const outcome = await runBatch([batchCall("a"), batchCall("bad")], options);
  assert.equal(outcome.kind, "items");
  assert.deepEqual(askedFor, []);
});
