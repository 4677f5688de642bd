import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import type { Progress } from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";
import type { CodeManifest } from "../servers/manifest.ts";
import { codeManifest } from "../servers/kinds.ts";
import { ContractSource } from "./_contract.ts";
import {
  type Asked,
  code,
  denoEntry,
  entries,
  hash,
  json,
  plainFetch,
  type Scripted,
  ScriptedRegistry,
  tag,
} from "./_scripted_test.ts";
import type { RegistryCredentials } from "./client.ts";
import { parseFqdn } from "./fqdn.ts";
import { parseManifest } from "./manifest.ts";

const CODE = "export const hello = () => 'hello';";
const NAME = parseFqdn("hello");
const never = new AbortController().signal;
const FAST = { fetch: plainFetch, retryMs: 1 };

function manifest(): CodeManifest {
  const read = parseManifest(denoEntry("hello", CODE), { url: "https://x.example", asked: NAME });
  const manifest = codeManifest(read);
  assert.ok(manifest !== undefined);
  return manifest;
}

function tokenOf(token: string | undefined): RegistryCredentials {
  return { isHub: false, token: () => token };
}

async function fails(work: Promise<unknown>, expected: string, says?: RegExp): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof PmlError, `${error}`);
    assert.equal(error.code, expected, error.message);
    assert.ok((error.hint ?? "").length > 10);
    if (says !== undefined) assert.match(`${error.message} ${error.hint}`, says);
    return true;
  });
}

Deno.test("ContractSource requests entries and code as specified", async () => {
  await using registry = new ScriptedRegistry(entries({
    "hello": { json: denoEntry("hello", CODE), text: CODE },
  }));
  const source = new ContractSource(`${registry.url}/`, FAST);
  const found = await source.manifest(NAME, never);
  assert.ok(found.kind === "found");
  assert.deepEqual(found.json, denoEntry("hello", CODE));
  const { etag } = found;
  assert.deepEqual(await source.manifest(NAME, never, etag), { kind: "unchanged" });
  assert.deepEqual(await source.manifest(parseFqdn("fs:read_json"), never), {
    kind: "missing",
  });
  const told: Progress[] = [];
  const bytes = await source.code(manifest(), never, (progress) => told.push(progress));
  assert.equal(new TextDecoder().decode(bytes), CODE);
  assert.deepEqual(told.at(-1), {
    progress: CODE.length,
    total: CODE.length,
    message: "downloading hello 1.0.0",
  });
  assert.deepEqual(registry.targets, ["/hello", "/hello", "/fs:read_json", "/hello@1.0.0"]);
  const accepted = registry.asked.map(({ headers }) => headers.get("accept"));
  assert.deepEqual(accepted.slice(2), ["application/json", "application/typescript"]);
  assert.ok(registry.asked.every(({ headers }) => headers.get("authorization") === null));
});

Deno.test("ContractSource accepts only the exact content types", async () => {
  const types = [
    ...["text/html", "text/plain", "application/javascript", "application/json+x", ""],
    ...["application/typescript; charset=utf-16", "application/typescript; charset=latin1"],
    ...["application/typescript, text/html", "application/typescript;boundary=x", "video/mp2t"],
    "application/json;charset=utf-7",
  ];
  await using registry = new ScriptedRegistry();
  const source = new ContractSource(registry.url, FAST);
  for (const type of types) {
    registry.answer = () => code(CODE, { "content-type": type });
    await fails(
      source.code(manifest(), never),
      "REGISTRY_BAD_RESPONSE",
      /content type/,
    );
    registry.answer = () => json(denoEntry("hello", CODE), { "content-type": type });
    await fails(source.manifest(NAME, never), "REGISTRY_BAD_RESPONSE", /content type/);
  }
  const etag = { etag: tag(CODE) };
  registry.answer = () => ({ headers: etag, body: CODE });
  await fails(source.code(manifest(), never), "REGISTRY_BAD_RESPONSE", /content type/);
  // JSON where code was requested, and code where JSON was requested.
  registry.answer = () => json(denoEntry("hello", CODE), etag);
  await fails(source.code(manifest(), never), "REGISTRY_BAD_RESPONSE", /content type/);
  registry.answer = () => code(CODE);
  await fails(source.manifest(NAME, never), "REGISTRY_BAD_RESPONSE", /content type/);
  registry.answer = () => code(CODE, { "content-type": "Application/TypeScript; charset=UTF-8" });
  assert.equal((await source.code(manifest(), never)).length, CODE.length);
  const before = registry.asked.length;
  for (const odd of ["", "x", "\ufeff{", "[1]", '{"a":"\\q"}', "\xff\xfe"]) {
    registry.answer = () => json(odd);
    await fails(source.manifest(NAME, never), "REGISTRY_BAD_RESPONSE");
  }
  assert.equal(registry.asked.length, before + 6, "unusable responses are not retried");
});

