/**
 * The parts of the revisions that exist only over HTTP: streams, sessions, headers and batches.
 *
 * @module
 */

import assert from "node:assert/strict";
import { paramsFor } from "./kit/json_rpc.ts";
import { denoCommand } from "./kit/pml_command.ts";
import { servePml, type TestServer } from "./kit/pml_serve.ts";
import { answerIn, HELLO } from "./kit/speaker.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const NEWEST = "2026-07-28";
type Headers = Record<string, string>;

async function makeFixture(): Promise<Workspace> {
  const [command, ...args] = [...denoCommand("tests/conformance/fixture.ts"), "modern"];
  return await makeWorkspace({
    pml: {
      version: 1,
      permissions: { allow: ["fixture:*"] },
      gateway: { tools_exposure: "full_proxy", prefix: false, meta_tools: [] },
      mcpServers: {
        fixture: { type: "stdio", command, args, env: { DENO_DIR: "${DENO_DIR}" } },
      },
    },
  });
}

function request(id: number, method: string, params: object = {}): object {
  return { jsonrpc: "2.0", id, method, params };
}

async function begin(served: TestServer, revision: string): Promise<Headers> {
  const hello = request(1, "initialize", { protocolVersion: revision, ...HELLO });
  const response = await served.fetch({ method: "POST", body: JSON.stringify(hello) });
  await answerIn(response, 1);
  const session = { "mcp-session-id": response.headers.get("mcp-session-id") ?? "" };
  return revision >= "2025-06-18" ? { ...session, "mcp-protocol-version": revision } : session;
}

async function post(served: TestServer, body: unknown, headers: Headers = {}): Promise<Response> {
  return await served.fetch({ method: "POST", body: JSON.stringify(body), headers });
}

/** Reads the first event of a stream, and closes the stream. */
async function firstEvent({ body }: Response): Promise<string> {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("\n\n")) text += (await reader?.read())?.value ?? "\n\n";
  await reader?.cancel();
  return text;
}

async function statusOf(response: Promise<Response>): Promise<number> {
  const { status, body } = await response;
  await body?.cancel();
  return status;
}

/** Returns the status and the text of an answer. */
async function statusAndText(response: Promise<Response>): Promise<readonly [number, string]> {
  const answer = await response;
  return [answer.status, await answer.text()];
}

for (const revision of ["2025-03-26", "2025-06-18", "2025-11-25"]) {
  Deno.test(`streams, sessions and batches work over HTTP, in ${revision}`, async (t) => {
    await using ws = await makeFixture();
    await using served = await servePml(ws);
    const headers = await begin(served, revision);
    const get = (more: Headers = {}) => served.fetch({ headers: { ...headers, ...more } });
    const hello = request(1, "initialize", { protocolVersion: revision, ...HELLO });

    await t.step("one stream of a session", async () => {
      const opened = await get();
      assert.equal(opened.status, 200);
      assert.equal(await statusOf(get()), 409);
      await opened.body?.cancel();
      assert.equal(await statusOf(get({ accept: "application/json" })), 406);
      assert.equal(await statusOf(served.fetch({})), 400, "no session");
      assert.equal(await statusOf(get({ "last-event-id": "999" })), 400, "the event is unknown");
    });
    await t.step(
      "a tool that was not listed before, and the rest of a broken stream",
      async () => {
        const call = request(5, "tools/call", { name: "test_simple_text" });
        const [status, text] = await statusAndText(post(served, call, headers));
        assert.equal(status, 200);
        assert.match(text, /simple text response/);
        const first = /^id: (\d+)/m.exec(text)?.[1] ?? "";
        if (revision < "2025-11-25") return assert.doesNotMatch(text, /^retry|^data: $/m);
        assert.match(text, /^id: \d+\nretry: 1000\ndata: \n\n/);
        const again = await firstEvent(await get({ "last-event-id": first }));
        assert.match(again, /simple text response/);
      },
    );
    await t.step("batches", async () => {
      const both = await statusAndText(
        post(served, [request(6, "ping"), request(7, "no/such")], headers),
      );
      assert.equal(both[0], 200);
      assert.match(both[1], /"id":6[^]*"id":7|"id":7[^]*"id":6/);
      const note = { jsonrpc: "2.0", method: "notifications/initialized" };
      assert.equal(await statusOf(post(served, [note], headers)), 202);
      assert.equal(await statusOf(post(served, [], headers)), 400);
      assert.equal(await statusOf(post(served, [hello, request(2, "ping")])), 400);
    });
    await t.step("another revision, handshake or Accept header", async () => {
      const ping = (more: Headers) =>
        statusOf(post(served, request(8, "ping"), { ...headers, ...more }));
      assert.equal(await ping({ "mcp-protocol-version": "1999-01-01" }), 400);
      assert.equal(await ping({ accept: "application/json" }), 200);
      assert.equal(await ping({ accept: "text/html" }), 406);
      assert.equal(await statusOf(post(served, hello, headers)), 400);
    });
    await t.step("DELETE ends the session", async () => {
      const end = () => statusOf(served.fetch({ method: "DELETE", headers }));
      assert.deepEqual([await end(), await end()], [200, 404]);
      assert.equal(await statusOf(post(served, request(9, "ping"), headers)), 404);
    });
  });
}

