import assert from "node:assert/strict";
import type { ApprovalReply } from "../../protocol/answers.ts";
import type { Question } from "../../protocol/call.ts";
import { ApprovalRequests } from "./approval_requests.ts";

Deno.test("a reply that no question offers allows none of the calls that wait for it", async () => {
  using requests = new ApprovalRequests();
  const context = { owner: {}, signal: new AbortController().signal };
  const answers = [{ reply: "Yes" }, { reply: "Session" }, { reply: "No" }];
  const question = (
    handle: string,
  ) => ({ handle, shared: "the same", answers } as unknown as Question);
  const replies = {
    ...{ unoffered: "unoffered", Always: "unoffered", All: "unoffered" },
    ...{ Yes: "Yes", Session: "Yes", No: "No", Never: "No", cancelled: "cancelled" },
  } as const;
  for (const [reply, expected] of Object.entries(replies)) {
    assert.equal(await requests.replyTo(question("first"), context), undefined);
    const waiting = requests.replyTo(question("second"), context);
    requests.end("first", { reply: reply as ApprovalReply });
    assert.equal((await waiting)?.reply, expected);
  }
});
