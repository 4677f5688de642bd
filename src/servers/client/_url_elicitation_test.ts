import assert from "node:assert/strict";
import { type Call, type CallClient, NO_CLIENT } from "../../protocol/call.ts";
import { Cancellation } from "../../core/cancellation.ts";
import type { ToolId } from "../../core/tool_id.ts";
import { yieldTurn } from "../../io/waiting.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";
import { FinishedElicitations } from "./_url_elicitation.ts";

const PAGE = { elicitationId: "1", url: "https://example.com/sign-in", message: "Sign in" };
const REQUIRED = new RpcError(ERROR.urlElicitationRequired, "Sign in", { elicitations: [PAGE] });
const AGREES: Pick<CallClient, "onServerRequest" | "onOpen"> = {
  onServerRequest: () => Promise.resolve({ action: "accept" }),
  onOpen: () => Promise.resolve(true),
};

function callOf(cancellation = new Cancellation()): Call {
  return {
    ...{ id: "s:t" as ToolId, arguments: {}, via: "tools/call", actor: "local", callId: "1" },
    ...{ cancellation, client: { ...NO_CLIENT, ...AGREES } },
  };
}

Deno.test("every call that waits for a page goes on when the user has finished it", async () => {
  const elicitations = new FinishedElicitations();
  const cancellation = new Cancellation();
  const cancelled = elicitations.open(REQUIRED, "s", callOf(cancellation));
  const calls = [1, 2].map(() => elicitations.open(REQUIRED, "s", callOf()));
  const wentOn: number[] = [];
  calls.forEach((call, at) => void call.then(() => wentOn.push(at)));
  await yieldTurn();
  cancellation.cancel(new Error("no more"));
  await assert.rejects(cancelled, /no more/);
  elicitations.note("other", { elicitationId: "1" });
  await yieldTurn();
  assert.deepEqual(wentOn, []);
  elicitations.note("s", { elicitationId: "1" });
  await yieldTurn();
  assert.deepEqual(wentOn, [0, 1]);
  assert.equal(await elicitations.open(REQUIRED, "s", callOf()), true, "it is finished");
});

Deno.test("a call goes on within a minute if the server does not report the end of a page", async () => {
  const { setTimeout } = globalThis;
  const delays: number[] = [];
  const atOnce = (act: () => void, ms: number) => {
    delays.push(ms);
    return setTimeout(act);
  };
  Object.assign(globalThis, { setTimeout: atOnce });
  try {
    assert.equal(await new FinishedElicitations().open(REQUIRED, "s", callOf()), true);
  } finally {
    Object.assign(globalThis, { setTimeout });
  }
  // Clients time out after 60 s by default, and the repeated request takes time, too.
  assert.deepEqual(delays.map((ms) => ms <= 50_000), [true]);
});
