import type { Pinned } from "./server_identity.ts";
import assert from "node:assert/strict";
import fc from "fast-check";
import { PmlError } from "../core/errors.ts";
import type { Manifest } from "../servers/manifest.ts";
import { NO_PERMISSIONS } from "../protocol/tool.ts";
import { type LockEntries, lockText, parseLock, pinnedChanges, pinnedOf } from "./lock.ts";

const HASH = `sha256-${"a".repeat(64)}`;
const OTHER = `sha256-${"b".repeat(64)}`;

const SERVERS: LockEntries = {
  mine: {
    source: "private",
    kind: "stdio",
    routing: "local",
    command: ["npx", "-y", "mine"],
    version: "1.2.0",
    integrity: HASH,
    env: ["TOKEN=${MY_TOKEN}"],
    tools: { go: HASH },
  },
  constructor: {
    source: "https://registry.example/mcp",
    kind: "deno" as const,
    permissions: { read: ["."], write: [], net: [], run: [], env: [] },
    tools: {},
  },
};

/** Returns an equal value with the keys of every object in another order. */
function turned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turned);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).reverse().map(([key, one]) => [key, turned(one)]),
  );
}

Deno.test("lockText() returns sorted JSON with two spaces and a line end that parses to the same lock", () => {
  const text = lockText(SERVERS);
  assert.deepEqual(parseLock(text, "pml.lock"), SERVERS);
  assert.ok(text.startsWith('{\n  "version": 1,\n  "servers": {\n    "constructor": {\n'));
  assert.ok(text.endsWith("}\n") && !text.endsWith("\n\n"));
  assert.equal(lockText({}), '{\n  "version": 1,\n  "servers": {}\n}\n');
});

Deno.test("parseLock() ignores the order of keys and white space (RP5)", () => {
  const name = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/).filter((text) =>
    !["pml", "search", "schema", "call", "batch"].includes(text)
  );
  const entry = fc.record({
    source: fc.string(),
    kind: fc.constantFrom("deno", "stdio", "http", "cloud"),
    version: fc.option(fc.string(), { nil: undefined }),
    command: fc.option(fc.array(fc.string()), { nil: undefined }),
    tools: fc.dictionary(name, fc.constantFrom(HASH, OTHER), { noNullPrototype: true }),
  });
  fc.assert(fc.property(
    fc.dictionary(name, entry, { noNullPrototype: true }),
    fc.constantFrom("", "\t", "     "),
    (servers, blanks) => {
      const text = lockText(servers as LockEntries);
      const other = JSON.stringify(
        turned({ servers: parseLock(text, "x"), version: 1 }),
        null,
        blanks,
      );
      assert.equal(lockText(parseLock(other, "x")), text);
    },
  ));
});

