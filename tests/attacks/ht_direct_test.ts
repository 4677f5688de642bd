/**
 * Hostile clients of the newest revision, which PML serves over HTTP without the SDK: they do not
 * read, disconnect at any moment, contradict themselves, or use a revoked token.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { WITH_META, writeConfig } from "../script_scene.ts";
import { serveScene } from "../serve_scene.ts";
import { objectOf } from "../../src/core/json.ts";
import { joinBytes } from "../../src/io/lines.ts";
import { callBytes } from "../kit/call_bytes.ts";
import type { TestServer } from "../kit/pml_serve.ts";
import { rssOf } from "../kit/procwatch.ts";
import { until } from "../kit/wait.ts";
import { assertPaired, journalOf, ofKind } from "./oracles.ts";

const OTHER = "token-of-another-0001";

/** Returns the bytes of a call of the tool `run`. */
function callOf(
  served: Pick<TestServer, "url" | "token">,
  { args = {}, meta = {}, id = 1 }: {
    readonly args?: object;
    readonly meta?: object;
    readonly id?: number;
  } = {},
): Uint8Array {
  return callBytes(served, { name: "s__run", arguments: args, _meta: meta }, { id });
}

/** A connection to a server. */
class Line implements Disposable {
  readonly #connection: Deno.TcpConn;

  private constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
  }

  static async open({ url }: Pick<TestServer, "url">): Promise<Line> {
    return new Line(await Deno.connect({ hostname: "127.0.0.1", port: Number(new URL(url).port) }));
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) at += await this.#connection.write(bytes.subarray(at));
  }

  /** Reads until a text arrives, or until the other side closes the connection. */
  async read(until = /./): Promise<string> {
    const buffer = new Uint8Array(65_536);
    let text = "";
    while (!until.test(text)) {
      const size = await this.#connection.read(buffer).catch(() => null);
      if (size === null) break;
      text += new TextDecoder().decode(buffer.subarray(0, size));
    }
    return text;
  }

  [Symbol.dispose](): void {
    this.#connection.close();
  }
}

function told(progress: number, message = ""): { readonly write: string } {
  const params = `"progressToken":$TOKEN,"progress":${progress},"message":"${message}"`;
  return { write: `{"jsonrpc":"2.0","method":"notifications/progress","params":{${params}}}` };
}

/** Reads slowly until the other side closes the connection. Returns the number of bytes. */
async function readSlowly(line: Line): Promise<number> {
  for (let size = 0;; await new Promise((resolve) => setTimeout(resolve, 20))) {
    const { length } = await line.read();
    if (length === 0) return size;
    size += length;
  }
}

Deno.test("HT15: a client that reads 1 GB of events too slowly is disconnected, and the server still serves others", async () => {
  const [times, message] = [5_000, "x".repeat(200_000)];
  for (const meta of [{}, WITH_META._meta]) {
    await using all = await serveScene({
      // The test measures its memory.
      ownProcess: true,
      limits: { queued_bytes: 8_000_000, unread_ms: 600_000 },
    });
    using line = await Line.open(all.served);
    const args = { steps: [{ ...told(1, message), times }, { wait: 60_000 }] };
    await line.write(callOf(all.served, { args, meta: { progressToken: "p", ...meta } }));
    let most = 0;
    const look = setInterval(async () => most = Math.max(most, await rssOf(all.served.pid)), 50);
    const came = await readSlowly(line);
    clearInterval(look);
    const said = async (word: string) =>
      (await all.ledger()).filter((one) => one.startsWith(word)).length;
    await until(async () => await said("cancelled") + await said("start") > 1);
    assert.match(JSON.stringify(await all.call()), /"done"/);
    assert.deepEqual([await said("start"), await said("cancelled")], [1, 1]);
    await until(async () => await said("stopped after") === 1);
    assert.ok(came < times * message.length / 10, `${came} bytes came`);
    assert.ok(most < 400_000_000, `PML had ${most} bytes`);
    assert.doesNotMatch(all.served.stderr, / (?:warn|error) /);
  }
});

