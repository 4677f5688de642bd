import assert from "node:assert/strict";
import { events, type Format } from "../../tests/kit/fake_provider.ts";
import type { Fetch } from "../core/fetch.ts";
import type { JsonObject } from "../core/json.ts";
import { Redactor } from "../audit/redact.ts";
import { VERSION } from "../core/version.ts";
import { KEY, Scene, SceneRequest } from "./_scene_test.ts";
import { Sampling } from "./sampling.ts";

const PICTURE = { type: "image", data: "AAEC", mimeType: "image/png" };
const TOOL = {
  name: "add",
  description: "Add numbers",
  inputSchema: { type: "object", properties: { a: { type: "number" } } },
};
/** A request with every field that MCP defines. */
const FULL: JsonObject = {
  messages: [
    { role: "user", content: [{ type: "text", text: "Look" }, PICTURE] },
    {
      role: "assistant",
      content: [
        { type: "text", text: "I add" },
        { type: "tool_use", id: "u1", name: "add", input: { a: 1 } },
      ],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          toolUseId: "u1",
          content: [{ type: "text", text: "no" }],
          isError: true,
        },
        { type: "text", text: "go on" },
      ],
    },
  ],
  systemPrompt: "Be brief",
  maxTokens: 77,
  temperature: 0.5,
  stopSequences: ["END"],
  metadata: { user_id: "u-9", other: 1 },
  includeContext: "none",
  tools: [TOOL],
  toolChoice: { mode: "required" },
};

Deno.test("every field and header of a request to Anthropic matches its API", async () => {
  await using scene = new Scene();
  await scene.ask(FULL);
  const [{ method, path, headers } = assert.fail()] = scene.provider.received;
  assert.equal(`${method} ${path}`, "POST /v1/messages");
  const { "content-length": length, ...rest } = headers;
  assert.ok(Number(length) > 0);
  assert.deepEqual(rest, {
    "accept": "text/event-stream",
    "accept-encoding": "identity",
    "anthropic-version": "2023-06-01",
    "connection": "keep-alive",
    "content-type": "application/json",
    "host": scene.provider.host,
    "user-agent": `pml/${VERSION}`,
    "x-api-key": KEY,
  });
  assert.deepEqual(scene.provider.bodies[0], {
    model: "m-1",
    max_tokens: 77,
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "Look" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: "AAEC" } },
        ],
      },
      {
        role: "assistant",
        content: [
          { type: "text", text: "I add" },
          { type: "tool_use", id: "u1", name: "add", input: { a: 1 } },
        ],
      },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "u1",
            content: [{ type: "text", text: "no" }],
            is_error: true,
          },
          { type: "text", text: "go on" },
        ],
      },
    ],
    system: "Be brief",
    temperature: 0.5,
    stop_sequences: ["END"],
    metadata: { user_id: "u-9" },
    tools: [{ name: "add", description: "Add numbers", input_schema: TOOL.inputSchema }],
    tool_choice: { type: "any" },
    stream: true,
  });
});

