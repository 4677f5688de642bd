import assert from "node:assert/strict";
import fc from "fast-check";
import { assertQuick } from "../../tests/kit/wait.ts";
import { textResult } from "../protocol/call.ts";
import type { JsonObject } from "../core/json.ts";
import { tokensOf } from "../core/tokens.ts";
import type { EndRecord } from "./journal.ts";
import { Histogram, Metrics } from "./metrics.ts";

Deno.test("Histogram returns the exact total, and median and p95 within 5 percent", () => {
  const values = fc.array(fc.double({ min: 0.1, max: 1e6, noNaN: true }), { minLength: 1 });
  fc.assert(fc.property(values, (all) => {
    const tally = new Histogram();
    all.forEach((value) => tally.add(value));
    const sorted = [...all].sort((a, b) => a - b);
    const { count, total, median, p95 } = tally.distribution();
    assert.equal(count, all.length);
    assert.ok(Math.abs(total - all.reduce((sum, value) => sum + value, 0)) <= 0.001);
    for (const [part, found] of [[0.5, median], [0.95, p95]] as const) {
      const wanted = sorted[Math.ceil(part * all.length) - 1] ?? NaN;
      assert.ok(Math.abs(found / wanted - 1) <= 0.06, `${found} for ${wanted}`);
    }
  }));
  assert.deepEqual(new Histogram().distribution(), { count: 0, total: 0, median: 0, p95: 0 });
  const odd = new Histogram();
  [0, 0, 1e300].forEach((value) => odd.add(value));
  assert.deepEqual([odd.distribution().median, odd.distribution().count], [0, 3]);
});

function answer(text: string): JsonObject {
  return textResult(text) as unknown as JsonObject;
}

function count(metrics: Metrics, what: string, answer: JsonObject): void {
  metrics.countAnswer(what, answer);
}

Deno.test("a server that answers with ever new codes takes no series of another", () => {
  const metrics = new Metrics();
  metrics.names = { hasMethod: () => true, hasName: () => true, hasTool: () => true };
  for (let code = 0; code < 3_000; code++) {
    metrics.countSent({ method: "tools/call", server: "hostile", ms: 1, error: `${-code}` });
    metrics.countServed({ method: "tools/call", tool: "h", ms: 1, error: `${code}` });
  }
  metrics.countSent({ method: "tools/call", server: "other", ms: 1, error: "TIMED_OUT" });
  const [served, sent] = metrics.families().map(({ samples }) => samples);
  assert.ok((served?.length ?? 0) < 100 && (sent?.length ?? 0) < 100);
  assert.deepEqual(sent?.at(-1)?.labels, {
    ...{ mcp_method_name: "tools/call", pml_server: "other", error_type: "TIMED_OUT" },
  });
});

Deno.test("Metrics counts how calls ended, and which codes they failed with", () => {
  const metrics = new Metrics();
  const end = (outcome: EndRecord["outcome"], more: Partial<EndRecord> = {}) =>
    metrics.countRecord({ kind: "end", callId: "c", outcome, ms: 3, ...more });
  end("result");
  end("result", { ms: 900 });
  end("tool error");
  end("ask");
  end("failed", { code: "TIMED_OUT" });
  end("failed", { code: "TIMED_OUT" });
  metrics.countRecord({ kind: "event", event: "approved" });
  const { count, errors, asked, failed, ms } = metrics.report().calls;
  assert.deepEqual([count, errors, asked, failed], [6, 3, 1, { TIMED_OUT: 2 }]);
  assert.ok(ms.median > 2.8 && ms.median < 3.2 && ms.p95 > 850 && ms.p95 <= 900, `${ms.p95}`);
});

