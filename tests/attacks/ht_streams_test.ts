/**
 * One token that keeps as many connections as possible, with open event streams.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type Era, ERAS } from "../kit/json_rpc.ts";
import { servePml, type TestServer } from "../kit/pml_serve.ts";
import { writeConfig } from "../script_scene.ts";
import { makeAttackWorkspace } from "./stage.ts";

const MOST = 16;
const TOKEN = "token-of-one-that-is-not-trusted";
const INFO = { name: "t", version: "1" };

/** Opens an event stream on a new connection. */
async function stream(
  { url }: TestServer,
  era: Era,
  { signal, token = TOKEN, kept = [] }: {
    readonly signal: AbortSignal;
    readonly token?: string;
    /** Keeps the response: the connection of a response that is garbage collected is closed. */
    readonly kept?: Response[];
  },
): Promise<number> {
  using http = Deno.createHttpClient({ poolMaxIdlePerHost: 0 });
  const headers = {
    authorization: `Bearer ${token}`,
    "mcp-protocol-version": era,
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
  };
  const post = (method: string, params: object, more = {}) =>
    fetch(url, {
      method: "POST",
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      headers: { ...headers, ...more },
      ...{ client: http, signal },
    });
  if (era === "2026-07-28") {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": era,
      "io.modelcontextprotocol/clientInfo": INFO,
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const params = { notifications: { toolsListChanged: true }, _meta };
    const listening = await post("subscriptions/listen", params, {
      "mcp-method": "subscriptions/listen",
    });
    kept.push(listening);
    return listening.status;
  }
  const greeted = await post("initialize", {
    ...{ protocolVersion: era, capabilities: {}, clientInfo: INFO },
  });
  await greeted.text();
  const session = greeted.headers.get("mcp-session-id") ?? "";
  if (session === "") return greeted.status;
  const own = { ...headers, accept: "text/event-stream", "mcp-session-id": session };
  const opened = await fetch(url, { headers: own, client: http, signal });
  kept.push(opened);
  return opened.status;
}

for (const era of ERAS) {
  Deno.test(`streams of one token leave connections for the others, on ${era} (HT11)`, async () => {
    await using ws = await makeAttackWorkspace();
    const token = createHash("sha256").update(TOKEN).digest("hex");
    await writeConfig(ws, { limits: { connections: MOST }, identities: { ci: { token } } });
    await using served = await servePml(ws);
    const gone = new AbortController();
    const statuses: number[] = [];
    const kept: Response[] = [];
    for (let at = 0; at < MOST; at++) {
      statuses.push(await stream(served, era, { signal: gone.signal, kept }).catch(() => 0));
    }
    try {
      assert.equal(statuses.filter((status) => status === 200).length, MOST * 3 / 4, `${statuses}`);
      assert.deepEqual([...new Set(statuses)], [200, 503]);
      await using person = await served.connect({ era });
      assert.ok((await person.client.listTools()).tools.length > 0);
    } finally {
      gone.abort();
      kept.length = 0;
    }
  });
}

Deno.test("a new token gets a connection even if other tokens use all they can (HT11)", async () => {
  await using ws = await makeAttackWorkspace();
  const names = ["first", "second"];
  const hashed = names.map((name) => [
    name,
    { token: createHash("sha256").update(`${TOKEN}-${name}`).digest("hex") },
  ]);
  const identities = Object.fromEntries(hashed);
  await writeConfig(ws, { limits: { connections: MOST }, identities });
  await using served = await servePml(ws);
  const gone = new AbortController();
  const opened: number[] = [];
  const kept: Response[] = [];
  const of = (token: string) =>
    stream(served, "2025-11-25", { signal: gone.signal, token, kept }).catch(() => 0); // closed
  try {
    for (const name of names) {
      let count = 0;
      // A request counts until its connection is closed, which may be after its answer was read.
      for (let refused = 0; refused < 5;) {
        const isOpen = await of(`${TOKEN}-${name}`) === 200;
        count += isOpen ? 1 : 0;
        refused += isOpen ? 0 : 1;
      }
      opened.push(count);
    }
    assert.deepEqual(opened, [12, 3]);
    assert.equal(await of(served.token), 200);
  } finally {
    gone.abort();
    kept.length = 0;
  }
});

Deno.test("a client that disconnects while its identity is opened frees the connection of its token", async () => {
  await using ws = await makeAttackWorkspace();
  const token = createHash("sha256").update(TOKEN).digest("hex");
  await writeConfig(ws, { limits: { connections: MOST }, identities: { ci: { token } } });
  await using served = await servePml(ws);
  const { hostname, port, host } = new URL(served.url);
  const head = `DELETE /mcp HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`;
  await Promise.all(Array.from({ length: MOST * 3 / 4 }, async () => {
    using connection = await Deno.connect({ hostname, port: Number(port) });
    await connection.write(new TextEncoder().encode(head));
  }));
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const gone = new AbortController();
  assert.equal(await stream(served, "2025-11-25", gone), 200);
  gone.abort();
});
