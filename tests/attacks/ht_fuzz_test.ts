/**
 * A limited fuzz test of the HTTP endpoint: odd or broken request lines, headers and bodies, in
 * parts, on connections that end anywhere.
 *
 * @module
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { DoorClient } from "../kit/door_client.ts";
import { paramsFor } from "../kit/json_rpc.ts";
import { rssOf } from "../kit/procwatch.ts";
import { servePml, type TestServer } from "../kit/pml_serve.ts";
import { within } from "../kit/wait.ts";
import { makeAttackWorkspace } from "./stage.ts";

const SEED = 20_261_123;
const [BATCHES, AT_ONCE] = [60, 10];
/** How long the test waits for a response; a request may never end. */
const PATIENCE_MS = 400;
const AT_ONCE_MS = 3_000;
const GROWTH_MAX = 250_000_000;
/** The statuses of `docs/serve.md`, and those of accepted requests. */
const STATUSES = [200, 202, 400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 431, 503];
const LEAK = /\bat .+:\d+:\d+|file:\/\/|node:|\/mod\.ts|src\/|\/home\/|\/tmp\/|node_modules/;
const BUG = /TypeError|ReferenceError|RangeError|SyntaxError|\bat .+:\d+:\d+|panic|[Uu]ncaught/;
const UTF_8 = new TextEncoder();

/** The data of a connection. */
interface Odd {
  readonly line: string;
  readonly headers: readonly string[];
  /** Which of the usual headers are omitted, doubled, or written differently. */
  readonly changes: readonly ("as is" | "out" | "twice" | "odd case" | "folded" | "blank")[];
  readonly length: "right" | "none" | "long" | "short" | "negative" | "huge" | "two" | "text";
  readonly coding: "none" | "chunked" | "broken chunks" | "both" | "gzip, chunked" | "identity";
  readonly isOurs: boolean;
  readonly body: Uint8Array;
  readonly ends: string;
  /** The positions of the splits, as fractions of the length. */
  readonly cuts: readonly number[];
  /** The fraction after which the connection ends; 1 for the end of the data. */
  readonly until: number;
}