Deno.test("parseLock() rejects an invalid lock and reports the invalid key (RG10)", () => {
  const good = lockText(SERVERS);
  const broken: readonly (readonly [text: string, said: RegExp])[] = [
    ["", /invalid JSON/],
    [good.slice(0, -4), /^Cannot use "\/ws\/pml\.lock:36:3": found invalid JSON/],
    [`<<<<<<< HEAD\n${good}=======\n${good}>>>>>>> theirs\n`, /marks of a merge/],
    [good.replace('"mine": {', '"mine": {}, "mine": {'), /key "mine": .*a second time/],
    [good.replace('"go":', '"g\\u006f": "x", "go":'), /key "go": .*a second time/],
    [good.replace('"version": 1', '"version": 2'), /key "version": found 2, wanted 1/],
    [good.replace('"version": 1', '"version": 1, "more": 1'), /key "more": found an unknown key/],
    [good.replace('"mine"', '"Mine"'), /key "servers.Mine".*name of a server/],
    [good.replace('"mine"', '"fs:read:it"'), /name of a server/],
    [good.replace('"mine"', '"__proto__"'), /name of a server/],
    [good.replace('"go"', '"g  o"'), /key "servers.mine.tools.g {2}o".*name of a tool/],
    [good.replace('"stdio"', '"exe"'), /servers.mine.kind": found "exe", wanted one of deno/],
    [good.replace('"kind": "stdio",', ""), /servers.mine.kind": found nothing/],
    [good.replace('"1.2.0"', "1.2"), /servers.mine.version": found 1\.2, wanted a text/],
    [good.replace(`"go": "${HASH}"`, '"go": "sha256-1"'), /tools.go": .*wanted sha256-/],
    [good.replace('"read": [', '"all": ['), /lists of read, write/],
    [
      good.replace('"env": [\n        "T', '"envs": [\n        "T'),
      /servers.mine.envs": found an unknown key/,
    ],
    ["[]", /wanted an object/],
    ['{"version": 1, "servers": null}', /key "servers": .*null, .*an object/],
  ];
  for (const [text, said] of broken) {
    assert.throws(() => parseLock(text, "/ws/pml.lock"), (error) => {
      assert.ok(error instanceof PmlError && error.code === "CONFIG_INVALID", text);
      assert.match(error.message, said);
      assert.match(error.message, /^Cannot use "\/ws\/pml\.lock[:\d]*"/);
      return true;
    });
  }
});

Deno.test("pinnedChanges() lists each difference with both values, and marks older versions (RG2, RP3)", () => {
  const { mine } = SERVERS;
  assert.ok(mine !== undefined);
  const change = (other: Partial<Pinned>) => pinnedChanges(mine, { ...mine, ...other });
  assert.deepEqual(change({}), []);
  assert.deepEqual(change({ command: ["npx", "-y", "mine", "; rm"] }), [
    'command: was ["npx","-y","mine"], is ["npx","-y","mine","; rm"]',
  ]);
  assert.deepEqual(change({ version: "1.1.9" }), [
    'version: was "1.2.0", is "1.1.9" (an older one)',
  ]);
  assert.deepEqual(change({ version: "1.10.0" }), ['version: was "1.2.0", is "1.10.0"']);
  assert.deepEqual(change({ env: ["TOKEN=${ANTHROPIC_API_KEY}"], url: "https://x" }), [
    'url: was nothing, is "https://x"',
    'env: was ["TOKEN=${MY_TOKEN}"], is ["TOKEN=${ANTHROPIC_API_KEY}"]',
  ]);
});

Deno.test("pinnedOf() pins the command, addresses and variable names of an entry, but no values", () => {
  const base = {
    fqdn: "mine",
    name: "mine",
    version: "1.0.0",
    description: undefined,
    tools: [],
    envRequired: ["KEY"],
    warnings: [],
    routing: undefined,
  };
  const source = "https://registry.example";
  const pinned = { source, manifest: HASH, version: "1.0.0", routing: undefined, env: ["KEY"] };
  // Each entry is complete with the fields of its kind.
  const of = (more: object) =>
    pinnedOf({ ...base, ...more } as unknown as Manifest, { source, hash: HASH });
  assert.deepEqual(of({ kind: "deno", integrity: OTHER, permissions: NO_PERMISSIONS }), {
    ...pinned,
    kind: "deno",
    integrity: OTHER,
    permissions: NO_PERMISSIONS,
  });
  const env = { TOKEN: "Bearer ${MY_TOKEN}${KEY}", MODE: "as the registry says" };
  assert.deepEqual(of({ kind: "stdio", command: "npx", args: ["-y", "x"], env }), {
    ...pinned,
    kind: "stdio",
    command: ["npx", "-y", "x"],
    env: ["KEY", "MODE=as the registry says", "TOKEN=Bearer ${MY_TOKEN}${KEY}"],
  });
  const headers = { Authorization: "Bearer ${KEY}" };
  assert.deepEqual(of({ kind: "http", url: "https://x/mcp", headers }), {
    ...pinned,
    kind: "http",
    url: "https://x/mcp",
    headers: ["Authorization=Bearer ${KEY}"],
  });
  assert.deepEqual(of({ kind: "cloud", proxyTo: "https://y" }), {
    ...pinned,
    kind: "cloud",
    url: "https://y",
  });
  const entries = { "fs:read_json": { ...of({ kind: "cloud", proxyTo: "https://y" }), tools: {} } };
  assert.equal(lockText(parseLock(lockText(entries), "x")), lockText(entries));
});