function newest(method: string, more: Headers = {}): Headers {
  return { "mcp-protocol-version": NEWEST, "mcp-method": method, ...more };
}

const LIST = "tools/list";
const TASK = paramsFor(NEWEST, { taskId: "a" }, {});
const ENVELOPE = paramsFor(NEWEST, {}, {});
/** Requests in the newest revision; the status and the code of each answer. */
const REFUSED: readonly (readonly [string, unknown, Headers, number, number])[] = [
  ["a batch", [request(1, LIST, ENVELOPE)], newest(LIST), 400, -32600],
  ["a handshake", request(1, "initialize", HELLO), newest("initialize"), 400, -32020],
  ["no envelope", request(1, LIST), newest(LIST), 400, -32602],
  ["another method in the header", request(1, LIST, ENVELOPE), newest("ping"), 400, -32020],
  ["an unknown method", request(1, "no/such", ENVELOPE), newest("no/such"), 404, -32601],
  ["a task without its name", request(1, "tasks/get", TASK), newest("tasks/get"), 400, -32020],
  [
    "a task with another name",
    request(1, "tasks/get", TASK),
    newest("tasks/get", { "mcp-name": "b" }),
    400,
    -32020,
  ],
  [
    "a task of a client that declares none",
    request(1, "tasks/get", TASK),
    newest("tasks/get", { "mcp-name": "a" }),
    400,
    -32021,
  ],
];

Deno.test(`invalid requests are refused over HTTP, in ${NEWEST}`, async (t) => {
  await using ws = await makeFixture();
  await using served = await servePml(ws);
  for (const [what, body, headers, status, code] of REFUSED) {
    await t.step(what, async () => {
      const [is, text] = await statusAndText(post(served, body, headers));
      assert.deepEqual([is, JSON.parse(text).error.code], [status, code], text);
    });
  }
  await t.step("GET and DELETE, which exist only in sessions", async () => {
    for (const method of ["GET", "DELETE"]) {
      for (const headers of [newest(""), { ...newest(""), "mcp-session-id": "any" }]) {
        const response = await served.fetch({ method, headers });
        await response.body?.cancel();
        assert.deepEqual([response.status, response.headers.get("allow")], [405, "POST"]);
      }
    }
  });
});

const ENCODED = "=?base64?w6k=?=";
/** Arguments, the headers that repeat them, and whether they agree. */
const MARKED: readonly (readonly [string, object, Headers, boolean])[] = [
  ["the same", { region: "eu" }, { "mcp-param-region": "eu" }, true],
  ["none", { region: "eu" }, {}, false],
  ["another", { region: "eu" }, { "mcp-param-region": "us" }, false],
  ["another case", { region: "eu" }, { "mcp-param-region": "EU" }, false],
  ["encoded", { region: "é" }, { "mcp-param-region": ENCODED }, true],
  ["encoded, another", { region: "e" }, { "mcp-param-region": ENCODED }, false],
  ["badly encoded", { region: "é" }, { "mcp-param-region": "=?base64?w6k?=" }, false],
  ["half encoded", { region: "=?base64?w6k=" }, { "mcp-param-region": "=?base64?w6k=" }, true],
  [
    "a number",
    { region: "a", count: 7 },
    { "mcp-param-region": "a", "mcp-param-count": "7" },
    true,
  ],
  ["a number, longer", { region: "a", count: 7 }, {
    "mcp-param-region": "a",
    "mcp-param-count": "7.0",
  }, true],
  ["another number", { region: "a", count: 7 }, {
    "mcp-param-region": "a",
    "mcp-param-count": "8",
  }, false],
  ["one of two", { region: "a", count: 7 }, { "mcp-param-region": "a" }, false],
  ["a header of nothing", { region: "a" }, {
    "mcp-param-region": "a",
    "mcp-param-count": "8",
  }, true],
];

Deno.test("a tool does not run if headers that repeat its arguments differ from them", async (t) => {
  await using ws = await makeFixture();
  await using served = await servePml(ws);
  const name = "test_headers";
  const call = (args: object, headers: Headers) => {
    const params = paramsFor(NEWEST, { name, arguments: args }, {});
    const all = newest("tools/call", { "mcp-name": name, ...headers });
    return statusAndText(post(served, request(1, "tools/call", params), all));
  };
  for (const [what, args, headers, isSame] of MARKED) {
    await t.step(what, async () => {
      const [status, text] = await call(args, headers);
      const { result, error } = JSON.parse(text);
      assert.equal(status, isSame ? 200 : 400, text);
      if (isSame) assert.deepEqual(JSON.parse(result.content[0].text), args);
      else assert.equal(error.code, -32020);
    });
  }
});
