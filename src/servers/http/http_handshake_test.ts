/**
 * Tests the handshake with servers over HTTP that answer `server/discover` against the protocol.
 *
 * @module
 */

import assert from "node:assert/strict";
import { answer, event, Scripted, Stage, stream } from "./_stage_test.ts";
import { TransportChoice } from "./transports.ts";

const NO_ID = { jsonrpc: "2.0", id: null, error: { code: -32700, message: "Parse error" } };
const DAY_MS = 86_400_000;

/** Odd answers of servers of older revisions to `server/discover`. */
const ODD: Readonly<Record<string, () => Response | Promise<Response>>> = {
  "an error without id in a stream": () => stream([event(NO_ID)]),
  "an error without id": () => Response.json(NO_ID, { status: 400 }),
  "a stream that ends": () => stream([": hello\n\n"]),
  "a page": () => new Response("<p>hello", { headers: { "content-type": "text/html" } }),
  "no answer": () => new Promise<Response>(() => {}),
  "a stream without a message": () => stream([": hello\n\n"], { stays: true }),
};

for (const [name, odd] of Object.entries(ODD)) {
  Deno.test(`initialize is tried after ${name} to server/discover`, async () => {
    await using server = new Scripted(
      ({ message: { method } }) => method === "server/discover" ? odd() : undefined,
      { isOlder: true },
    );
    await using stage = await Stage.at(server.url, { limits: { startMs: 20_000 } });
    assert.deepEqual((await stage.call("t")).content, [{ type: "text", text: "done" }]);
    const tries = server.methods.filter((method) => /discover|initialize$/.test(method));
    assert.deepEqual(tries, ["server/discover", "initialize"]);
  });
}

Deno.test("a server of the stateless revision that starts slowly is asked again after initialize", async () => {
  let asked = 0;
  await using server = new Scripted(({ message: { id, method } }) => {
    if (method === "initialize") {
      const error = { code: -32022, message: "Unsupported", data: { supported: ["2026-07-28"] } };
      return Response.json({ jsonrpc: "2.0", id, error }, { status: 400 });
    }
    if (method !== "server/discover") return undefined;
    if (++asked === 1) return new Promise<Response>(() => {});
    return answer(id, { supportedVersions: ["2026-07-28"], capabilities: { tools: {} } });
  });
  await using stage = await Stage.at(server.url, { limits: { startMs: 20_000 } });
  assert.deepEqual((await stage.call("t")).content, [{ type: "text", text: "done" }]);
  assert.equal(asked, 2);
});

Deno.test("another process begins with initialize: for a week after a refusal, for a day after silence", async () => {
  const home = await Deno.makeTempDir();
  const now = Date.now;
  type Taken = ConstructorParameters<typeof TransportChoice>;
  // A new options object has no stored facts, as in another process.
  const choice = (url: string) =>
    new TransportChoice({ name: "far", url } as Taken[0], { home } as Taken[1]);
  try {
    for (const [isSilent, days] of [[true, 1], [false, 7]] as const) {
      const url = `http://127.0.0.1/${isSilent}`;
      assert.equal(choice(url).discoverMs, 3_000);
      choice(url).foundOlder({ isSilent });
      assert.equal(choice(url).discoverMs, undefined);
      Date.now = () => now() + days * DAY_MS - 60_000;
      assert.equal(choice(url).discoverMs, undefined, `shortly before ${days} days`);
      Date.now = () => now() + days * DAY_MS + 60_000;
      assert.equal(choice(url).discoverMs, 3_000, `after ${days} days`);
      Date.now = () => now() - 30 * DAY_MS;
      assert.equal(choice(url).discoverMs, 3_000, "a time written while the clock was ahead");
      Date.now = now;
    }
  } finally {
    Date.now = now;
    await Deno.remove(home, { recursive: true });
  }
});
