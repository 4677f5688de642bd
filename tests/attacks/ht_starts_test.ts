/**
 * The addresses that `pml serve` listens on, and the required headers of requests.
 *
 * @module
 */

import assert from "node:assert/strict";
import { OTHER_AUTHORITY, OTHER_CERTIFICATE, OTHER_KEY } from "../kit/certificate.ts";
import { paramsFor } from "../kit/json_rpc.ts";
import { servePml, type TestServer } from "../kit/pml_serve.ts";
import { rawHttp } from "../kit/raw_http.ts";
import { runPml } from "../kit/run.ts";
import { until } from "../kit/wait.ts";
import { makeAttackWorkspace } from "./stage.ts";

const NEWEST = "2026-07-28";
const NAME = "good.invalid";
const TLS = { "cert.pem": OTHER_CERTIFICATE, "key.pem": OTHER_KEY };

Deno.test("HT5: another address needs TLS or a proxy, its names, and always the token", async (t) => {
  await using ws = await makeAttackWorkspace({ files: TLS });
  const tls = ["--cert", "cert.pem", "--key", "key.pem"];
  const names = ["--allow-host", NAME];
  const refused: readonly (readonly [RegExp, readonly string[]])[] = [
    [/could read the token.*/, []],
    [/could read the token/, names],
    [/names are not known/, tls],
    [/names are not known/, ["--behind-proxy"]],
    [/go together/, ["--cert", "cert.pem", ...names]],
    [/cannot be read/, ["--cert", "none.pem", "--key", "key.pem", ...names]],
  ];
  for (const host of ["0.0.0.0", "::", "192.0.2.1"]) {
    for (const [says, args] of refused) {
      await t.step(`${host} ${args.join(" ")}`, async () => {
        const { code, stdout, stderr } = await runPml(ws, ["serve", "--host", host, ...args]);
        assert.match(stderr, says);
        assert.deepEqual([code !== 0, stdout], [true, ""]);
      });
    }
  }
  await t.step("with TLS", async () => {
    await using served = await servePml(ws, ["--host", "0.0.0.0", ...tls, ...names]);
    assert.match(served.url, /^https:/);
    await until(() => /warning: .*can reach it/.test(served.stderr));
    assert.equal(await overTls(served, { host: NAME, token: served.token }), 200);
    assert.equal(await overTls(served, { host: NAME }), 401);
    assert.equal(await overTls(served, { host: "127.0.0.1", token: served.token }), 403);
    const { port } = new URL(served.url);
    const plain = await rawHttp(Number(port), [`GET /health HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`]);
    assert.equal(plain.status, 0, "it speaks TLS alone");
  });
  await t.step("behind a proxy", async () => {
    await using served = await servePml(ws, ["--host", "0.0.0.0", "--behind-proxy", ...names]);
    const status = async (headers: Record<string, string>) =>
      (await posted(served, { ...usual(served), ...headers })).status;
    assert.equal(await status({ Host: NAME }), 200);
    assert.equal(await status({ Host: NAME, Authorization: "Bearer another" }), 401);
    assert.equal(await status({ Host: "127.0.0.1" }), 403);
    assert.equal(await status({ Host: `${NAME}.evil.example` }), 403);
  });
});

Deno.test("HT6: an unavailable port or address ends the start, and no other is used", async () => {
  await using ws = await makeAttackWorkspace();
  await using served = await servePml(ws);
  const { port } = new URL(served.url);
  const { mode } = await Deno.stat(`${ws.home}/serve_token`);
  assert.equal((mode ?? 0) & 0o777, 0o600, "the token of the first start (HT3)");
  const names = ["--behind-proxy", "--allow-host", NAME];
  const table = [
    ["--port", port],
    ["--port", "0", "--host", "192.0.2.1", ...names],
    ["--port", "0", "--host", "no-such-host.invalid", ...names],
    ["--port", "-1"],
    ["--port", "65536"],
    ["--port", "3003x"],
    ["--port", ""],
  ];
  for (const args of table) {
    const { code, stdout, stderr } = await runPml(ws, ["serve", ...args]);
    assert.notEqual(code, 0, args.join(" "));
    assert.equal(stdout, "", "it says no address");
    assert.match(stderr, /Cannot serve|not a number|--port/, args.join(" "));
    assert.doesNotMatch(stderr, /\bat .+:\d+:\d+/, "no stack");
  }
  const result = await runPml(ws, ["serve", "--port", port, "--json"]);
  assert.deepEqual(
    [result.code, JSON.parse(result.stdout).error.code],
    [2, "USAGE"],
    result.stderr,
  );
  // The first one is still there, and port 0 selects a free port for each.
  assert.equal((await posted(served, usual(served))).status, 200);
  await using another = await servePml(ws);
  assert.notEqual(new URL(another.url).port, port);
  const v6 = await hasIpV6() ? await servePml(ws, ["--host", "::1"]) : undefined;
  if (v6 === undefined) return;
  assert.match(v6.url, /^http:\/\/\[::1\]:\d+\/mcp$/);
  assert.equal((await v6.fetch({}, "/health")).status, 200);
  await v6[Symbol.asyncDispose]();
});

async function hasIpV6(): Promise<boolean> {
  try {
    using listener = Deno.listen({ hostname: "::1", port: 0 });
    return await Promise.resolve(listener.addr.port > 0);
  } catch {
    return false;
  }
}

