import assert from "node:assert/strict";
import { YES_OR_NO } from "../protocol/answers.ts";
import {
  type ApprovalAnswer,
  type Call,
  NO_CLIENT,
  type Outcome,
  type Question,
  textResult,
} from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { PmlError } from "../core/errors.ts";
import { toolId } from "../core/tool_id.ts";
import { type BatchCall, type BatchParts, runBatch } from "./batch.ts";

const QUESTION: Question = {
  handle: "h",
  text: "?",
  answers: YES_OR_NO,
  suggested: "Yes",
  terminalOnly: false,
};

function batchCall(tool: string): BatchCall {
  return {
    id: undefined,
    tool,
    call: {
      id: toolId("s", tool),
      arguments: {},
      via: "batch",
      actor: "local",
      cancellation: new Cancellation(),
      client: NO_CLIENT,
      callId: tool,
    },
  };
}

function house(answers: ReadonlyMap<string, ApprovalAnswer> | PmlError = new Map()) {
  const ran: string[] = [];
  const askedFor: string[][] = [];
  const options: BatchParts = {
    callTool: (call: Call): Promise<Outcome> => {
      if (call.id === "s:bad") return Promise.reject(new PmlError("BAD_ARGUMENTS", "no"));
      if (call.id === "s:asks" && call.answer === undefined) {
        return Promise.resolve({ kind: "ask", question: QUESTION });
      }
      ran.push(call.id);
      return Promise.resolve({ kind: "result", result: textResult(call.id) });
    },
    preflight: {
      askForAll: (calls) => {
        askedFor.push(calls.map((call) => call.id));
        return answers instanceof PmlError ? Promise.reject(answers) : Promise.resolve(answers);
      },
    },
    resultsMax: 1_000,
  };
  return { options, ran, askedFor };
}

Deno.test("runBatch() runs nothing if the user does not approve", async () => {
  const { options, ran, askedFor } = house(new PmlError("APPROVAL_DECLINED", "no"));
  await assert.rejects(runBatch(["a", "asks"].map(batchCall), options), {
    code: "APPROVAL_DECLINED",
  });
  assert.deepEqual([ran, askedFor], [[], [["s:a", "s:asks"]]]);
});

Deno.test("runBatch() returns results in order, and a failure stops no other call", async () => {
  const { options, ran } = house(new Map([["asks", { handle: "t", reply: "Yes" as const }]]));
  const unknown = { id: "u", tool: "??", call: new PmlError("UNKNOWN_TOOL", "no") };
  const items = await runBatch([...["asks", "bad", "a"].map(batchCall), unknown], options);
  assert.deepEqual(items.map(({ tool, error }) => [tool, error?.code]), [
    ["asks", undefined],
    ["bad", "BAD_ARGUMENTS"],
    ["a", undefined],
    ["??", "UNKNOWN_TOOL"],
  ]);
  assert.deepEqual(ran.sort(), ["s:a", "s:asks"]);
});

Deno.test("runBatch() asks again about a call that changed since the approval request", async () => {
  const { options, ran } = house();
  const one = batchCall("asks");
  assert.ok(!(one.call instanceof PmlError));
  const onQuestion = () => Promise.resolve({ handle: "h", reply: "Yes" as const });
  const [alone] = await runBatch([one], options);
  assert.equal(alone?.error?.code, "APPROVAL_REQUIRED");
  const [item] = await runBatch(
    [{ ...one, call: { ...one.call, client: { onQuestion } } }],
    options,
  );
  assert.equal(item?.error, undefined);
  assert.deepEqual(ran, ["s:asks"]);
});

Deno.test("runBatch() returns as many results as fit, in any order", async () => {
  const { options } = house();
  const sizes: Readonly<Record<string, number>> = { "s:a": 600, "s:b": 600, "s:c": 10 };
  const callTool = ({ id }: Call): Promise<Outcome> =>
    Promise.resolve({ kind: "result", result: textResult("x".repeat(sizes[id] ?? 0)) });
  const items = await runBatch(["a", "b", "c"].map(batchCall), { ...options, callTool });
  assert.deepEqual(items.map(({ error }) => error?.code), [
    undefined,
    "RESULT_TOO_LARGE",
    undefined,
  ]);
  assert.equal(items[1]?.result, undefined);
});
