/**
 * Clients that read slowly or not at all, and results that are larger together than what may wait.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { until, waitUntil } from "../kit/wait.ts";
import { flood, floodScene } from "./floods.ts";
import { assertPaired, endWell, type JournalLine, journalOf, ofKind, textOf } from "./oracles.ts";

const MB = 1_000_000;

Deno.test("Results at their limit all come to a client that reads (GW2)", async () => {
  const names = ["a", "b", "c"];
  await using scene = await floodScene(names, { era: "2026-07-28" });
  const { ws, pml } = scene;
  const answers = await Promise.all(names.map((name) => flood(pml, `${name}:text`, 31 * MB)));
  for (const answer of answers) assert.equal(textOf(answer).length, 31 * MB);
  // Of one server, too, and more than may wait.
  const more = await Promise.all(names.map((_, at) => flood(pml, "a:text", 31 * MB + at)));
  assert.deepEqual(
    more.map((answer) => textOf(answer).length),
    names.map((_, at) => 31 * MB + at),
  );
  await endWell(ws, pml);
});

Deno.test("A client that reads late gets all, and servers wait with the rest meanwhile (GW2)", async () => {
  const reader = new Reader();
  // A busy machine may take a second for what is read all the same.
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
  // Longer than the deadline of a call, which does not run out while its client has to read.
  const isAll = await waitUntil(async () => await written() > 20, 5_000);
  assert.ok(!isAll, "the server was read all the time");
  reader.goOn();
  for (const answer of await Promise.all(calls)) assert.equal(textOf(answer).length, MB);
  await until(async () => await written() === 40);
  await endWell(ws, pml);
});

Deno.test("A client that asks and asks and reads nothing is not read either, and loses nothing (GW2)", async () => {
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

Deno.test("A client that reads nothing is given up, and the journal tells what it lost (GW2, ST9)", async () => {
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
  await until(() => /does not read its answers/.test(pml.stderr));
  await pml.watch.assertNothingLeft({ withinMs: 8_000 });
  const lines = await journalOf(ws);
  assertPaired(lines);
  const lost = lines.flatMap(({ event, about }) =>
    event === "answer lost" ? [(about as unknown as Requested).request] : []
  );
  assert.ok(lost.length > 0);
  // The others got no answer, which their ends tell.
  const starts = ofKind(lines, "start") as unknown as readonly (JournalLine & Requested)[];
  for (const { callId, request } of starts.filter((one) => one.request.startsWith('"lost'))) {
    const { outcome } = ofKind(lines, "end").find((line) => line.callId === callId) ?? {};
    assert.ok(outcome === "failed" || lost.includes(request), `${request} is told nowhere`);
  }
});

interface Requested {
  readonly request: string;
}

/** Reads the output of PML, or lets it be. */
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