const CHANGE = fc.oneof(
  { weight: 12, arbitrary: fc.constant("as is" as const) },
  { weight: 1, arbitrary: fc.constantFrom("out", "twice", "odd case", "folded", "blank") },
);
const LATIN_1 = fc.string({ unit: fc.nat(255).map((code) => String.fromCharCode(code)) });
const DEEP = fc.tuple(fc.constantFrom("[", '{"a":'), fc.integer({ min: 1, max: 200_000 })).map((
  [open, times],
) => open.repeat(times));
const NUMBERS = fc.constantFrom("1e999999", "-0", "9".repeat(400), "0.1e-999", "1e", "0x1", "01");
const METHODS = fc.constantFrom(
  ...["tools/list", "tools/call", "initialize", "ping", "subscriptions/listen", "server/discover"],
  ...[
    "notifications/cancelled",
    "resources/read",
    "logging/setLevel",
    "tasks/get",
    "__proto__",
    "",
  ],
);
const MESSAGE = fc.tuple(
  METHODS,
  fc.oneof(fc.jsonValue(), fc.nat(), fc.constant(undefined)),
  fc.oneof(fc.jsonValue(), fc.constant(paramsFor("2026-07-28", {}, {}))),
).map(([method, id, params]) => JSON.stringify({ jsonrpc: "2.0", id, method, params }));
const BODY: fc.Arbitrary<Uint8Array> = fc.oneof(
  { weight: 6, arbitrary: MESSAGE.map((text) => UTF_8.encode(text)) },
  {
    weight: 2,
    arbitrary: fc.array(MESSAGE, { maxLength: 5 }).map((all) => UTF_8.encode(`[${all}]`)),
  },
  { weight: 2, arbitrary: fc.json().map((text) => UTF_8.encode(text)) },
  { weight: 1, arbitrary: DEEP.map((text) => UTF_8.encode(text)) },
  {
    weight: 1,
    arbitrary: NUMBERS.map((text) =>
      UTF_8.encode(`{"jsonrpc":"2.0","id":${text},"method":"ping"}`)
    ),
  },
  {
    weight: 1,
    arbitrary: MESSAGE.map((text) => UTF_8.encode(`{"id":7,"id":8,${text.slice(1)}`)),
  },
  { weight: 2, arbitrary: fc.uint8Array({ maxLength: 300 }) },
  { weight: 1, arbitrary: fc.constant(UTF_8.encode("x".repeat(100_000))) },
);
const TARGET = fc.oneof(
  { weight: 8, arbitrary: fc.constant("/mcp") },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "/health",
      "/ready",
      "/",
      "*",
      "/mcp/",
      "//mcp",
      "/mcp%00",
      "/../mcp",
    ),
  },
  { weight: 1, arbitrary: fc.webUrl() },
  { weight: 1, arbitrary: LATIN_1 },
  { weight: 1, arbitrary: fc.constant(`/${"x".repeat(20_000)}`) },
);
const LINE = fc.tuple(
  fc.oneof(
    { weight: 8, arbitrary: fc.constant("POST") },
    { weight: 4, arbitrary: fc.constantFrom("GET", "DELETE", "OPTIONS", "HEAD", "TRACE", "PUT") },
    { weight: 1, arbitrary: fc.constantFrom("CONNECT", "post", "PRI", "") },
    { weight: 1, arbitrary: LATIN_1 },
  ),
  TARGET,
  fc.oneof(
    { weight: 12, arbitrary: fc.constant("HTTP/1.1") },
    { weight: 1, arbitrary: fc.constantFrom("HTTP/1.0", "HTTP/2.0", "HTTP/0.9", "http/1.1", "") },
  ),
).map((parts) => parts.join(" "));
const HEADER = fc.oneof(
  fc.tuple(LATIN_1, LATIN_1).map((pair) => pair.join(": ")),
  fc.constantFrom(
    ...["Expect: 100-continue", "Upgrade: websocket", "Connection: upgrade", "Trailer: x"],
    ...["Mcp-Session-Id: x", "Last-Event-ID: 1", "Origin: null", "Mcp-Param-X: =?base64?!?="],
    ...["Content-Type: text/plain", "Content-Encoding: br", "Accept: text/html", "Host:", ": x"],
    `X-Long: ${"y".repeat(17_000)}`,
  ),
);
const ODD: fc.Arbitrary<Odd> = fc.record({
  line: LINE,
  headers: fc.array(HEADER, { maxLength: 3 }),
  changes: fc.array(CHANGE, { minLength: 6, maxLength: 6 }),
  length: fc.oneof(
    { weight: 8, arbitrary: fc.constant("right" as const) },
    fc.constantFrom("none", "long", "short", "negative", "huge", "two", "text"),
  ),
  coding: fc.oneof(
    { weight: 6, arbitrary: fc.constant("none" as const) },
    fc.constantFrom("chunked", "broken chunks", "both", "gzip, chunked", "identity"),
  ),
  isOurs: fc.integer({ min: 0, max: 4 }).map((at) => at > 0),
  body: BODY,
  ends: fc.oneof(
    { weight: 10, arbitrary: fc.constant("\r\n") },
    fc.constantFrom("\n", "\r", "\r\r\n"),
  ),
  cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 }),
  until: fc.oneof(
    { weight: 4, arbitrary: fc.constant(1) },
    fc.double({ min: 0, max: 1, noNaN: true }),
  ),
}) as fc.Arbitrary<Odd>;

Deno.test("with any input, PML keeps running, answers others at once, and uses documented HTTP statuses", async () => {
  await using ws = await makeAttackWorkspace({ limits: { input_bytes: 65_536 } });
  // The test measures its memory.
  await using served = await servePml(ws, [], { ownProcess: true });
  await using good = await DoorClient.open(served);
  const before = await rssOf(served.pid);
  const seen = new Set<number>();
  const batch = fc.array(ODD, { minLength: AT_ONCE, maxLength: AT_ONCE });
  await fc.assert(
    fc.asyncProperty(batch, async (all) => {
      const attacks = Promise.all(all.map((odd) => sent(served, odd)));
      const since = performance.now();
      await within(good.request("ping"), { what: () => "another client was not answered" });
      assert.ok(performance.now() - since < AT_ONCE_MS, "another client had to wait");
      for (const text of await attacks) for (const status of statusesIn(text)) seen.add(status);
    }),
    { seed: SEED, numRuns: BATCHES, endOnFailure: true },
  );
  // The requests reached both the code that refuses and the code that accepts.
  for (const status of [200, 400, 401, 404, 405, 413, 415, 431]) {
    assert.ok(seen.has(status), `${status} is none of ${[...seen]}`);
  }
  await within(good.request("tools/list"), { what: () => "no list" });
  const grown = await rssOf(served.pid) - before;
  assert.ok(grown < GROWTH_MAX, `PML grew by ${grown}`);
  assert.doesNotMatch(served.stderr, BUG);
  assert.ok(!served.stderr.includes(served.token));
});

