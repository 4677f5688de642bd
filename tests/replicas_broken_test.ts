/**
 * Forwarded requests when the stream between the two processes breaks.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { sealedLines } from "../src/transport/replicas/_link.ts";
import { Sealer } from "../src/transport/replicas/_sealer.ts";
import { repoFile } from "./kit/pml_command.ts";
import { servePml, type TestServer } from "./kit/pml_serve.ts";
import { KEY, sceneryOf } from "./replicas_scene.ts";

/** A request is forwarded to another process. */
const OWN_PROCESS = { ownProcess: true } as const;

const GONE = /UPSTREAM_DOWN[^]*"may_have_run":true/;

const PRELOAD = { preload: repoFile("tests/kit/short_drain.ts") };

/**
 * Serves events in the place of another process, without an end: the stream breaks or stays open.
 */
function breaking(
  file: string,
  said: readonly string[],
  /** Ends a stream that stays open. */
  signal?: AbortSignal,
): Deno.HttpServer<Deno.NetAddr> {
  const sealer = new Sealer(new TextEncoder().encode(KEY), "pml replicas");
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {}, ...signal && { signal } };
  return Deno.serve(options, async (request) => {
    const pass = await sealer.open(`${request.headers.get("authorization")}`, [basename(file)]);
    const { nonce } = pass as { readonly nonce: string };
    const events = ReadableStream.from(said.map((one) => new TextEncoder().encode(one)));
    const answer = new Response(events, { headers: { "content-type": "text/event-stream" } });
    const lines = await Array.fromAsync(sealedLines(answer, { sealer, nonce }));
    const first = ReadableStream.from(lines.slice(0, -1));
    if (!signal) return new Response(first);
    const open = new TransformStream<Uint8Array, Uint8Array>();
    first.pipeTo(open.writable, { preventClose: true }).catch(() => {});
    return new Response(open.readable);
  });
}

const eventOf = (message: object) => `event: message\ndata: ${JSON.stringify(message)}\n\n`;
const CALL = { jsonrpc: "2.0", method: "tools/call", params: { name: "call" } };

/** Returns the ids of the answers in a stream, and whether each reports that it may have run. */
function answersIn(text: string): readonly (readonly [id: number, isGone: boolean])[] {
  const messages = [...text.matchAll(/^data: (.*)$/gm)].map(([, json = ""]) => JSON.parse(json));
  return messages.filter(({ method }) => method === undefined)
    .map((one) => [one.id, GONE.test(JSON.stringify(one))]);
}

/** Sends a request that another process has to answer. */
function post(to: TestServer, file: string, body: object): Promise<Response> {
  return to.fetch({
    method: "POST",
    body: JSON.stringify(body),
    headers: {
      "mcp-session-id": `${basename(file)}.x`,
      "mcp-protocol-version": "2025-11-25",
    },
  });
}

Deno.test("each request has one answer where the stream of another process breaks before its end", async () => {
  await using ws = await sceneryOf();
  await using _ = await servePml(ws, [], OWN_PROCESS);
  const [name = ""] = await readdir(join(ws.home, "replicas"));
  const file = join(ws.home, "replicas", name);
  await using two = await servePml(ws, [], OWN_PROCESS);
  const result = { content: [{ type: "text", text: "x".repeat(100_000) }] };
  const [first, second] = [
    eventOf({ jsonrpc: "2.0", id: 7, result }),
    eventOf({ result, jsonrpc: "2.0", id: 8 }),
  ];
  const text = eventOf({ jsonrpc: "2.0", method: "notifications/message", params: {} });
  const [seven, eight] = [{ ...CALL, id: 7 }, { ...CALL, id: 8 }];
  const cases: readonly (readonly [string[], object, readonly (readonly [number, boolean])[]])[] = [
    [[text, first], seven, [[7, false]]],
    [[text], seven, [[7, true]]],
    [[first, second.slice(0, 50_000)], [seven, eight], [[7, false], [8, true]]],
    [[first.slice(0, 9), first.slice(9)], [seven, eight], [[7, false], [8, true]]],
    [[first + second], [seven, eight], [[7, false], [8, false]]],
  ];
  for (const [said, body, wanted] of cases) {
    await using other = breaking(file, said);
    await writeFile(file, JSON.stringify({ address: `127.0.0.1:${other.addr.port}` }));
    const response = await post(two, file, body);
    assert.deepEqual(answersIn(await response.text()), wanted);
  }
});

Deno.test("an answered request has no second answer where PML ends before the stream does", async () => {
  await using ws = await sceneryOf();
  await using _ = await servePml(ws, [], OWN_PROCESS);
  const [name = ""] = await readdir(join(ws.home, "replicas"));
  const file = join(ws.home, "replicas", name);
  await using two = await servePml(ws, [], PRELOAD);
  const text = eventOf({ result: {}, jsonrpc: "2.0", id: 7 });
  const over = new AbortController();
  const other = breaking(file, [text], over.signal);
  await writeFile(file, JSON.stringify({ address: `127.0.0.1:${other.addr.port}` }));
  const response = await post(two, file, { ...CALL, id: 7 });
  two.kill("SIGTERM");
  assert.deepEqual(answersIn(await response.text()), [[7, false]]);
  over.abort();
  await other.finished;
});