type Lines = Readonly<Record<string, string | readonly string[] | undefined>>;

interface Asked {
  readonly method: string;
  readonly params: Record<string, unknown>;
}

const LIST = { method: "tools/list", params: {} };
const READ = {
  method: "tools/call",
  params: {
    name: "call",
    arguments: { tool: "filesystem:read_file", arguments: { path: "good.txt" } },
  },
};
const META = "io.modelcontextprotocol/protocolVersion";
const OF_CALL = { "Mcp-Method": "tools/call", "Mcp-Name": "call" };

/** Headers and body of a request, and the status and code of its response. */
const HEADERS: readonly (readonly [string, Lines, Asked, number, number | undefined])[] = [
  ["all is right", {}, LIST, 200, undefined],
  ["no method", { "Mcp-Method": undefined }, LIST, 400, -32020],
  ["an empty method", { "Mcp-Method": "" }, LIST, 400, -32020],
  ["another method", { "Mcp-Method": "tools/call" }, LIST, 400, -32020],
  ["a method in another case", { "Mcp-Method": "Tools/List" }, LIST, 400, -32020],
  ["a method twice", { "Mcp-Method": ["tools/list", "tools/list"] }, LIST, 400, -32020],
  ["a method that is encoded", { "Mcp-Method": "=?base64?dG9vbHMvbGlzdA==?=" }, LIST, 400, -32020],
  ["a method beyond ASCII", { "Mcp-Method": "tools/l\u00efst" }, LIST, 400, -32020],
  ["a name", OF_CALL, READ, 200, undefined],
  ["no name", { ...OF_CALL, "Mcp-Name": undefined }, READ, 400, -32020],
  ["another name", { ...OF_CALL, "Mcp-Name": "search" }, READ, 400, -32020],
  ["a name twice", { ...OF_CALL, "Mcp-Name": ["call", "call"] }, READ, 400, -32020],
  [
    "a name that is encoded",
    { ...OF_CALL, "Mcp-Name": "=?base64?Y2FsbA==?=" },
    READ,
    200,
    undefined,
  ],
  ["another one", { ...OF_CALL, "Mcp-Name": "=?base64?c2VhcmNo?=" }, READ, 400, -32020],
  ["one that is no base64", { ...OF_CALL, "Mcp-Name": "=?base64?!!?=" }, READ, 400, -32020],
  ["no version", { "Mcp-Protocol-Version": undefined }, LIST, 400, -32020],
  ["an older version", { "Mcp-Protocol-Version": "2025-11-25" }, LIST, 400, -32020],
  ["two versions", { "Mcp-Protocol-Version": [NEWEST, "2025-11-25"] }, LIST, 400, -32020],
  [
    "a version that nobody knows",
    { "Mcp-Protocol-Version": "2099-01-01" },
    {
      ...LIST,
      params: { _meta: { [META]: "2099-01-01" } },
    },
    400,
    -32022,
  ],
];

Deno.test("HT9: headers that are missing, doubled or contradict the body are refused", async (t) => {
  await using ws = await makeAttackWorkspace();
  await using served = await servePml(ws);
  for (const [what, lines, { params, ...body }, status, code] of HEADERS) {
    await t.step(what, async () => {
      const message = { ...body, params: paramsFor(NEWEST, params, {}) };
      const { text, ...is } = await posted(served, { ...usual(served), ...lines }, message);
      assert.equal(is.status, status, text);
      assert.equal(Number(/"code":(-?\d+)/.exec(text)?.[1] ?? NaN), code ?? NaN, text);
      if (code !== undefined) assert.doesNotMatch(text, /"result"/);
    });
  }
});

function usual({ url, token }: TestServer): Lines {
  return {
    "Host": new URL(url).host,
    "Authorization": `Bearer ${token}`,
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "Mcp-Protocol-Version": NEWEST,
    "Mcp-Method": "tools/list",
  };
}

function bytesOf(lines: Lines, message: object): Uint8Array {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, ...message });
  const head = Object.entries(lines).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((each) => `${name}: ${each}`)
  );
  const all = [
    "POST /mcp HTTP/1.1",
    ...head,
    `Content-Length: ${body.length}`,
    "Connection: close",
  ];
  const text = `${all.join("\r\n")}\r\n\r\n${body}`;
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}

const ASKED = { ...LIST, params: paramsFor(NEWEST, {}, {}) };

async function posted(served: TestServer, lines: Lines, message: object = ASKED) {
  return await rawHttp(Number(new URL(served.url).port), [bytesOf(lines, message)]);
}

/** Sends a request over TLS, and returns the status of its response. */
async function overTls(
  served: TestServer,
  { host, token }: { readonly host: string; readonly token?: string },
): Promise<number> {
  const port = Number(new URL(served.url).port);
  using connection = await Deno.connectTls({
    hostname: "localhost",
    port,
    caCerts: [OTHER_AUTHORITY],
  });
  const authorization = token && `Bearer ${token}`;
  const lines = { ...usual(served), Host: host, Authorization: authorization };
  await connection.write(bytesOf(lines, ASKED));
  const buffer = new Uint8Array(64);
  await connection.read(buffer);
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(new TextDecoder().decode(buffer))?.[1] ?? 0);
}
