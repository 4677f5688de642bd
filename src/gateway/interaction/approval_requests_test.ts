import assert from "node:assert/strict";
import type { Question } from "../../protocol/call.ts";
import { ApprovalRequests } from "./approval_requests.ts";

Deno.test("a reply that no question offers allows none of the calls that wait for it", async () => {
  using requests = new ApprovalRequests();
  const context = { owner: {}, signal: new AbortController().signal };
  const question = (handle: string) => ({ handle, shared: "the same" } as Question);
  assert.equal(await requests.replyTo(question("first"), context), undefined);
  const waiting = requests.replyTo(question("second"), context);
  requests.end("first", { reply: "unoffered" });
  assert.equal((await waiting)?.reply, "unoffered");
});
