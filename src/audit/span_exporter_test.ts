import assert from "node:assert/strict";
import { until } from "../../tests/kit/wait.ts";
import { Redactor } from "./redact.ts";
import { type ExportSettings, samplerOf, SpanExporter } from "./span_exporter.ts";
import { SpanTracer } from "./spans.ts";

const ALL = samplerOf({ share: 1, isParentBased: true });

/** Opens an exporter whose requests get an answer of a function. */
function exporterOf(
  answer: (body: string) => Response | Promise<Response>,
  more: Partial<ExportSettings> = {},
) {
  const logged: string[] = [];
  const add = (text: string) => void logged.push(text);
  const redactor = new Redactor();
  redactor.register("secret-of-a-key");
  const settings: ExportSettings = {
    url: "http://127.0.0.1:4318/v1/traces",
    encoding: "json",
    headers: {},
    timeoutMs: 1_000,
    isGzip: false,
    certificates: {},
    delayMs: 1,
    queueMax: 10,
    batchMax: 5,
    resource: { "service.name": "pml" },
    ...more,
  };
  const exporter = new SpanExporter(settings, {
    log: { debug: add, info: add, warn: add },
    redactor,
    openFetch: () =>
      Promise.resolve(async (_, { body = "", signal }) => {
        const text = typeof body === "string" ? body : new TextDecoder().decode(body);
        const { promise, reject } = Promise.withResolvers<never>();
        signal.addEventListener("abort", () => reject(signal.reason));
        promise.catch(() => {}); // the answer came before
        return await Promise.race([Promise.resolve(answer(text)), promise]);
      }),
  });
  const tracer = new SpanTracer(exporter, ALL);
  const ask = (name: string) =>
    tracer.beginServed({
      ...{ method: "tools/call", params: { name }, meta: undefined, idText: "1" },
      ...{ revision: undefined, session: undefined, isRemote: false, since: 1 },
    }).end(2, undefined);
  return { exporter, logged, ask };
}

Deno.test("spans that cannot be sent wait in a bounded queue, and the log has one warning", async () => {
  let isDead = true;
  const taken: string[] = [];
  const { exporter, logged, ask } = exporterOf((body) => {
    if (isDead) throw new Error("connection refused");
    taken.push(...body.match(/tools\/call t\d+/g) ?? []);
    return Response.json({});
  });
  for (let count = 0; count < 30; count++) ask(`t${count}`);
  await until(() => logged.length >= 3);
  assert.equal(logged.filter((line) => line.startsWith("Cannot send")).length, logged.length);
  isDead = false;
  await until(() => taken.length >= 10);
  assert.equal(taken.length, 10);
  assert.match(logged.at(-1) ?? "", /20 spans were lost/);
  await exporter[Symbol.asyncDispose]();
});

Deno.test("a refused request is not repeated, and a busy collector is asked again later", async () => {
  const answers = [new Response("", { status: 400 }), new Response("", { status: 503 })];
  const bodies: string[] = [];
  const { exporter, ask } = exporterOf((body) => {
    bodies.push(...body.match(/tools\/call \w+/g) ?? []);
    return answers.shift() ?? Response.json({ partialSuccess: { rejectedSpans: "1" } });
  });
  ask("refused");
  await until(() => bodies.length === 1);
  ask("repeated");
  await until(() => bodies.length === 3);
  assert.deepEqual(bodies.slice(1), ["tools/call repeated", "tools/call repeated"]);
  await exporter[Symbol.asyncDispose]();
});

Deno.test("the end waits for the last spans, but not for a collector that does not answer", async () => {
  const bodies: string[] = [];
  const quick = exporterOf((body) => {
    bodies.push(body);
    return Response.json({});
  }, { delayMs: 60_000 });
  quick.ask("last");
  await quick.exporter[Symbol.asyncDispose]();
  assert.equal(bodies.length, 1);
  const slow = exporterOf(() => new Promise(() => {}), { delayMs: 60_000, timeoutMs: 60_000 });
  slow.ask("last");
  await slow.exporter[Symbol.asyncDispose]();
});

Deno.test("secrets are removed from the texts of spans", async () => {
  const bodies: string[] = [];
  const { exporter, ask } = exporterOf((body) => {
    bodies.push(body);
    return Response.json({});
  });
  ask("a-secret-of-a-key-b");
  await until(() => bodies.length === 1);
  assert.ok(!bodies.join().includes("secret-of-a-key"));
  await exporter[Symbol.asyncDispose]();
});

Deno.test("samplers decide by the id of a trace, or follow the client", () => {
  const half = samplerOf({ share: 0.5, isParentBased: true });
  const low = "00000000000000000000000000000001";
  const high = "000000000000000000000000ffffffff";
  assert.deepEqual([half.recordsOwn({ traceId: low }), half.recordsOwn({ traceId: high })], [
    true,
    false,
  ]);
  const parent = { traceId: high, spanId: "1".repeat(16), isSampled: true, state: undefined };
  assert.equal(half.recordsClient(parent), true);
  assert.equal(samplerOf({ share: 0.5, isParentBased: false }).recordsClient(parent), false);
  assert.equal(samplerOf({ share: 0, isParentBased: false }).recordsOwn({ traceId: low }), false);
});

Deno.test("a span has a random id, and a child has the trace of its parent", () => {
  const tracer = new SpanTracer({ add() {} }, ALL);
  const served = tracer.beginServed({
    ...{ method: "resources/read", params: {}, meta: undefined, idText: '"a"' },
    ...{ revision: undefined, session: undefined, isRemote: true, since: 1 },
  });
  const owner = { id: 1, method: "resources/read", sentAt: 1 };
  const sent = tracer.beginSent({ ...owner, options: { client: { trace: served } } }, {}, {
    ...{ server: "s", revision: undefined, address: undefined },
  });
  assert.match(served.traceId, /^[0-9a-f]{32}$/);
  assert.match(served.spanId, /^[0-9a-f]{16}$/);
  assert.equal(sent.traceId, served.traceId);
  assert.notEqual(sent.spanId, served.spanId);
});
