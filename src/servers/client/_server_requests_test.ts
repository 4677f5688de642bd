import assert from "node:assert/strict";
import { PmlError } from "../../core/errors.ts";
import { LimitedLog } from "../../io/limited_log.ts";
import { RpcError } from "../../protocol/errors.ts";
import { answerRequest } from "./_server_requests.ts";
import { NO_CLIENTS, upstreamsHost } from "./_upstreams_host_test.ts";

function answered(
  onServerRequest: () => Promise<never>,
  { method = "elicitation/create", onLog = (_: string) => {} } = {},
): Promise<unknown> {
  const request = {
    method,
    params: { message: "Which one?" },
    signal: new AbortController().signal,
    during: undefined,
  };
  const host = upstreamsHost("/nowhere", {
    limits: { startMs: 0, catalogTools: 0, idleMs: 0, idleChildren: 0 },
    upstreamOf: () => assert.fail("no server is looked for"),
    clients: { ...NO_CLIENTS, onRequest: onServerRequest },
    logServer: (_, __, text) => onLog(text),
  });
  return answerRequest(request, { name: "s", host, refusals: new LimitedLog() });
}

Deno.test("an error response of the client is not taken for one of the server", async () => {
  const error = await answered(() => Promise.reject(new RpcError(-1, "no", { a: 1 })))
    .catch((error) => error);
  assert.ok(error instanceof PmlError);
  assert.equal(error.message, "no");
  assert.deepEqual(error.detail?.answered, { code: -1, message: "no", data: { a: 1 } });
});

Deno.test("other errors of a request to the client pass unchanged", async () => {
  const error = new PmlError("TIMED_OUT", "late");
  await assert.rejects(answered(() => Promise.reject(error)), error);
});

Deno.test("a server gets the error of the client for a request of an extension", async () => {
  const lines: string[] = [];
  const options = { method: "notes/pick", onLog: (line: string) => void lines.push(line) };
  const error = await answered(() => Promise.reject(new RpcError(-1, "no", { a: 1 })), options)
    .catch((error) => error);
  assert.ok(error instanceof RpcError);
  assert.deepEqual([error.code, error.message, error.data], [-1, "no", { a: 1 }]);
  assert.deepEqual(lines, ['Its request "notes/pick" was refused: no']);
});
