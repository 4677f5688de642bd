import assert from "node:assert/strict";
import { events, eventsOf } from "../../tests/kit/fake_provider.ts";
import { waitUntil } from "../../tests/kit/wait.ts";
import { Redactor } from "../audit/redact.ts";
import type { JsonObject } from "../core/json.ts";
import { parsePattern } from "../core/pattern.ts";
import { toolId } from "../core/tool_id.ts";
import { ASKED, Scene } from "./_scene_test.ts";
import { createToolFilter, parsePatterns, Sampling } from "./sampling.ts";

const WANTED: JsonObject = { allowedToolPatterns: ["fs__*"] };
const BOUND = { allowed_tool_patterns: ["fs:*"] };

Deno.test("the limits of requests per minute and tokens per day apply across processes and restarts", async () => {
  await using scene = new Scene({ settings: { requests_per_minute: 2 } });
  await scene.ask();
  await scene.ask();
  const again = new Sampling(scene.home, () => assert.fail(), new Redactor());
  assert.equal(again.today().tokens, 30);
  const { code, message, hint } = await scene.error();
  assert.equal(code, "OVERLOADED");
  assert.match(
    message,
    /2 requests .*\(sampling\.requests_per_minute\)/,
  );
  assert.match(hint ?? "", /Raise sampling\.requests_per_minute/);
  assert.equal(scene.provider.received.length, 2);
  const kept = JSON.parse(await Deno.readTextFile(scene.file));
  await Deno.writeTextFile(scene.file, JSON.stringify({ ...kept, recent: [], tokens: 499_990 }));
  assert.match((await scene.error()).message, /499990 of 500000 tokens/);
  // A new day starts from zero.
  await Deno.writeTextFile(scene.file, JSON.stringify({ ...kept, recent: [], day: "2020-01-01" }));
  await scene.ask();
  await Deno.writeTextFile(scene.file, "{}");
  assert.match((await scene.error()).hint ?? "", /\bremove it\b/);
});

Deno.test("a paid answer arrives although its use cannot be counted afterwards", async () => {
  await using scene = new Scene({
    replies: [() => {
      Deno.writeTextFileSync(scene.file, "{");
      return events(eventsOf("anthropic", { text: "it" }));
    }],
  });
  assert.deepEqual((await scene.ask()).content, { type: "text", text: "it" });
  assert.deepEqual(scene.events.map(({ code }) => code), [undefined]);
  // The next request is refused, because the use of today is unknown.
  assert.equal((await scene.error()).code, "CONFIG_INVALID");
});

Deno.test("running requests count, so that concurrent requests cannot exceed a limit together", async () => {
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
  let refused = 0;
  const asked = Array.from(
    { length: 5 },
    () =>
      scene.ask({ maxTokens: 400 }).catch(({ code }) => void (code === "OVERLOADED" && refused++)),
  );
  // Two are running, and the others fail without waiting for them.
  await waitUntil(() => refused >= 3, 10_000);
  held.resolve();
  await Promise.all(asked);
  assert.deepEqual([refused, scene.provider.received.length], [3, 2]);
  assert.equal(scene.sampling.today().tokens, 30);
});

Deno.test("the user sees the recipient of the text, the possible cost and the tools", async () => {
  await using scene = new Scene({
    settings: { ...BOUND, prices: { input_per_million: 3, output_per_million: 15 } },
  });
  const lines = (params: JsonObject, settings = scene.settings) =>
    scene.sampling.describe(scene.sampling.parse({ ...ASKED, ...params }), settings);
  assert.match(
    lines({})[0] ?? "",
    /^It sends this text to m-1 at 127.* \(anthropic\), with your ANTHR/,
  );
  assert.match(
    lines({})[1] ?? "",
    / \d\d tokens, .* 100 .* 0\.0016$/,
  );
  const [, cost, tools] = lines(WANTED);
  assert.match(
    cost ?? "",
    / 8 turns, it sends .* 4096 tokens.* 0\.061;/,
  );
  // One list limits the other: the model may call what matches both.
  assert.match(tools ?? "", / match fs__\*; .* only those of them .* allows \(fs:\*\),/);
  const none = { ...scene.settings, tools: [] };
  assert.match(lines(WANTED, none)[2] ?? "", /allowed_tool_patterns in config\.yaml allows none/);
});

Deno.test("tools match the patterns of a server only within the patterns of the user", () => {
  const fit = (wanted: readonly string[], allowed: readonly string[]) => {
    const isFit = createToolFilter(wanted, allowed.map((text) => parsePattern(text)));
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
  assert.deepEqual(parsePatterns({ _meta: { allowedToolPatterns: ["a"] } }), ["a"]);
});
