import assert from "node:assert/strict";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { parsePattern } from "../core/pattern.ts";
import { toolId } from "../core/tool_id.ts";
import { Scene } from "./_scene_test.ts";
import { createToolFilter } from "./_request.ts";

const TOOLS = ["read", "write"].map((tool) => ({
  id: toolId("fs", tool),
  name: `fs__${tool}`,
  description: `It can ${tool}`,
  inputSchema: { type: "object" },
}));
const WANTED: JsonObject = { allowedToolPatterns: ["fs__*"] };
/** A reply that always calls the tool `read`. */
const READS = { text: "I read", uses: [{ name: "fs__read", input: { path: "a" } }] };
const BOUND = { allowed_tool_patterns: ["fs:*"] };

Deno.test("a model calls the offered tools until it finishes", async () => {
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

Deno.test("invalid tool names and arguments are returned to the model and reach no tool", async () => {
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
  assert.equal(said.length, 5);
  for (const text of said.slice(0, 3)) assert.match(text, /no tool/);
  for (const text of said.slice(3)) assert.match(text, /not a JSON object/);
  assert.ok(content.every((one: { is_error?: boolean }) => one.is_error === true));
  // A server that runs its own tools does not receive such arguments either.
  await using own = new Scene({ replies: [{ uses: [{ name: "x", input: "{oops" }] }] });
  const { message } = await own.error({ tools: [{ name: "x", inputSchema: {} }] });
  assert.match(message, /not a JSON object/);
});

Deno.test("a tool's error is returned to the model, but a required approval ends the loop", async () => {
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
  assert.match(result.content[0].text, /^PERMISSION_DENIED: /);
  error = new PmlError("APPROVAL_REQUIRED", "Cannot run it", { hint: "pml approve" });
  await using asks = scene();
  assert.equal((await asks.error(WANTED)).code, "APPROVAL_REQUIRED");
  assert.equal(asks.provider.received.length, 1);
});

Deno.test("each limit stops an endless loop, and the answer names the limit", async () => {
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

Deno.test("a long tool result is truncated for the model", async () => {
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

Deno.test("createToolFilter() limits its steps for all tools together", () => {
  const wanted = Array.from({ length: 100 }, (_, at) => ("*a".repeat(98) + at).slice(0, 200));
  const isFit = createToolFilter(wanted, [parsePattern("*")]);
  const since = performance.now();
  for (let at = 0; at < 1_000; at++) isFit(toolId("srv", "a".repeat(50) + at));
  assert.ok(performance.now() - since < 5_000);
  const few = createToolFilter(["t1*", "s:t2", "s__t3"], [parsePattern("*")]);
  const fitting = Array.from({ length: 1_000 }, (_, at) => toolId("s", `t${at}`)).filter(few);
  assert.equal(fitting.length, 111 + 2);
});
