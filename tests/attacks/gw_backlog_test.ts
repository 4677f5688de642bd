/**
 * Clients that read slowly or not at all, and results that together exceed the queue limit.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { until, waitUntil } from "../kit/wait.ts";
import { flood, floodScene } from "./floods.ts";
import { assertPaired, endWell, type JournalLine, journalOf, ofKind, textOf } from "./oracles.ts";

const MB = 1_000_000;

Deno.test("a client that reads receives all results of the maximum size (GW2)", async () => {
  const names = ["a", "b", "c"];
  await using scene = await floodScene(names, { era: "2026-07-28" });
  const { ws, pml } = scene;
  const answers = await Promise.all(names.map((name) => flood(pml, `${name}:text`, 31 * MB)));
  for (const answer of answers) assert.equal(textOf(answer).length, 31 * MB);
  // Also from one server, and more than the queue limit.
  const more = await Promise.all(names.map((_, at) => flood(pml, "a:text", 31 * MB + at)));
  assert.deepEqual(
    more.map((answer) => textOf(answer).length),
    names.map((_, at) => 31 * MB + at),
  );
  await endWell(ws, pml);
});

Deno.test("a client that reads late receives all results, and servers wait meanwhile (GW2)", async () => {
  const reader = new Reader();
  // On a busy machine, even these reads may take a second.
  const limits = { queued_bytes: MB, call_ms: 3_000 };
  await using scene = await floodScene(["a"], { ...reader, limits, era: "2026-07-28" });
  reader.stop();
  const { ws, pml } = scene;
  const ledger = ws.file("written");
  const calls = Array.from(
    { length: 40 },
    () => pml.callTool("a__text", { size: MB, ledger }, { ms: 60_000 }),
  );
  const written = async () => (await readFile(ledger, "utf8").catch(() => "")).length / 8;
  await until(async () => await written() > 0);
  // Longer than the deadline of a call, which pauses while its client has data to read.
  const isAll = await waitUntil(async () => await written() > 20, 5_000);
  assert.ok(!isAll, "the server was read all the time");
  reader.goOn();
  for (const answer of await Promise.all(calls)) assert.equal(textOf(answer).length, MB);
  await until(async () => await written() === 40);
  await endWell(ws, pml);
});

Deno.test("a client that sends requests and reads nothing is not read either, and loses nothing (GW2)", async () => {
  const reader = new Reader();
  const limits = { queued_bytes: 64 * 1024 };
  await using scene = await floodScene(["a"], { ...reader, limits, era: "2026-07-28" });
  reader.stop();
  const { ws, pml } = scene;
  const ids = Array.from({ length: 4_000 }, (_, at) => `ask ${at}`);
  let sent = 0;
  const sending = (async () => {
    for (const id of ids) {
      pml.noteAsked(id);
      const params = { name: `none__${"x".repeat(200)}`, arguments: {} };
      await pml.sendJson({
        jsonrpc: "2.0",
        id,
        method: "tools/call",
        params: { ...params, ...META },
      });
      sent++;
    }
  })();
  assert.ok(!await waitUntil(() => sent === ids.length, 1_500), "it was read all the time");
  reader.goOn();
  await sending;
  await until(() => pml.messages.length >= ids.length);
  await endWell(ws, pml);
});

Deno.test("a client that reads nothing is disconnected, and the journal records its lost results (GW2, ST9)", async () => {
  const limits = { unread_ms: 1_000, queued_bytes: MB };
  const reader = new Reader();
  await using scene = await floodScene(["a"], { ...reader, limits, era: "2026-07-28" });
  reader.stop();
  const { ws, pml } = scene;
  const ids = Array.from({ length: 10 }, (_, at) => `lost ${at}`);
  for (const id of ids) {
    const params = { name: "a__text", arguments: { size: MB / 2 }, ...META };
    await pml.sendJson({ jsonrpc: "2.0", id, method: "tools/call", params });
  }
  await until(() => /read its answers/.test(pml.stderr));
  await pml.watch.assertNothingLeft({ withinMs: 8_000 });
  const lines = await journalOf(ws);
  assertPaired(lines);
  const lost = lines.flatMap(({ event, about }) =>
    event === "answer lost" ? [(about as unknown as Requested).request] : []
  );
  assert.ok(lost.length > 0);
  // The others got no response, which their end records show.
  const starts = ofKind(lines, "start") as unknown as readonly (JournalLine & Requested)[];
  for (const { callId, request } of starts.filter((one) => one.request.startsWith('"lost'))) {
    const { outcome } = ofKind(lines, "end").find((line) => line.callId === callId) ?? {};
    assert.ok(outcome === "failed" || lost.includes(request), `${request} is told nowhere`);
  }
});

interface Requested {
  readonly request: string;
}

/** Reads the output of PML, or pauses. */
class Reader {
  readonly reads = (): Promise<void> | undefined => this.#held?.promise;
  #held: PromiseWithResolvers<void> | undefined;

  stop(): void {
    this.#held = Promise.withResolvers();
  }

  goOn(): void {
    this.#held?.resolve();
    this.#held = undefined;
  }
}

const META = {
  _meta: {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  },
};
