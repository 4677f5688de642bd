import assert from "node:assert/strict";
import { events, eventsOf } from "../../tests/kit/fake_provider.ts";
import { KEY, Scene } from "./_scene_test.ts";

function failing(status: number, body: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return () => new Response(text, { status, headers: { "retry-after": "0", ...headers } });
}

Deno.test("an error of the provider is reported with a hint", async () => {
  const error = (message: string) => ({ error: { type: "x", message } });
  const cases = [
    [
      401,
      error(`bad key ${KEY}`),
      "KEY_MISSING",
      /refuses ANTHROPIC_API_KEY \(401: bad key \[redacted\]\)/,
    ],
    [403, error("no"), "KEY_MISSING", /pml key set ANTHROPIC_API_KEY/],
    [404, error("model: m-1"), "UPSTREAM_PROTOCOL", /it has no "m-1"/],
    [400, error("prompt is too long: 9 > 8"), "INPUT_TOO_LARGE", /fewer and shorter messages/],
    [413, "<html>", "INPUT_TOO_LARGE", /too long/],
    [
      400,
      error("messages: odd"),
      "UPSTREAM_PROTOCOL",
      /refuses the request \(400: messages: odd\)/,
    ],
    [307, "", "UPSTREAM_PROTOCOL", /another address, .*your key/],
    [200, "{}", "UPSTREAM_PROTOCOL", /not a stream of/],
  ] as const;
  for (const [status, body, code, expected] of cases) {
    await using scene = new Scene({ replies: [failing(status, body, { location: "/" })] });
    const { code: found, message, hint } = await scene.error();
    assert.equal(found, code, message);
    assert.match(`${message}. ${hint}`, expected);
    assert.equal(scene.provider.received.length, 1);
    assert.ok(!message.includes(KEY));
    // No tokens count as used.
    assert.deepEqual(scene.sampling.today().tokens, 0);
    assert.equal(scene.events[0]?.code, code);
  }
});

Deno.test("a busy provider is tried three times, but not if it demands a long wait", async () => {
  const busy = { error: { type: "overloaded_error", message: "Overloaded" } };
  for (const status of [429, 500, 503, 529]) {
    await using scene = new Scene({ replies: [failing(status, busy), { text: "it" }] });
    assert.deepEqual((await scene.ask()).content, { type: "text", text: "it" });
    assert.match(scene.progress[0] ?? "", new RegExp(`is busy \\(${status}\\)`));
  }
  await using down = new Scene({ replies: [failing(529, busy)] });
  const { code, hint } = await down.error();
  assert.deepEqual([code, down.provider.received.length], ["UPSTREAM_DOWN", 3]);
  assert.match(hint ?? "", /asked 3 times/);
  await using limited = new Scene({ replies: [failing(429, busy, { "retry-after": "3600" })] });
  const error = await limited.error();
  assert.deepEqual([error.code, limited.provider.received.length], ["OVERLOADED", 1]);
  assert.match(error.hint ?? "", /in 3600 s/);
  // The provider may report it in the stream, before the answer begins.
  const told = events([{ type: "error", ...busy }]);
  await using streamed = new Scene({ replies: [told, { text: "it" }] });
  assert.equal((await streamed.ask()).stopReason, "endTurn");
  assert.equal(streamed.provider.received.length, 2);
});

Deno.test("an incomplete answer is an error and counts as used", async () => {
  const all = eventsOf("anthropic", { text: "half" });
  const broken: readonly (readonly [readonly unknown[], RegExp])[] = [
    [all.slice(0, -1), /before its end/],
    [all.slice(0, 4), /broke off/],
    [[], /broke off/],
    [["{"], /not JSON/],
    [[...all.slice(0, 4), { type: "error", error: { message: "gone" } }], /gone/],
    [["[".repeat(20_000)], /not JSON/],
  ];
  for (const [said, expected] of broken) {
    await using scene = new Scene({ replies: [() => events(said)] });
    const { code, message } = await scene.error();
    assert.equal(code, "UPSTREAM_PROTOCOL");
    assert.match(message, expected);
    assert.equal(scene.provider.received.length, 1);
    assert.ok(scene.sampling.today().tokens > 100);
  }
});

Deno.test("the size of an answer is limited by the requested tokens", async () => {
  let sent = 0;
  const piece = new TextEncoder().encode(
    `data: {"type":"content_block_delta","index":0,"delta":{"text":"${"x".repeat(10_000)}"}}\n\n`,
  );
  const endless = () =>
    new Response(
      new ReadableStream({
        pull: (stream) => {
          sent += piece.length;
          stream.enqueue(piece);
        },
      }),
      { headers: { "content-type": "text/event-stream" } },
    );
  await using scene = new Scene({ replies: [endless] });
  const { message } = await scene.error();
  assert.match(message, /more than 364544 bytes/);
  assert.ok(sent < 3_000_000, `${sent} bytes were read`);
  // The size of a single event is limited, too.
  const line = () =>
    new Response(
      new ReadableStream({ pull: (stream) => stream.enqueue(new Uint8Array(65_536).fill(120)) }),
      {
        headers: { "content-type": "text/event-stream" },
      },
    );
  await using other = new Scene({ replies: [line] });
  assert.match((await other.error()).message, /over 364544 bytes/);
});

Deno.test("an aborted request ends the request to the provider and stays counted", async () => {
  const gone = Promise.withResolvers<void>();
  const abort = new AbortController();
  await using scene = new Scene({
    replies: [
      () =>
        new Response(
          new ReadableStream({
            start: () => abort.abort(new Error("given up")),
            cancel: () => gone.resolve(),
          }),
          {
            headers: { "content-type": "text/event-stream" },
          },
        ),
    ],
  });
  await assert.rejects(scene.ask({}, abort.signal), /given up/);
  await gone.promise;
  assert.equal(scene.events[0]?.code, "CANCELLED");
  assert.ok(scene.sampling.today().tokens > 100);
});