Deno.test("HT14: progress of many simultaneous calls reaches the stream of each, with any tokens", async () => {
  await using all = await serveScene({ limits: { concurrent_calls: 64 } });
  await Promise.all(Array.from({ length: 50 }, async (_, at) => {
    const own = [1, 2, 3].map((progress) => told(progress, `of ${at}`));
    const steps = own.flatMap((one) => [one, { wait: at % 7 }]);
    const params = { name: "s__run", arguments: { steps }, _meta: { progressToken: "same" } };
    await using reading = await (await all.open()).begin("tools/call", params);
    await reading.over;
    assert.deepEqual(reading.messages.map(({ params }) => params?.message), [
      ...Array(3).fill(`of ${at}`),
      undefined,
    ]);
  }));
});

Deno.test("HT12: clients that disconnect at any moment leave no call running, and no request counts as refused", async () => {
  const limits = { concurrent_calls: 8, queued_calls: 0 };
  await using all = await serveScene({ limits });
  for (let at = 0; at < 60; at++) {
    const steps = [told(1), { wait: at % 2 === 0 ? 60_000 : at % 11 }, told(2)];
    const meta = { progressToken: 1, ...(at % 3 === 0 && WITH_META._meta) };
    using line = await Line.open(all.served);
    await line.write(callOf(all.served, { args: { steps }, meta }));
    if (at % 5 === 0) await line.read();
    else await new Promise((resolve) => setTimeout(resolve, at % 13));
  }
  const noted = () =>
    until(async () => {
      const lines = await journalOf(all.ws);
      return ofKind(lines, "start").length === ofKind(lines, "end").length;
    });
  await noted();
  // All slots are free again.
  const wait = { steps: [{ wait: 50 }] };
  const answers = await Promise.all(Array.from({ length: 8 }, () => all.call(wait)));
  assert.ok(answers.every((one) => JSON.stringify(one).includes('"done"')));
  await noted();
  const lines = await journalOf(all.ws);
  assertPaired(lines);
  // An incomplete body is another case.
  assert.deepEqual(lines.filter(({ about }) => objectOf(about).status === 499), []);
});

Deno.test("a token that is revoked while the request body arrives gets no answer", async () => {
  const token = createHash("sha256").update(OTHER).digest("hex");
  const identities = { other: { token, permissions: { allow: ["s:*"] } } };
  await using all = await serveScene({ config: { identities } });
  const other = await all.open({ token: OTHER });
  await until(async () => {
    const response = await other.request("tools/call", { name: "s__run", arguments: {} });
    return JSON.stringify(response).includes('"done"');
  });
  using line = await Line.open(all.served);
  const bytes = callOf({ url: all.served.url, token: OTHER }, { args: { late: true } });
  await line.write(bytes.subarray(0, -5));
  await writeConfig(all.ws, { identities: {} });
  await until(async () => {
    await using reading = await other.begin("tools/list");
    return reading.status === 401;
  });
  await line.write(bytes.subarray(-5));
  assert.match(await line.read(), /^HTTP\/1\.1 401 /);
  assert.doesNotMatch((await all.ledger()).join(), /late/);
});

Deno.test("HT13: pipelined requests are answered in turn, and end with their connection", async () => {
  await using all = await serveScene();
  const said = async (word: string) =>
    (await all.ledger()).filter((one) => one.includes(word)).length;
  const bytes = (args: readonly object[]) =>
    joinBytes(args.map((args, id) => callOf(all.served, { args, id })));
  {
    using line = await Line.open(all.served);
    await line.write(bytes([{ steps: [{ wait: 200 }] }, {}, {}]));
    const text = await line.read(/"id":2\}/);
    assert.deepEqual(text.match(/"id":\d\}/g), [0, 1, 2].map((id) => `"id":${id}}`));
  }
  const long = { steps: [{ wait: 20_000 }], mark: "long" };
  {
    using line = await Line.open(all.served);
    await line.write(bytes([long, { mark: "next" }]));
    await until(async () => await said("long") === 1);
  }
  await until(async () => await said("cancelled") === 1);
  // PML does not have to keep requests that it cannot answer yet.
  using line = await Line.open(all.served);
  await line.write(bytes([long, ...Array(101).fill({ mark: "next" })]));
  assert.equal(await line.read(), "");
  await until(async () => await said("cancelled") === 2);
  assert.match(JSON.stringify(await all.call()), /"done"/);
  assert.equal(await said("next"), 0);
});
