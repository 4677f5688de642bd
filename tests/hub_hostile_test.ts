/**
 * Requests of hostile readers to a spawned hub.
 *
 * @module
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { HUB } from "./kit/pml_command.ts";
import { rssOf } from "./kit/procwatch.ts";
import { FILES, rawRequest, serveHub, type Serving } from "./kit/registry_contract.ts";
import { runPml } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const MB = 1_000_000;

async function served(options?: { readonly ownProcess: boolean }): Promise<Serving> {
  const files = Object.entries(FILES).map(([name, text]) => [`served/${name}`, text]);
  const ws = await makeWorkspace({ files: Object.fromEntries(files) });
  await runPml(ws, ["import", "served"], { command: HUB });
  const serving = await serveHub(ws, [], options);
  return {
    port: serving.port,
    said: serving.said,
    end: serving.end,
    get pid() {
      return serving.pid;
    },
    [Symbol.asyncDispose]: async () => {
      await serving[Symbol.asyncDispose]();
      await ws[Symbol.asyncDispose]();
    },
  };
}

function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1]);
}

async function assertWell({ port }: Serving): Promise<void> {
  assert.match(
    await rawRequest(port, "GET /mcp/greeter", "accept: application/json\r\n"),
    /"greeter"/,
  );
}

const PIECES = [
  ...["/mcp", "/v0.1/servers", "/health", "/ready", "/mcp/routing", "/", "//", "greeter", "@1.2.0"],
  ...["@", "..", "%2e%2e", "%2f", "%5c", "%00", "%ff", "%", "\\", ":", ";", "__proto__", "con"],
  ...[
    "?",
    "&",
    "=",
    "q=",
    "limit=",
    "cursor=",
    "include=tools",
    "version=",
    "search=",
    "-1",
    "1e9",
  ],
  ...["999999999", "'", "%22", "*", "NEAR(", "%F0%9F%98%80", "x".repeat(600), "updated_since="],
];
const TARGET = fc.array(fc.constantFrom(...PIECES), { maxLength: 8 }).map((all) =>
  `/${all.join("")}`
);
const METHOD = fc.constantFrom("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE");
const HEADER = fc.constantFrom(
  "",
  "accept: text/event-stream\r\n",
  `accept: ${"application/json;q=x,".repeat(300)}\r\n`,
  `if-none-match: ${'"a",'.repeat(2_000)}\r\n`,
  "if-none-match: *\r\n",
  "content-length: 3\r\n",
  "content-encoding: gzip\r\n",
  "host: 127.0.0.1\r\nhost: localhost\r\n",
  "authorization: Bearer \u0000\r\n",
  "x-pml-key-a: b\r\n",
);

Deno.test("no request of a reader makes a hub fail or grow", async () => {
  await using hub = await served({ ownProcess: true });
  await assertWell(hub);
  const before = await rssOf(hub.pid);
  const request = fc.record({ method: METHOD, target: TARGET, header: HEADER });
  await fc.assert(
    fc.asyncProperty(request, async ({ method, target, header }) => {
      const answer = await rawRequest(hub.port, `${method} ${target}`, header);
      const status = statusOf(answer);
      assert.ok(status >= 200 && status < 500, `${method} ${target}: ${answer.slice(0, 200)}`);
      // Only reading methods succeed.
      if (status < 400) assert.match(method, /^(GET|HEAD)$/);
    }),
    { seed: 20_261_124, numRuns: 1_500 },
  );
  await assertWell(hub);
  assert.ok(await rssOf(hub.pid) < before + 100 * MB, `${before}, then ${await rssOf(hub.pid)}`);
  const { stderr } = await hub.end();
  assert.equal(stderr, "");
});

/** An item of the catalog, with its tools. */
interface Item {
  readonly fqdn: string;
  readonly description?: string;
  readonly tools?: readonly (string | { readonly name: string })[];
}

function textOf({ fqdn, description = "", tools = [] }: Item): string {
  const names = tools.map((tool) => typeof tool === "string" ? tool : tool.name);
  return [fqdn, description, ...names].join("\n").toLowerCase();
}