Deno.test("Metrics counts tokens by kind of answer, and no question as an answer", () => {
  const metrics = new Metrics();
  const text = "issues:create_issue(owner: string, labels: string[]): object";
  count(metrics, "search", answer(text));
  count(metrics, "search", answer(text));
  count(metrics, "call", { resultType: "input_required" });
  const tools = [{ name: "search", description: text, inputSchema: { type: "object" } }];
  count(metrics, "tools/list meta_only", { tools });
  const page = { uri: "a:b", text };
  count(metrics, "call", { content: [{ type: "resource", resource: page }, { type: "image" }] });
  const { tokens } = metrics.report();
  assert.deepEqual(Object.keys(tokens), ["call", "search", "tools/list meta_only"]);
  const { search, call } = tokens;
  assert.deepEqual([search?.count, search?.total], [2, 2 * tokensOf(text)]);
  assert.equal(call?.count, 1);
  assert.equal(tokens["tools/list meta_only"]?.total, tokensOf(JSON.stringify(tools)));
});

Deno.test("Metrics reads and keeps only pieces of a long answer", async () => {
  let metrics = new Metrics();
  const row = '{"name": "a file", "size": 4096, "changed": "2024-11-05"}\n';
  const text = row.repeat(350_000);
  // Reading all of it would take seconds.
  await assertQuick(200, () => {
    metrics = new Metrics();
    count(metrics, "call", answer(text));
    count(metrics, "call", { content: Array.from({ length: 5_000 }, () => ({ text: row })) });
  });
  const { call } = metrics.report().tokens;
  const whole = tokensOf(row) * 355_000;
  assert.ok(Math.abs((call?.total ?? 0) / whole - 1) < 0.1, `${call?.total} for ${whole}`);
});

Deno.test("Metrics samples pieces of the whole of a long answer", () => {
  const dear = "読取書込検索".repeat(200);
  const cheap = "Read the whole of a text file and give what stands in it. ".repeat(400);
  for (const texts of [[dear + cheap], [cheap + dear], [dear, cheap], [cheap, dear]]) {
    const metrics = new Metrics();
    count(metrics, "call", { content: texts.map((text) => ({ type: "text", text })) });
    const { total = 0 } = metrics.report().tokens.call ?? {};
    const whole = tokensOf(texts.join("\n"));
    assert.ok(Math.abs(total / whole - 1) < 0.2, `${total} for ${whole}`);
  }
  const metrics = new Metrics();
  const tools = [{ name: "a", description: dear.repeat(20) }, {
    name: "b",
    description: cheap.repeat(20),
  }];
  count(metrics, "tools/list", { tools });
  const { total = 0 } = metrics.report().tokens["tools/list"] ?? {};
  const whole = tokensOf(JSON.stringify(tools));
  assert.ok(Math.abs(total / whole - 1) < 0.2, `${total} for ${whole}`);
});

Deno.test("Metrics counts all of many answers in bounded memory", () => {
  const metrics = new Metrics();
  const answers = Array.from({ length: 1_000 }, (_, at) => answer(`answer ${at}`));
  for (let round = 0; round < 20; round++) {
    for (const one of answers) count(metrics, "call", one);
  }
  assert.equal(metrics.report().tokens.call?.count, 20_000);
  assert.ok(JSON.stringify(metrics.report()).length < 1_000);
});

Deno.test("tokens are estimated from one in sixteen answers, and counted when they are reported", () => {
  const metrics = new Metrics();
  const texts = Array.from(
    { length: 3_000 },
    (_, at) =>
      at % 3 === 0 ? "読取書込検索".repeat(at % 7) : `{"name": "file ${at}", "size": ${at * 977}}`,
  );
  let read = 0;
  for (const text of texts) {
    const block = { type: "text", text };
    // Each answer is read once for its length. Samples are read again.
    Object.defineProperty(block, "text", { get: () => (read++, text) });
    count(metrics, "call", { content: [block] });
  }
  assert.ok(read < texts.length * 1.2, `${read} reads of ${texts.length} answers`);
  const { count: counted, total = 0 } = metrics.report().tokens.call ?? {};
  const whole = texts.reduce((sum, text) => sum + tokensOf(text), 0);
  assert.equal(counted, texts.length);
  assert.ok(Math.abs(total / whole - 1) < 0.2, `${total} for ${whole}`);
});