Deno.test("ContractSource follows redirects only within the registry", async () => {
  await using other = new ScriptedRegistry(() => json(denoEntry("hello", CODE)));
  await using registry = new ScriptedRegistry();
  const source = new ContractSource(registry.url, { ...FAST, access: tokenOf("t0ken") });
  const redirect = (location: string, status = 302): Scripted => ({
    status,
    headers: { location },
  });
  const elsewhere = [
    ...[
      other.url,
      "https://127.0.0.1/x",
      "file:///etc/passwd",
      "data:application/json,{}",
      "//x.y/",
    ],
    ...[
      `http://user:pw@${registry.host}/mcp/x`,
      "http://[",
      `http://localhost:${registry.host.split(":")[1]}/`,
    ],
  ];
  for (const location of elsewhere) {
    registry.answer = () => redirect(location);
    await fails(source.manifest(NAME, never), "REGISTRY_BAD_RESPONSE", /redirects to/);
  }
  registry.answer = () => ({ status: 307 });
  await fails(source.manifest(NAME, never), "REGISTRY_BAD_RESPONSE", /redirects to/);
  assert.deepEqual(other.asked, []);
  const before = registry.asked.length;
  registry.answer = () => redirect("/mcp/hello");
  await fails(
    source.manifest(NAME, never),
    "REGISTRY_BAD_RESPONSE",
    /more than 3 times/,
  );
  assert.equal(registry.asked.length, before + 4);
  const hops = ["/mcp/a", `${registry.url}/b`, "c"];
  registry.answer = ({ target }) => {
    const hop = hops[["/mcp/hello", "/mcp/a", "/mcp/b"].indexOf(target)];
    return hop === undefined ? json(denoEntry("hello", CODE)) : redirect(hop, 308);
  };
  assert.equal((await source.manifest(NAME, never)).kind, "found");
  assert.ok(registry.asked.every(({ headers }) => headers.get("authorization") === "Bearer t0ken"));
});

Deno.test("ContractSource limits the size of responses, even if their length header is wrong", async () => {
  await using registry = new ScriptedRegistry();
  const source = new ContractSource(registry.url, FAST);
  const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
  const endless = (most: number) => async (send: (piece: string) => Promise<void>) => {
    await send(`${head}transfer-encoding: chunked\r\n\r\n`);
    const piece = "x".repeat(65_536);
    for (let sent = 0; sent < most; sent += piece.length) await send(`10000\r\n${piece}\r\n`);
  };
  const long = /longer than 1048576 bytes/;
  registry.answer = () => ({ raw: endless(Infinity) });
  const memory = Deno.memoryUsage().rss;
  await fails(source.manifest(NAME, never), "REGISTRY_BAD_RESPONSE", long);
  registry.answer = () => json("", { "content-length": "2000000000" });
  await fails(source.manifest(NAME, never), "REGISTRY_BAD_RESPONSE", long);
  const bomb = gzipSync(new Uint8Array(32 << 20).fill(32));
  registry.answer = () => ({
    body: bomb,
    headers: { "content-encoding": "gzip", "content-type": "application/json" },
  });
  await fails(source.manifest(NAME, never), "REGISTRY_BAD_RESPONSE", /compressed/);
  assert.ok(Deno.memoryUsage().rss - memory < 150 << 20, "memory stays flat");
});

Deno.test("ContractSource stops waiting for slow, silent and broken responses at the time limit", async () => {
  await using registry = new ScriptedRegistry();
  const hasty = new ContractSource(registry.url, { ...FAST, lookMs: 150 });
  const source = new ContractSource(registry.url, FAST);
  const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
  const dripping = async (send: (piece: string) => Promise<void>, first: string) => {
    await send(first);
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      await send("x");
    }
  };
  const slow: (() => Scripted)[] = [
    () => "silence",
    () => ({ raw: (send) => dripping(send, `${head}content-length: 500000\r\n\r\n`) }),
    () => ({ raw: (send) => dripping(send, `${head}x-endless: `) }),
  ];
  for (const answer of slow) {
    registry.answer = answer;
    await fails(
      hasty.manifest(NAME, never),
      "REGISTRY_OFFLINE",
      /no answer within 150 ms/,
    );
  }
  const broken: (() => Scripted)[] = [
    () => "hang up",
    () => json("{}", { "content-length": "1000" }),
    () => ({ status: 500 }),
    () => ({ status: 503 }),
    () => ({ status: 429 }),
  ];
  for (const answer of broken) {
    registry.answer = answer;
    const before = registry.asked.length;
    await fails(source.manifest(NAME, never), "REGISTRY_OFFLINE");
    // The platform may retry by itself after a connection that ended without an answer.
    assert.ok(registry.asked.length - before >= 3, "the request was retried twice");
  }
  let tries = 0;
  registry.answer = () => tries++ < 2 ? { status: 502 } : json(denoEntry("hello", CODE));
  assert.equal((await source.manifest(NAME, never)).kind, "found");
  registry.stop();
  await fails(
    source.manifest(NAME, never),
    "REGISTRY_OFFLINE",
    /cached servers still work/,
  );
});