Deno.test("a search finds entries with all words of the query, with any characters", async () => {
  await using hub = await served();
  const names = async (query: string) => {
    const response = await fetch(`http://127.0.0.1:${hub.port}/mcp?${query}`);
    assert.equal(response.status, 200);
    const { items } = await response.json();
    return items.map(({ fqdn }: { readonly fqdn: string }) => fqdn);
  };
  const all = await fetch(`http://127.0.0.1:${hub.port}/mcp?include=tools`);
  const { items }: { readonly items: readonly Item[] } = await all.json();
  const word = fc.oneof(
    fc.constantFrom(
      '"',
      'gre"et',
      '"greet"',
      "greet",
      "*",
      "gree*",
      "NOT",
      "NEAR(a b)",
      "-",
      "^g",
      ":",
      "%",
      "_",
      "'",
    ),
    // A search with NUL is refused.
    fc.string({ unit: "binary", maxLength: 12 }).filter((text) => !text.includes("\0")),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(word, { minLength: 1, maxLength: 3 }), async (words) => {
      const query = words.join(" ");
      const wanted = query.toLowerCase().split(/\s+/).filter((one) => one !== "");
      const expected = items.filter((one) => wanted.every((each) => textOf(one).includes(each)));
      const found = await names(new URLSearchParams({ q: query }).toString());
      assert.deepEqual(found, expected.map(({ fqdn }) => fqdn), query);
    }),
    { seed: 20_261_124, numRuns: 500 },
  );
});

Deno.test("a rejected body is not read, and its connection is closed", async () => {
  await using hub = await served({ ownProcess: true });
  await assertWell(hub);
  const before = await rssOf(hub.pid);
  const chunk = new Uint8Array(65_536).fill(120);
  const wanted = [["POST /mcp/greeter", 405], ["PUT /mcp/x@1.0.0", 401], [
    "POST /mcp",
    413,
  ]] as const;
  const hows = ["Content-Length: 1000000000", "Transfer-Encoding: chunked"];
  for (
    const [what, status, how] of wanted.flatMap((one) => hows.map((how) => [...one, how] as const))
  ) {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: hub.port });
    const head = `${what} HTTP/1.1\r\nHost: 127.0.0.1\r\n${how}\r\n\r\n`;
    await connection.write(new TextEncoder().encode(head));
    let isOpen = true;
    const sent = async () => {
      const prefix = how.startsWith("T") ? new TextEncoder().encode("10000\r\n") : chunk;
      for (let at = 0; at < 1_000 && isOpen; at++) {
        await connection.write(prefix);
        await connection.write(chunk);
        if (how.startsWith("T")) await connection.write(new TextEncoder().encode("\r\n"));
      }
    };
    const sending = sent().catch(() => isOpen = false);
    const buffer = new Uint8Array(10_000);
    const read = await connection.read(buffer);
    const answer = new TextDecoder().decode(buffer.subarray(0, read ?? 0));
    assert.equal(statusOf(answer), status, answer);
    assert.match(answer, /connection: close/i);
    const rest = async () => {
      while (await connection.read(buffer).catch(() => null) !== null);
    };
    await rest();
    isOpen = false;
    connection.close();
    await sending;
  }
  await assertWell(hub);
  assert.ok(await rssOf(hub.pid) < before + 60 * MB, `${before}, then ${await rssOf(hub.pid)}`);
});

Deno.test("connections that send half a request delay no other reader, and are closed", async () => {
  await using hub = await served();
  const halves = ["", "GET /mcp", "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nx: "];
  const slow = await Promise.all(Array.from({ length: 60 }, async (_, at) => {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: hub.port });
    await connection.write(new TextEncoder().encode(halves[at % halves.length] ?? ""));
    return connection;
  }));
  for (let at = 0; at < 20; at++) {
    const since = performance.now();
    await assertWell(hub);
    assert.ok(performance.now() - since < 2_000, "it waited for the others");
  }
  let open = slow.length - slow.length / halves.length;
  for (const [at, connection] of slow.entries()) {
    if (at % halves.length === 0) continue;
    const ended = async () => {
      while (await connection.read(new Uint8Array(1_000)).catch(() => null) !== null);
      open--;
    };
    void ended();
  }
  await until(() => open === 0, 40_000);
  for (const connection of slow) connection.close();
});