/** Sends the data, and returns the full response. */
async function sent(served: TestServer, odd: Odd): Promise<string> {
  const { port } = new URL(served.url);
  const bytes = bytesOf(served, odd);
  const whole = bytes.subarray(0, Math.ceil(bytes.length * odd.until));
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: Number(port) });
  const timer = setTimeout(() => connection.close(), PATIENCE_MS);
  const writing = (async () => {
    const cuts = [0, ...odd.cuts.map((cut) => Math.floor(cut * whole.length)), whole.length]
      .sort((one, other) => one - other);
    for (const [at, from] of cuts.entries()) {
      const part = whole.subarray(from, cuts[at + 1] ?? whole.length);
      for (let done = 0; done < part.length;) done += await connection.write(part.subarray(done));
    }
    if (odd.until < 1) connection.close();
  })().catch(() => {}); // PML may have closed the connection
  let text = "";
  const buffer = new Uint8Array(65_536);
  for (;;) {
    const read = await connection.read(buffer).catch(() => null);
    if (read === null) break;
    text += new TextDecoder("latin1").decode(buffer.subarray(0, read));
  }
  await writing;
  clearTimeout(timer);
  try {
    connection.close();
  } catch {
    // The connection is closed.
  }
  return text;
}

function bytesOf({ url, token }: TestServer, odd: Odd): Uint8Array {
  const { line, headers, changes, length, coding, isOurs, body, ends } = odd;
  const usual = [
    `Host: ${new URL(url).host}`,
    `Authorization: Bearer ${isOurs ? token : "another"}`,
    "Content-Type: application/json",
    "Accept: application/json, text/event-stream",
    "Mcp-Protocol-Version: 2026-07-28",
    "Mcp-Method: tools/list",
  ].flatMap((header, at) => changed(header, changes[at] ?? "as is"));
  const isChunked = !["none", "identity"].includes(coding);
  const lengths = isChunked && coding !== "both" ? [] : lengthsOf(length, body.length);
  const codings = coding === "none" ? [] : [
    `Transfer-Encoding: ${coding.includes("gzip") || coding === "identity" ? coding : "chunked"}`,
  ];
  const head = [line, ...usual, ...lengths, ...codings, ...headers, "", ""].join(ends);
  const size = coding === "broken chunks" ? "zz" : body.length.toString(16);
  const parts = isChunked
    ? [UTF_8.encode(`${size}\r\n`), body, UTF_8.encode("\r\n0\r\n\r\n")]
    : [body];
  const latin = Uint8Array.from(head, (letter) => letter.charCodeAt(0));
  return new Uint8Array([latin, ...parts].flatMap((part) => [...part]));
}

function changed(header: string, change: Odd["changes"][number]): readonly string[] {
  switch (change) {
    case "as is":
      return [header];
    case "out":
      return [];
    case "twice":
      return [header, header];
    case "odd case":
      return [header.replace(/^[^:]+/, (name) => name.toUpperCase())];
    case "folded":
      return [header.replace(": ", ":\r\n ")];
    case "blank":
      return [header.replace(":", " :")];
  }
}

function lengthsOf(length: Odd["length"], size: number): readonly string[] {
  const values = {
    right: [`${size}`],
    none: [],
    long: [`${size + 10}`],
    short: [`${Math.floor(size / 2)}`],
    negative: ["-1"],
    huge: ["9".repeat(30)],
    two: [`${size}`, `${size + 1}`],
    text: ["1,2"],
  }[length];
  return values.map((value) => `Content-Length: ${value}`);
}

/** Returns the statuses of consecutive responses. Fails if they are not HTTP. */
function statusesIn(text: string): readonly number[] {
  const statuses: number[] = [];
  for (let rest = text; rest !== "";) {
    const [head = "", status = ""] = /^HTTP\/1\.1 (\d{3}) [^\r\n]*\r\n(?:[\w-]+:[^\r\n]*\r\n)*\r\n/
      .exec(rest) ?? [];
    assert.notEqual(head, "", `no HTTP: ${JSON.stringify(rest.slice(0, 300))}`);
    assert.ok(STATUSES.includes(Number(status)) || status === "100", rest.slice(0, 300));
    statuses.push(Number(status));
    const { body, more } = bodyIn(head, rest.slice(head.length));
    assert.doesNotMatch(body, LEAK);
    rest = more;
  }
  return statuses;
}

/** Splits the text after a header into its body and the next response. A stream has no end. */
function bodyIn(head: string, text: string): { readonly body: string; readonly more: string } {
  const length = /^content-length: *(\d+)/im.exec(head)?.[1];
  if (length !== undefined) {
    return { body: text.slice(0, Number(length)), more: text.slice(Number(length)) };
  }
  if (!/^transfer-encoding: *chunked/im.test(head)) return { body: text, more: "" };
  let body = "";
  for (let at = 0;;) {
    const [line = "", size = ""] = /^([0-9a-f]+)\r\n/i.exec(text.slice(at, at + 20)) ?? [];
    if (line === "") return { body, more: "" };
    const from = at + line.length;
    const chunk = parseInt(size, 16);
    if (chunk === 0) return { body, more: text.slice(from + 2) };
    body += text.slice(from, from + chunk);
    at = from + chunk + 2;
  }
}
