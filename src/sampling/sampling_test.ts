import assert from "node:assert/strict";
import { events, eventsOf } from "../../tests/kit/fake_provider.ts";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { parsePattern } from "../core/pattern.ts";
import { toolId } from "../core/tool_id.ts";
import { ASKED, KEY, Scene } from "./_scene_test.ts";
import { fits, patternsOf } from "./sampling.ts";

const TOOLS = ["read", "write"].map((tool) => ({
  id: toolId("fs", tool),
  name: `fs__${tool}`,
  description: `It can ${tool}`,
  inputSchema: { type: "object" },
}));
const WANTED: JsonObject = { allowedToolPatterns: ["fs__*"] };
/** A model that always wants to read. */
const READS = { text: "I read", uses: [{ name: "fs__read", input: { path: "a" } }] };
const BOUND = { allowed_tool_patterns: ["fs:*"] };

function failing(status: number, body: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return () => new Response(text, { status, headers: { "retry-after": "0", ...headers } });
}

Deno.test("What a provider refuses is told with what to do", async () => {
  const error = (message: string) => ({ error: { type: "x", message } });
  const cases = [
    [
      401,
      error(`bad key ${KEY}`),
      "KEY_MISSING",
      /refuses ANTHROPIC_API_KEY \(401: bad key \(a key\)\)/,
    ],
    [403, error("no"), "KEY_MISSING", /Set ANTHROPIC_API_KEY/],
    [404, error("model: m-1"), "UPSTREAM_PROTOCOL", /it has no "m-1"/],
    [400, error("prompt is too long: 9 > 8"), "INPUT_TOO_LARGE", /Send less text/],
    [413, "<html>", "INPUT_TOO_LARGE", /too long/],
    [
      400,
      error("messages: odd"),
      "UPSTREAM_PROTOCOL",
      /refuses the request \(400: messages: odd\)/,
    ],
    [307, "", "UPSTREAM_PROTOCOL", /another address, where your key does not go/],
    [200, "{}", "UPSTREAM_PROTOCOL", /no stream of events/],
  ] as const;
  for (const [status, body, code, expected] of cases) {
    await using scene = new Scene({ replies: [failing(status, body, { location: "/" })] });
    const { code: found, message, hint } = await scene.error();
    assert.equal(found, code, message);
    assert.match(`${message}. ${hint}`, expected);
    assert.equal(scene.provider.received.length, 1);
    assert.ok(!message.includes(KEY));
    // Nothing was used.
    assert.deepEqual(scene.sampling.today().tokens, 0);
    assert.equal(scene.events[0]?.code, code);
  }
});

Deno.test("A busy provider is asked three times, or not again if it wants to be left alone", async () => {
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
  // It may say so in the stream, before it began to answer.
  const told = events([{ type: "error", ...busy }]);
  await using streamed = new Scene({ replies: [told, { text: "it" }] });
  assert.equal((await streamed.ask()).stopReason, "endTurn");
  assert.equal(streamed.provider.received.length, 2);
});

