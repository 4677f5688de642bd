import assert from "node:assert/strict";
import { memoryUsage } from "node:process";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { JsonTraceSerializer, ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import type { JsonObject } from "../core/json.ts";
import { VERSION } from "../core/version.ts";
import { PmlError } from "../core/errors.ts";
import { RpcError } from "../protocol/errors.ts";
import { errorTypeOf } from "../protocol/trace.ts";
import { Redactor } from "./redact.ts";
import { HAS_PARENT, HAS_REMOTE_PARENT, ROW_BYTES, SpanBatch } from "./span_batch.ts";
import { JsonSpanEncoder, ProtobufSpanEncoder, timeOf } from "./span_encoders.ts";
import { samplerOf } from "./span_exporter.ts";
import { cleanText, type TextCleaner } from "./span_shapes.ts";
import { SpanTracer } from "./spans.ts";

const RESOURCE = { "service.name": "pml", team: 'a "b"' };
const ALL = samplerOf({ share: 1, isParentBased: true });
const PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

/** Returns a batch, and a tracer that fills it. */
function tracerOf(max = 100): { readonly batch: SpanBatch; readonly tracer: SpanTracer } {
  const batch = new SpanBatch(max);
  const tracer = new SpanTracer({ add: (...span) => batch.add(...span) }, ALL);
  return { batch, tracer };
}

/** Returns spans of all kinds. */
function spansOfAllKinds(): SpanBatch {
  const { batch, tracer } = tracerOf();
  const metas = [undefined, { traceparent: PARENT, tracestate: 'a=1,b="2"' }];
  const ids = ["0", '"a\\"b"', "7", "-7", "123456789012345", "1e3", `"${"ü".repeat(300)}"`];
  for (const meta of metas) {
    for (const [at, idText] of ids.entries()) {
      const served = tracer.beginServed({
        ...{ method: "tools/call", params: { name: "s__täst\n" }, meta, idText, since: 10.0005 },
        ...{ revision: "2026-07-28", session: "session-1", isRemote: true },
      });
      const target = { server: "s", revision: "2025-11-25" };
      const sent = (
        { method, params = {}, address, result, error }: {
          readonly method: string;
          readonly params?: Readonly<Record<string, string>>;
          readonly address?: URL;
          readonly result?: unknown;
          readonly error?: Error;
        },
      ) => {
        const owner = {
          id: 10 ** at,
          method,
          sentAt: 12.3,
          options: { client: { trace: served } },
        };
        tracer.beginSent(owner, params, { ...target, address }).end(
          1e9,
          errorTypeOf(result, error),
        );
      };
      const address = new URL("https://h.example/x?key=1");
      sent({ method: "tools/call", params: { name: "t" }, address, result: { isError: true } });
      const refused = new RpcError(-32_602, "message");
      sent({ method: "prompts/get", params: { name: "p" }, error: refused });
      sent({
        ...{ method: "resources/read", params: { uri: "https://u:p@h.example/a?b#c" } },
        ...{
          address: new URL("http://127.0.0.1:99/"),
          error: new PmlError("TIMED_OUT", "message"),
        },
      });
      sent({ method: "initialize", error: new Error("message") });
      tracer.recordRun({
        ...{ tool: "t", server: "m", parent: served, since: 1, ended: 2.5 },
        result: { content: [] },
      });
      served.end(99.9, errorTypeOf({ content: [] }));
    }
  }
  return batch;
}

const SCOPE = { name: "@casys/pml", version: VERSION };
const OFFICIAL_RESOURCE = { attributes: RESOURCE };

/** Returns the spans of a batch as the official encoder takes them. */
function described(batch: SpanBatch, cleaner: TextCleaner): readonly object[] {
  return Array.from({ length: batch.size }, (_, at) => {
    const hex = batch.ids.slice(at * ROW_BYTES, (at + 1) * ROW_BYTES).toHex();
    const [traceId, spanId, parentId] = [hex.slice(0, 32), hex.slice(32, 48), hex.slice(48)];
    const [flags = 0, request = 0] = [batch.flags[at], batch.requests[at]];
    const shape = batch.shapes[batch.shapeAt[at] ?? 0] ?? assert.fail();
    const { id: text, state } = batch.textsOf(at) ?? {};
    const id = request >= 0
      ? `${request}`
      : text?.startsWith('"')
      ? cleanText(text, cleaner)
      : text;
    const traceState = state === undefined ? undefined : { serialize: () => state };
    const isRemote = (flags & HAS_REMOTE_PARENT) !== 0;
    const attributes = shape.attributes(cleaner);
    return {
      name: shape.name(cleaner),
      kind: shape.facts.kind,
      spanContext: () => ({ traceId, spanId, traceFlags: 1, traceState }),
      parentSpanContext: flags & HAS_PARENT ? { traceId, spanId: parentId, isRemote } : undefined,
      startTime: timeOf(batch.times[2 * at] ?? 0),
      endTime: timeOf(batch.times[2 * at + 1] ?? 0),
      status: { code: shape.error === undefined ? 0 : 2 },
      attributes: id === undefined ? attributes : { ...attributes, "jsonrpc.request.id": id },
      resource: OFFICIAL_RESOURCE,
      instrumentationScope: SCOPE,
      events: [],
      links: [],
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0,
    };
  });
}

/** An encoder of the official package. */
interface OfficialEncoder {
  serializeRequest(spans: readonly object[]): Uint8Array | undefined;
}

/** Removes the members that have no value, which JSON of OTLP may leave out. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, one]) => [key, withoutEmpty(one)] as const)
    .filter(([, one]) => one !== 0 && JSON.stringify(one) !== "[]" && JSON.stringify(one) !== "{}");
  const all = Object.fromEntries(entries);
  if (Array.isArray(all.attributes)) {
    all.attributes = all.attributes.toSorted((one: { key: string }, other: { key: string }) =>
      one.key < other.key ? -1 : 1
    );
  }
  return all;
}

Deno.test("the JSON of spans is that of the official encoder", () => {
  const batch = spansOfAllKinds();
  const redactor = new Redactor();
  const official = JsonTraceSerializer as unknown as OfficialEncoder;
  const own = JSON.parse(textOf(new JsonSpanEncoder(RESOURCE, redactor).encode(batch)));
  const text = textOf(official.serializeRequest(described(batch, redactor)) ?? assert.fail());
  assert.equal(own.resourceSpans[0].scopeSpans[0].spans.length, batch.size);
  assert.equal(batch.size, 84);
  assert.deepEqual(withoutEmpty(own), withoutEmpty(JSON.parse(text)));
  assert.ok(!/key=1|message|u:p/.test(JSON.stringify(own)));
});

Deno.test("the protobuf of spans has the bytes of the official encoder", () => {
  const batch = spansOfAllKinds();
  const redactor = new Redactor();
  const official = ProtobufTraceSerializer as unknown as OfficialEncoder;
  const encoder = new ProtobufSpanEncoder(RESOURCE, redactor);
  const expected = official.serializeRequest(described(batch, redactor)) ?? assert.fail();
  assert.equal(encoder.encode(batch).toHex(), expected.toHex());
  // The memory of the encoder and of the batch is used again.
  batch.clear();
  assert.equal(encoder.encode(batch).length, 0);
  const { batch: other, tracer } = tracerOf();
  const meta = { traceparent: PARENT, tracestate: "a=1" };
  const ask = (idText: string) =>
    tracer.beginServed({
      ...{ method: "tools/call", params: { name: "t" }, meta, idText, since: 1 },
      ...{ revision: undefined, session: undefined, isRemote: false },
    }).end(2, undefined);
  ask("1");
  ask('"b"');
  other.truncate(1);
  ask("2");
  const both = official.serializeRequest(described(other, redactor)) ?? assert.fail();
  assert.equal(encoder.encode(other).toHex(), both.toHex());
});

Deno.test("a member of tracestate with a secret is not sent to the collector", () => {
  const { batch, tracer } = tracerOf();
  const redactor = new Redactor();
  redactor.register("secret-that-is-long");
  const states = ["a=1,b=secret-that-is-long,c=3", "a=sk-ant-api03-abcdefghijklmnopqrstuvwx,d=4"];
  for (const tracestate of states) {
    tracer.beginServed({
      ...{ method: "ping", params: {}, meta: { traceparent: PARENT, tracestate }, idText: "1" },
      ...{ revision: undefined, session: undefined, isRemote: false, since: 1 },
    }).end(2, undefined);
  }
  for (const Encoder of [JsonSpanEncoder, ProtobufSpanEncoder]) {
    const text = textOf(new Encoder(RESOURCE, redactor).encode(batch));
    assert.doesNotMatch(text, /secret-that|sk-ant/);
    for (const rest of ["a=1,c=3", "d=4"]) assert.ok(text.includes(rest), rest);
  }
});

Deno.test("a client cannot make a span keep a large text, while no collector takes spans", () => {
  const { batch, tracer } = tracerOf();
  const long = "x".repeat(1 << 20);
  tracer.beginServed({
    ...{ method: long, params: { name: long, uri: `file:///${long}` }, meta: undefined },
    ...{ idText: `"${long}"`, revision: undefined, session: undefined, isRemote: false, since: 1 },
  }).end(2, undefined);
  const params = { name: long, uri: long };
  tracer.beginSent({ id: 1, method: long, sentAt: 1, options: { client: {} } }, params, {
    ...{ server: "s", revision: undefined, address: undefined },
  }).end(2, undefined);
  const sizes = batch.shapes.map(({ facts }, at) =>
    JSON.stringify([facts, batch.textsOf(at)]).length
  );
  assert.ok(sizes.length === 2 && sizes.every((size) => size < 20_000), `${sizes}`);
});

Deno.test("the shortened text of a span does not keep the whole text in memory", () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc");
  const { batch, tracer } = tracerOf();
  const count = 20;
  const usedBytes = () => {
    collectGarbage();
    return memoryUsage().heapUsed;
  };
  const before = usedBytes();
  for (let at = 0; at < count; at++) {
    // Each part is its own string, as in a message that was parsed.
    const texts = Array.from({ length: 5 }, (_, part) => `${part}${at}`.padEnd(1 << 20, "x"));
    const [method = "", name = "", uri = "", query = "", id = ""] = texts;
    const paramsOfAll: readonly JsonObject[] = [
      { name },
      { uri: `file:///${uri}` },
      { uri: `file:///${at}?${query}` },
    ];
    for (const params of paramsOfAll) {
      tracer.beginServed({
        ...{ method: "name" in params ? "tools/call" : method, params, meta: undefined },
        ...{
          idText: `"${id}"`,
          revision: undefined,
          session: undefined,
          isRemote: false,
          since: 1,
        },
      }).end(2, undefined);
    }
  }
  const growth = usedBytes() - before;
  assert.equal(batch.size, 3 * count);
  assert.ok(growth < count << 19, `${growth}`);
});

Deno.test("a span keeps no user and no password of a URI, in any form of it", () => {
  const { batch, tracer } = tracerOf();
  const uris = [
    "https://u:p4ss@h.example/a",
    "jdbc:postgresql://u:p4ss@h.example/a",
    "git+https://p4ss@h.example/a",
    "redis:u:p4ss@h.example/a",
    "x:https://u:p@4ss:p4ss@h.example/a",
  ];
  for (const uri of uris) {
    tracer.beginServed({
      ...{ method: "resources/read", params: { uri }, meta: undefined, idText: "1" },
      ...{ revision: undefined, session: undefined, isRemote: false, since: 1 },
    }).end(2, undefined);
  }
  const facts = batch.shapes.map((shape) => shape.facts);
  assert.equal(batch.size, uris.length);
  for (const { uri = "" } of facts) assert.ok(/h\.example\/a$/.test(uri), uri);
  assert.doesNotMatch(JSON.stringify(facts), /4ss/);
});

Deno.test("a secret is removed from a name before it is cut", () => {
  const { batch, tracer } = tracerOf();
  const redactor = new Redactor();
  const secret = "secret-that-is-long";
  redactor.register(secret);
  tracer.beginServed({
    ...{ method: "tools/call", params: { name: `${"x".repeat(190)}${secret}` }, meta: undefined },
    ...{
      idText: `"${secret}"`,
      revision: undefined,
      session: undefined,
      isRemote: false,
      since: 1,
    },
  }).end(2, undefined);
  for (const Encoder of [JsonSpanEncoder, ProtobufSpanEncoder]) {
    assert.ok(!textOf(new Encoder(RESOURCE, redactor).encode(batch)).includes("secret-"));
  }
});
