import assert from "node:assert/strict";
import { Cancellation } from "../../core/cancellation.ts";
import type { Json, JsonObject } from "../../core/json.ts";
import { type RequestOptions, withoutClient } from "../../protocol/rpc_peer.ts";
import { sendToolCall } from "./_server_call.ts";
import type { ServerConnection } from "./connection.ts";

/** The methods of the requests that a server gets for a call with members, and their members. */
async function sentFor(
  facts: { readonly isStateless: boolean; readonly runsTasks: boolean },
  results: Readonly<Record<string, Json>>,
): Promise<readonly unknown[]> {
  const sent: unknown[] = [];
  const connection = {
    ...facts,
    request: (method: string, _: JsonObject, { members }: RequestOptions) => {
      sent.push([method, members]);
      return Promise.resolve(results[method] ?? {});
    },
    answersTo: () => Promise.resolve({}),
  } as unknown as ServerConnection;
  const call = { ...withoutClient(new Cancellation()), members: { message: { more: 1 } } };
  await sendToolCall(connection, { name: "t" }, { call, support: () => "required" });
  return sent;
}

Deno.test("only the call itself has the members of the client, not the requests about its task", async () => {
  const members = { message: { more: 1 } };
  const begun = { task: { taskId: "a", status: "working" } };
  const older = await sentFor({ isStateless: false, runsTasks: true }, { "tools/call": begun });
  assert.deepEqual(older, [["tools/call", members], ["tasks/result", undefined]]);
  const newest = await sentFor({ isStateless: true, runsTasks: false }, {
    "tools/call": { resultType: "task", taskId: "a" },
    "tasks/get": { status: "completed", result: {} },
  });
  assert.deepEqual(newest, [["tools/call", members], ["tasks/get", undefined]]);
});