Deno.test("What is no whole answer is an error, and counts as used", async () => {
  const all = eventsOf("anthropic", { text: "half" });
  const broken: readonly (readonly [readonly unknown[], RegExp])[] = [
    [all.slice(0, -1), /broke off before its end/],
    [all.slice(0, 4), /broke off/],
    [[], /broke off/],
    [["{"], /no JSON/],
    [[...all.slice(0, 4), { type: "error", error: { message: "gone" } }], /gone/],
    [["[".repeat(20_000)], /no JSON/],
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

Deno.test("An answer is bounded by the tokens that were asked for", async () => {
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
  // One event that never ends is bounded, too.
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

Deno.test("A model calls the tools that it was offered, until it is done", async () => {
  const ran: unknown[] = [];
  for (const format of ["anthropic", "openai"] as const) {
    await using scene = new Scene({
      format,
      replies: [READS, { text: "it says b" }],
      settings: BOUND,
      tools: TOOLS,
      run: (id, args) => {
        ran.push([id, args]);
        return Promise.resolve({ content: [{ type: "text", text: "b" }] });
      },
    });
    const { content, stopReason } = await scene.ask(WANTED);
    assert.deepEqual([content, stopReason], [{ type: "text", text: "it says b" }, "endTurn"]);
    assert.deepEqual(ran.splice(0), [["fs:read", { path: "a" }]]);
    const [first, second] = scene.provider.bodies;
    assert.equal(first.tools.length, 2);
    const messages = second.messages.slice(1);
    const use = { id: "call_1_0", type: "function" };
    assert.deepEqual(
      messages,
      format === "anthropic"
        ? [
          {
            role: "assistant",
            content: [
              { type: "text", text: "I read" },
              { type: "tool_use", id: "toolu_1_0", name: "fs__read", input: { path: "a" } },
            ],
          },
          {
            role: "user",
            content: [{
              type: "tool_result",
              tool_use_id: "toolu_1_0",
              content: [{ type: "text", text: "b" }],
            }],
          },
        ]
        : [
          {
            role: "assistant",
            content: [{ type: "text", text: "I read" }],
            tool_calls: [{ ...use, function: { name: "fs__read", arguments: '{"path":"a"}' } }],
          },
          { role: "tool", tool_call_id: "call_1_0", content: "b" },
        ],
    );
    assert.deepEqual(scene.events.map(({ turn }) => turn), [1, 2]);
  }
});

Deno.test("Names and arguments that are not valid go back to the model, and to no tool", async () => {
  const uses = [
    { name: "shell__exec", input: {} },
    { name: "fs:read", input: {} },
    { name: "__proto__", input: {} },
    { name: "fs__read", input: "[1]" },
    { name: "fs__read", input: "{oops" },
  ];
  await using scene = new Scene({
    replies: [{ uses }, { text: "sorry" }],
    settings: BOUND,
    tools: TOOLS,
    run: () => assert.fail("a tool ran"),
  });
  await scene.ask(WANTED);
  const { content } = scene.provider.bodies[1].messages.at(-1);
  const said = content.map((one: { content: readonly [{ text: string }] }) => one.content[0].text);
  assert.deepEqual(said, [
    ...Array(3).fill("You have no tool of this name"),
    ...Array(2).fill("The arguments are no JSON object"),
  ]);
  assert.ok(content.every((one: { is_error?: boolean }) => one.is_error === true));
  // A server that runs its tools itself gets no such arguments either.
  await using own = new Scene({ replies: [{ uses: [{ name: "x", input: "{oops" }] }] });
  const { message } = await own.error({ tools: [{ name: "x", inputSchema: {} }] });
  assert.match(message, /no JSON object/);
});

Deno.test("What a tool refuses is told to the model, but what only the person can do ends the loop", async () => {
  let error = new PmlError("PERMISSION_DENIED", "Cannot run it", { hint: "A rule forbids it" });
  const scene = () =>
    new Scene({
      replies: [READS, { text: "I cannot" }],
      settings: BOUND,
      tools: TOOLS,
      run: () => Promise.reject(error),
    });
  await using denied = scene();
  await denied.ask(WANTED);
  const [result] = denied.provider.bodies[1].messages.at(-1).content;
  assert.equal(result.content[0].text, "PERMISSION_DENIED: Cannot run it. A rule forbids it");
  error = new PmlError("APPROVAL_REQUIRED", "Cannot run it", { hint: "pml approve" });
  await using asks = scene();
  assert.equal((await asks.error(WANTED)).code, "APPROVAL_REQUIRED");
  assert.equal(asks.provider.received.length, 1);
});

Deno.test("A loop that never ends is stopped at each of its caps, which the answer names", async () => {
  const run = () => Promise.resolve({ content: [{ type: "text", text: "b" }] });
  const scene = (settings: object) =>
    new Scene({ replies: [READS], settings: { ...BOUND, ...settings }, tools: TOOLS, run });
  const textOf = ({ content }: JsonObject) => String((content as JsonObject).text);
  await using turns = scene({ max_turns: 3 });
  const said = await turns.ask(WANTED);
  assert.equal(turns.provider.received.length, 3);
  assert.equal(said.stopReason, "maxTurns");
  assert.match(
    textOf(said),
    /^I read\n\[PML stopped here: .*3 times \(sampling\.max_turns\); raise it/,
  );
  await using tokens = scene({ max_tokens: 12 });
  assert.match(textOf(await tokens.ask(WANTED)), /used 12 tokens \(sampling\.max_tokens\)/);
  assert.deepEqual(tokens.provider.bodies.map((body) => body.max_tokens), [12, 7, 2]);
  await using day = scene({ tokens_per_day: 400 });
  assert.match(
    textOf(await day.ask(WANTED)),
    /of 400 tokens of today.*\(sampling\.tokens_per_day\)/,
  );
  const count = day.provider.received.length;
  assert.ok(count > 1 && count < 8, `${count} turns`);
  await using money = scene({
    prices: { input_per_million: 0, output_per_million: 1_000_000 },
    money_per_day: 110,
  });
  assert.match(
    textOf(await money.ask(WANTED)),
    /15\.00 of 110\.00 of today .*\(sampling\.money_per_day\)/,
  );
  assert.equal(money.provider.received.length, 3);
});

Deno.test("A long result of a tool is cut for the model", async () => {
  await using scene = new Scene({
    replies: [READS, { text: "long" }],
    settings: { ...BOUND, tokens_per_day: 1_000_000 },
    tools: TOOLS,
    run: () => Promise.resolve({ content: [{ type: "text", text: "x".repeat(60_000) }] }),
  });
  await scene.ask(WANTED);
  const [{ content: [{ text }] }] = scene.provider.bodies[1].messages.at(-1).content;
  assert.ok(text.endsWith("x… (10000 more)"));
});

Deno.test("Requests of a minute and tokens of a day hold across processes and restarts", async () => {
  await using scene = new Scene({ settings: { requests_per_minute: 2 } });
  await scene.ask();
  await scene.ask();
  const { Sampling } = await import("./sampling.ts");
  const again = new Sampling({
    home: scene.home,
    fetch: () => assert.fail(),
    withoutSecrets: (x) => x,
  });
  assert.equal(again.today().tokens, 30);
  const { code, message, hint } = await scene.error();
  assert.equal(code, "OVERLOADED");
  assert.match(
    message,
    /2 requests were made in the last minute \(sampling\.requests_per_minute\)/,
  );
  assert.match(hint ?? "", /Raise sampling\.requests_per_minute/);
  assert.equal(scene.provider.received.length, 2);
  const kept = JSON.parse(await Deno.readTextFile(scene.file));
  await Deno.writeTextFile(scene.file, JSON.stringify({ ...kept, recent: [], tokens: 499_990 }));
  assert.match((await scene.error()).message, /499990 of 500000 tokens of today are used/);
  // Another day, another budget.
  await Deno.writeTextFile(scene.file, JSON.stringify({ ...kept, recent: [], day: "2020-01-01" }));
  await scene.ask();
  await Deno.writeTextFile(scene.file, "{}");
  assert.match((await scene.error()).hint ?? "", /remove it to begin anew/);
});

Deno.test("What is under way is counted, so that requests at once cannot pass a cap together", async () => {
  const held = Promise.withResolvers<void>();
  await using scene = new Scene({
    settings: { tokens_per_day: 1_000, requests_per_minute: 100, max_tokens: 400 },
    replies: [() =>
      new Response(
        new ReadableStream({
          start: async (stream) => {
            await held.promise;
            const bytes = await events(eventsOf("anthropic", { text: "it" })).bytes();
            stream.enqueue(bytes);
            stream.close();
          },
        }),
        { headers: { "content-type": "text/event-stream" } },
      )],
  });
  const asked = Array.from(
    { length: 5 },
    () => scene.ask({ maxTokens: 400 }).catch((error) => error.code),
  );
  const refused = Promise.all(asked).then((all) => all.filter((one) => one === "OVERLOADED"));
  while (scene.provider.received.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  held.resolve();
  assert.equal((await refused).length, 3);
  assert.equal(scene.sampling.today().tokens, 30);
});

Deno.test("A person is told where the text goes, what it may cost, and which tools there are", async () => {
  await using scene = new Scene({
    settings: { ...BOUND, prices: { input_per_million: 3, output_per_million: 15 } },
  });
  const lines = (params: JsonObject, settings = scene.settings) =>
    scene.sampling.lines(scene.sampling.prompt({ ...ASKED, ...params }), settings);
  assert.match(
    lines({})[0] ?? "",
    /^It gives this text to m-1 at 127.* \(anthropic\), with your ANTHR/,
  );
  assert.match(
    lines({})[1] ?? "",
    /^It uses about \d\d tokens of text and at most 100 of answers; at most 0\.0016$/,
  );
  const [, cost, tools] = lines(WANTED);
  assert.match(
    cost ?? "",
    /at most 4096 of answers in at most 8 turns.*; the first turn costs at most/,
  );
  assert.equal(
    tools,
    "The model may call tools that fit fs__* and fs:*; your rules judge each call",
  );
  const none = { ...scene.settings, tools: [] };
  assert.match(lines(WANTED, none)[2] ?? "", /allowed_tool_patterns in config\.yaml allows none/);
});

Deno.test("Tools fit the patterns of a server only within those of the person", () => {
  const fit = (wanted: readonly string[], allowed: readonly string[]) => {
    const isFit = fits(wanted, allowed.map(parsePattern));
    const ids = [["git", "status"], ["git", "git_log"], ["vfs", "read"], [
      "shell",
      "exec",
    ]] as const;
    return ids.map(([server, tool]) => toolId(server, tool)).filter(isFit);
  };
  assert.deepEqual(fit(["git_*"], ["*"]), ["git:status", "git:git_log"]);
  assert.deepEqual(fit(["git:*", "vfs__read"], ["*"]), ["git:status", "git:git_log", "vfs:read"]);
  assert.deepEqual(fit(["*"], ["git:status", "vfs:*"]), ["git:status", "vfs:read"]);
  assert.deepEqual(fit(["**"], []), []);
  assert.deepEqual(fit([], ["*"]), []);
  assert.deepEqual(fit(["status", "ex*"], ["git:*"]), ["git:status"]);
  assert.deepEqual(patternsOf({ _meta: { allowedToolPatterns: ["a"] } }), ["a"]);
});

Deno.test("A request that is given up ends the one to the provider, and stays counted", async () => {
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
  await assert.rejects(scene.ask({}, { signal: abort.signal }), /given up/);
  await gone.promise;
  assert.equal(scene.events[0]?.code, "CANCELLED");
  assert.ok(scene.sampling.today().tokens > 100);
});
