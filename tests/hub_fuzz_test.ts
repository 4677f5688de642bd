/**
 * Input with which publishers could make a spawned hub fail, grow or hang: bombs, changed offers,
 * malformed requests, and many at once.
 *
 * @module
 */

import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { parseFqdn } from "../src/registry/fqdn.ts";
import { type OmittedTool, parseManifest } from "../src/registry/manifest.ts";
import {
  moduleOffer,
  type Offer,
  packageOffer,
  put,
  sendRequest,
  spawnHub,
  type TestHub,
} from "./kit/hub.ts";

const JSON_TYPE = { "content-type": "application/json" };
const MB = 1_000_000;

function nested(depth: number, [open, close]: readonly [string, string]): string {
  return open.repeat(depth) + "1" + close.repeat(depth);
}

/** Returns the JSON of an offer with this text as its tools. */
function withTools(tools: string): string {
  const { manifest, code } = moduleOffer("acme", "1.0.0");
  return JSON.stringify({ manifest: { ...manifest, tools: 0 }, code })
    .replace('"tools":0', `"tools":${tools}`);
}

async function raw(
  hub: TestHub,
  { key, body, headers }: {
    readonly key: string;
    readonly body: BodyInit;
    readonly headers: object;
  },
): Promise<number> {
  const response = await fetch(`${hub.url}/acme@1.0.0`, {
    method: "PUT",
    headers: { authorization: `Bearer ${key}`, ...JSON_TYPE, ...headers },
    body,
  });
  const { error, message } = await response.json();
  assert.ok(
    typeof error === "string" && message.length < 2_000,
    JSON.stringify({ error, message }),
  );
  return response.status;
}