Deno.test("ContractSource stops as soon as the caller aborts", async () => {
  await using registry = new ScriptedRegistry(() => "silence");
  const source = new ContractSource(registry.url, FAST);
  const abort = new AbortController();
  const looking = source.manifest(NAME, abort.signal);
  abort.abort(new PmlError("CANCELLED", "it was cancelled", { hint: "nothing to do here" }));
  await fails(looking, "CANCELLED");
});

Deno.test("ContractSource reports other status codes with a hint", async () => {
  await using registry = new ScriptedRegistry();
  const source = new ContractSource(registry.url, FAST);
  for (const status of [201, 204, 400, 410, 418]) {
    registry.answer = () => ({ status });
    await fails(
      source.manifest(NAME, never),
      "REGISTRY_BAD_RESPONSE",
      RegExp(`${status}`),
    );
  }
  // An etag for something that was not requested proves nothing.
  registry.answer = () => ({ status: 304, headers: { etag: tag(CODE) } });
  await fails(source.manifest(NAME, never), "REGISTRY_BAD_RESPONSE", /304/);
  registry.answer = () => ({ status: 401 });
  await fails(source.manifest(NAME, never), "REGISTRY_BAD_RESPONSE", /token_env/);
  for (const etag of ["x", 'W/"1"', `"${hash(CODE).toUpperCase()}"`, `W/${tag(CODE)}`]) {
    registry.answer = () => code(CODE, { etag });
    await fails(source.code(manifest(), never), "REGISTRY_BAD_RESPONSE", /etag/);
  }
  registry.answer = () => ({ status: 404 });
  await fails(source.code(manifest(), never), "REGISTRY_BAD_RESPONSE", /has no code/);
});

Deno.test("ContractSource throws different errors for an unreachable and a forbidden registry", async () => {
  let tries = 0;
  const failing = (error: Error) =>
    new ContractSource("https://registry.example/mcp", {
      retryMs: 1,
      fetch: () => {
        tries++;
        return Promise.reject(error);
      },
    }).manifest(NAME, never);
  const why = 'Cannot reach "registry.example": its certificate does not hold (CERT_HAS_EXPIRED)';
  await fails(failing(new PmlError("UPSTREAM_DOWN", why)), "REGISTRY_OFFLINE", /CERT_HAS_EXPIRED/);
  assert.equal(tries, 3);
  const local = 'Cannot reach "registry.example": its address is not public';
  await fails(failing(new PmlError("PERMISSION_DENIED", local)), "REGISTRY_BAD_RESPONSE", /public/);
  assert.equal(tries, 4);
  const detail = { may_have_run: false, unresolved: true };
  const unresolved = new PmlError("UPSTREAM_DOWN", "Cannot reach it: no address", { detail });
  await fails(failing(unresolved), "REGISTRY_OFFLINE", /no address/);
  assert.equal(tries, 5, "a name without an address is not tried again");
  // The platform's message may contain the sent header.
  const work = failing(new TypeError("Bearer t0ken is no header"));
  await assert.rejects(work, (error) => error instanceof PmlError && !/t0ken/.test(error.message));
});

Deno.test("ContractSource sends a token in one header or sends none", async () => {
  await using registry = new ScriptedRegistry(() => json(denoEntry("hello", CODE)));
  for (const token of ["a\r\nx: y", "ключ", "", "x".repeat(1 << 20), "a b"]) {
    const source = new ContractSource(registry.url, { ...FAST, access: tokenOf(token) });
    await assert.rejects(source.manifest(NAME, never), (error) => {
      assert.ok(error instanceof PmlError && error.code === "KEY_MISSING", `${error}`);
      if (token !== "") assert.ok(!`${error.message}${error.hint}`.includes(token));
      return true;
    });
  }
  assert.deepEqual(registry.asked, []);
});

Deno.test("ContractSource requests the catalog page by page", async () => {
  const pages: Record<string, unknown> = {
    "": { items: [1, 2], next_cursor: "a b&c" },
    "a b&c": { items: [3], next_cursor: null },
  };
  await using registry = new ScriptedRegistry(({ target }: Asked) => {
    const cursor = new URL(target, "http://x").searchParams.get("cursor") ?? "";
    return json(pages[cursor] ?? {});
  });
  const source = new ContractSource(registry.url, FAST);
  const first = await source.catalog(never);
  assert.deepEqual(first, { items: [1, 2], next: "a b&c" });
  assert.deepEqual(await source.catalog(never, first.next), {
    items: [3],
    next: undefined,
  });
  assert.match(registry.targets[0] ?? "", /^\?include=tools&limit=\d+$/);
  for (
    const page of [[], {}, { items: {} }, { items: [], next_cursor: 7 }, {
      items: [],
      next_cursor: "x".repeat(2_000),
    }]
  ) {
    registry.answer = () => json(page);
    await fails(source.catalog(never), "REGISTRY_BAD_RESPONSE", /catalog/);
  }
});