Deno.test("every field and header of a request to OpenAI matches its API", async () => {
  await using scene = new Scene({ format: "openai" });
  await scene.ask(FULL);
  const [{ method, path, headers } = assert.fail()] = scene.provider.received;
  assert.equal(`${method} ${path}`, "POST /v1/chat/completions");
  const { "content-length": length, ...rest } = headers;
  assert.ok(Number(length) > 0);
  assert.deepEqual(rest, {
    "accept": "text/event-stream",
    "accept-encoding": "identity",
    "authorization": `Bearer ${KEY}`,
    "connection": "keep-alive",
    "content-type": "application/json",
    "host": scene.provider.host,
    "user-agent": `pml/${VERSION}`,
  });
  const expected = {
    model: "m-1",
    messages: [
      { role: "system", content: "Be brief" },
      {
        role: "user",
        content: [
          { type: "text", text: "Look" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AAEC" } },
        ],
      },
      {
        role: "assistant",
        content: [{ type: "text", text: "I add" }],
        tool_calls: [{
          id: "u1",
          type: "function",
          function: { name: "add", arguments: '{"a":1}' },
        }],
      },
      { role: "tool", tool_call_id: "u1", content: "no" },
      { role: "user", content: [{ type: "text", text: "go on" }] },
    ],
    temperature: 0.5,
    stop: ["END"],
    tools: [{
      type: "function",
      function: { name: "add", description: "Add numbers", parameters: TOOL.inputSchema },
    }],
    tool_choice: "required",
    stream: true,
    stream_options: { include_usage: true },
  };
  assert.deepEqual(scene.provider.bodies[0], { ...expected, max_tokens: 77 });
});

Deno.test("a request to OpenAI's own address uses the newer name of the token limit", async () => {
  await using scene = new Scene({ format: "openai" });
  const sent: string[] = [];
  const fetch: Fetch = (url, options) => {
    sent.push(url, `${options.body ?? ""}`);
    return Promise.resolve(events([{ choices: [{ delta: {}, finish_reason: "stop" }] }, "[DONE]"]));
  };
  const sampling = new Sampling(scene.home, fetch, new Redactor());
  const own = { isCompatible: false, baseUrl: "https://api.openai.com/v1" };
  const request = new SceneRequest(scene, {}, { settings: { ...scene.settings, ...own } });
  await sampling.answer(sampling.parse(FULL), request);
  assert.equal(sent[0], "https://api.openai.com/v1/chat/completions");
  const { max_completion_tokens: most, max_tokens: older } = JSON.parse(sent[1] ?? "");
  assert.deepEqual([most, older], [77, undefined]);
});

Deno.test("both formats return an answer in the format of MCP", async () => {
  for (const format of ["anthropic", "openai"] as const) {
    await using scene = new Scene({ format, replies: [{ text: "it is" }] });
    const model = format === "anthropic" ? "m-1-20260101" : "m-1-2026";
    assert.deepEqual(await scene.ask(), {
      role: "assistant",
      model,
      content: { type: "text", text: "it is" },
      stopReason: "endTurn",
    });
    assert.match(scene.progress[0] ?? "", /^127\.0\.0\.1:\d+: \d characters, turn 1 of 8$/);
    const [event] = scene.events;
    assert.deepEqual({ ...event, ms: 0, host: "" }, {
      host: "",
      model: "m-1",
      turn: 1,
      input: 10,
      output: 5,
      ms: 0,
    });
    // A server runs the tools that it sends itself.
    await using other = new Scene({
      format,
      replies: [{ text: "I add", uses: [{ name: "add", input: { a: 1 } }] }],
    });
    const { content, stopReason } = await other.ask({ tools: [TOOL] });
    assert.equal(stopReason, "toolUse");
    const id = format === "anthropic" ? "toolu_1_0" : "call_1_0";
    assert.deepEqual(content, [
      { type: "text", text: "I add" },
      { type: "tool_use", id, name: "add", input: { a: 1 } },
    ]);
  }
});

Deno.test("each stop reason is MCP's or the provider's own word", async () => {
  const reasons: Readonly<Record<Format, Readonly<Record<string, string>>>> = {
    anthropic: {
      end_turn: "endTurn",
      stop_sequence: "stopSequence",
      max_tokens: "maxTokens",
      model_context_window_exceeded: "maxTokens",
      tool_use: "toolUse",
      refusal: "refusal",
    },
    openai: {
      stop: "endTurn",
      length: "maxTokens",
      tool_calls: "toolUse",
      content_filter: "contentFilter",
    },
  };
  for (const format of ["anthropic", "openai"] as const) {
    const all = Object.entries(reasons[format]);
    const replies = all.map(([stop]) => ({ text: "x", stop }));
    await using scene = new Scene({ format, replies, settings: { requests_per_minute: 100 } });
    for (const [stop, expected] of all) {
      assert.equal((await scene.ask()).stopReason, expected, stop);
    }
  }
});

Deno.test("a request selects among the models that the user configured", async () => {
  await using scene = new Scene({
    settings: { model: "claude-small-1", models: ["claude-large-2"], requests_per_minute: 100 },
  });
  const asked = async (...names: readonly string[]) => {
    await scene.ask({ modelPreferences: { hints: names.map((name) => ({ name })) } });
    return scene.provider.bodies.at(-1).model;
  };
  assert.equal(await asked(), "claude-small-1");
  assert.equal(await asked("gpt-5", "claude-large"), "claude-large-2");
  assert.equal(await asked("claude"), "claude-small-1");
  assert.equal(await asked("claude-huge-9"), "claude-small-1");
});

Deno.test("a request accepts older forms and reports errors in others", async () => {
  await using scene = new Scene({ settings: { max_tokens: 50 } });
  // The mode of a tool choice is optional.
  const plain = [{ role: "user", content: "plain" }];
  await scene.ask({ messages: plain, maxTokens: 1_000, toolChoice: {} });
  assert.deepEqual(scene.provider.bodies[0].messages, [
    { role: "user", content: [{ type: "text", text: "plain" }] },
  ]);
  assert.equal(scene.provider.bodies[0].max_tokens, 50);
  const message = { role: "user", content: "x" };
  const wrong: readonly (readonly [JsonObject, RegExp])[] = [
    [{ messages: [] }, /"messages" is not a list/],
    [{ messages: [{ role: "system", content: "x" }] }, /"messages\[0\]\.role"/],
    [
      { messages: [message, { role: "user", content: { type: "video" } }] },
      /"messages\[1\]\.content"/,
    ],
    [{ messages: [{ role: "user", content: { ...PICTURE, data: "<>" } }] }, /content/],
    [{ maxTokens: 0 }, /"maxTokens"/],
    [{ temperature: "warm" }, /"temperature"/],
    [{ stopSequences: [1] }, /"stopSequences"/],
    [{ tools: [{ name: "a b", inputSchema: {} }] }, /"tools\[0\]\.name"/],
    [{ toolChoice: { mode: "maybe" } }, /"toolChoice\.mode"/],
    [{ allowedToolPatterns: "git_*" }, /"allowedToolPatterns"/],
    [{ messages: [{ role: "user", content: { ...PICTURE, type: "audio" } }] }, /not support audio/],
  ];
  for (const [params, expected] of wrong) {
    const { code, message } = await scene.error(params);
    assert.equal(code, "BAD_REQUEST");
    assert.match(message, expected);
  }
  assert.equal(scene.provider.received.length, 1);
});