Deno.test("bombs of publishers are refused, and other requests are answered meanwhile", async () => {
  await using hub = await spawnHub();
  const { key } = await hub.key("acme");
  const list = (count: number, one: (at: number) => string) =>
    Array.from({ length: count }, (_, at) => one(at)).join(",");
  const zipped = { "content-encoding": "gzip" };
  const bombs: readonly (readonly [BodyInit, object?])[] = [
    ...[1_000, 100_000, 900_000].map((depth) => [withTools(nested(depth, ["[", "]"]))] as const),
    [withTools(nested(300_000, ['{"a":', "}"]))],
    [nested(900_000, ["[", "]"])],
    [new Uint8Array(gzipSync(withTools("[]"))), zipped],
    [new Uint8Array(gzipSync(new Uint8Array(100 * MB))), zipped],
    [withTools(`{${list(150_000, (at) => `"k${at}":1`)}}`)],
    [withTools(`[${list(100_000, (at) => `"t${at}"`)}]`)],
    [withTools(
      `[${list(900, (at) => `{"name":"t${at}","description":"${"\\u0001".repeat(100)}"}`)}]`,
    )],
    [withTools("[1e400, -0, 1e-400]")],
    [withTools(`[{"name":"greet","description":"${"x".repeat(1_100_000)}"}]`)],
    ["\ud800".repeat(10)],
    [""],
    ["null"],
  ];
  for (const [body, headers = {}] of bombs) {
    const sending = raw(hub, { key, body, headers });
    const begun = Date.now();
    assert.equal((await fetch(new URL("/health", hub.url))).status, 200);
    const waited = Date.now() - begun;
    const status = await sending;
    assert.ok(status === 400 || status === 413, `${status} ${String(body).slice(0, 80)}`);
    assert.ok(waited < 8_000, `${waited} ms ${String(body).slice(0, 80)}`);
  }
  const mcp = { accept: "application/json, text/event-stream", ...JSON_TYPE };
  for (const depth of [1_000, 200_000]) {
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${
      nested(depth, ["[", "]"])
    }}`;
    const { status } = await fetch(hub.url, { method: "POST", headers: mcp, body });
    assert.ok(status < 500, `${status}`);
  }
  assert.deepEqual((await (await fetch(hub.url)).json()).items, []);
  const { stderr } = await hub.serving.end();
  assert.equal(stderr, "");
});

const NAME = fc.constantFrom(
  ...["acme", "acme:do", "acme.x", "com.acme", "github", "filesystem", "con", "a__b", "A", "x/y"],
  ...["\u0430cme", "acme\u200b", "..", "a".repeat(64), "a".repeat(65), "fs:read:x", "pml", ""],
);
const BASES: readonly Offer[] = [
  moduleOffer("acme", "1.0.0"),
  moduleOffer("acme:do", "1.0.0"),
  packageOffer("acme", "1.0.0"),
  {
    manifest: { ...packageOffer("acme", "1.0.0").manifest, type: "http", url: "https://x.example" },
  },
];
const VALUE = fc.oneof(
  fc.json().map((text) => JSON.parse(text)),
  fc.constantFrom<unknown>(
    "deno",
    "stdio",
    "cloud",
    "capability",
    "sh",
    "-c",
    "${PATH}",
    "\u001b[2J",
  ),
  fc.constantFrom<unknown>("file:///etc/passwd", "http://127.0.0.1", "https://a:b@c", 1e21, null),
  fc.constantFrom<unknown>([], {}, [[]], { name: "x:y" }, { command: "npx", args: ["--eval"] }),
);
const CHANGES = fc.array(fc.tuple(fc.nat(30), fc.nat(2), VALUE), { maxLength: 4 });

/** Changes values somewhere in an offer: replaces them, removes them, or adds a key. */
function changed(offer: Offer, changes: readonly (readonly [number, number, unknown])[]): Offer {
  const made = structuredClone(offer);
  for (const [at, how, value] of changes) {
    const places: (readonly [Record<string, unknown>, string])[] = [];
    const walk = (one: unknown): void => {
      if (typeof one !== "object" || one === null) return;
      for (const key of Object.keys(one)) {
        const holder = one as Record<string, unknown>;
        places.push([holder, key]);
        walk(holder[key]);
      }
    };
    walk(made);
    const [holder, key] = places[at % Math.max(1, places.length)] ?? [{}, ""];
    if (how === 0) holder[key] = structuredClone(value);
    else if (how === 1) delete holder[key];
    else holder[`${key}x`] = structuredClone(value);
  }
  return made;
}

Deno.test("no publication makes a hub fail, and clients can read each accepted one", async () => {
  await using hub = await spawnHub("--rate", "999999");
  const { key } = await hub.key("acme");
  const taken = { yes: 0, no: 0 };
  const offers = fc.tuple(fc.constantFrom(...BASES), CHANGES, fc.option(NAME, { freq: 3 }));
  await fc.assert(
    fc.asyncProperty(offers, fc.nat(9_999), async ([base, changes, name], number) => {
      const version = `1.0.${number}`;
      const fqdn = name ?? String(base.manifest.fqdn);
      const body = changed({ ...base, manifest: { ...base.manifest, fqdn, version } }, changes);
      const at = `${hub.url}/${encodeURIComponent(fqdn)}@${version}`;
      const { status } = await sendRequest(at, { method: "PUT", key, body });
      assert.ok([200, 201, 400, 403, 404, 405, 409, 413].includes(status), `${status}`);
      if (status !== 201) return void taken.no++;
      taken.yes++;
      const shown = await fetch(at, { headers: { accept: "application/json" } });
      const manifest = await shown.json();
      const leftOut: OmittedTool[] = [];
      parseManifest(manifest, { url: hub.url, asked: parseFqdn(fqdn), leftOut });
      assert.deepEqual(leftOut, []);
      const page = `${new URL(hub.url).origin}/entry/${encodeURIComponent(fqdn)}@${version}`;
      const { status: seen } = await fetch(page, { headers: { accept: "text/html" } })
        .then(async (answer) => ({ status: answer.status, text: await answer.text() }));
      assert.equal(seen, 200);
    }),
    { numRuns: 400 },
  );
  assert.ok(taken.yes > 20 && taken.no > 20, JSON.stringify(taken));
  const { stderr } = await hub.serving.end();
  assert.equal(stderr, "");
});

Deno.test("a page shows an entry whose values have wrong types", async () => {
  await using hub = await spawnHub("--rate", "999999");
  const { key } = await hub.key("acme");
  const odd = ["text", { toString: 1 }, [[{ toString: 1 }]], [{ toString: 1 }], null, "__proto__"];
  let taken = 0;
  for (const [at, one] of odd.entries()) {
    const properties = { a: { type: one, description: one }, b: { type: ["string", one] } };
    const tool = { name: "go", inputSchema: { type: "object", properties } };
    const offers = [
      { tools: [tool] },
      { tools: [{ ...tool, description: one, annotations: one, outputSchema: one }] },
      { permissions: one, warnings: [one, { one }] },
    ];
    for (const [which, offer] of offers.entries()) {
      const name = `odd@1.${at}.${which}`;
      const offered = packageOffer("odd", name.slice(4), offer);
      if ((await put(hub.url, key, offered)).status !== 201) continue;
      taken++;
      for (const path of [`/entry/${name}`, "/entry/odd/diff", "/", "/search?q=odd"]) {
        const answer = await fetch(new URL(path, hub.url), { headers: { accept: "text/html" } });
        await answer.text();
        assert.ok(answer.status < 500, `${path} ${JSON.stringify(offer)}`);
      }
    }
  }
  assert.ok(taken > odd.length, `${taken}`);
  assert.equal((await hub.serving.end()).stderr, "");
});

Deno.test("of many publications of one version at once, one wins, and all readers get it", async () => {
  await using hub = await spawnHub("--rate", "999999");
  await using other = await hub.again();
  const urls = [hub.url, `http://127.0.0.1:${other.port}/mcp`];
  const { key } = await hub.key("acme");
  for (const version of ["1.0.0", "1.1.0", "1.2.0"]) {
    const answers = await Promise.all(Array.from({ length: 24 }, async (_, at) => {
      const offer = moduleOffer("acme", version, `${at}`);
      return { at, ...await put(urls[at % 2] ?? "", key, offer) };
    }));
    const won = answers.filter(({ status }) => status === 201);
    assert.equal(won.length, 1, answers.map(({ status }) => status).join());
    const lost = answers.filter(({ status }) => status === 409);
    const busy = answers.filter(({ status }) => status === 503);
    assert.equal(lost.length + busy.length, 23);
    for (const url of urls) {
      const code = await (await fetch(`${url}/acme@${version}`)).text();
      assert.equal(code, moduleOffer("acme", version, `${won[0]?.at}`).code);
    }
  }
});
