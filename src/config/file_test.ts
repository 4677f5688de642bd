import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import fc from "fast-check";
import type { ConfigProblem } from "./_problem.ts";
import { readAt, readFile as read, Scratch } from "./_scratch_test.ts";
import { readWorkspaceFile } from "./file.ts";
import { assertGolden } from "../../tests/kit/golden.ts";

async function problemsOf(content: string | Uint8Array): Promise<readonly ConfigProblem[]> {
  const { file, error } = await read(content);
  assert.equal(file, undefined);
  const problems = error?.detail?.problems;
  assert.ok(Array.isArray(problems));
  return problems;
}

const RULE =
  'the rule "*", "server:*", "server:@reads", "server:tool", "server:tool(name=glob, ...)" or ' +
  '"server:tool({JSON})"';
const JSONC = "JSON with comments";

/** Text, line, column, key, found, wanted. */
const BAD_TEXTS: readonly (readonly [string, number, number, string, string, string])[] = [
  ["", 1, 1, "", "invalid JSON (value expected)", JSONC],
  ["  \n", 2, 1, "", "invalid JSON (value expected)", JSONC],
  ["// nothing\n", 2, 1, "", "invalid JSON (value expected)", JSONC],
  ["[]", 1, 1, "", "an array", "an object"],
  ["null", 1, 1, "", "null", "an object"],
  ['{"version": 2}', 1, 13, "version", "2 (a number)", "1"],
  ['{"version": "1"}', 1, 13, "version", '"1" (a string)', "1"],
  ['{"version": 1e400}', 1, 13, "version", "Infinity (a number)", "1"],
  [
    '{"version": 1, "intent": "\\u0000"}',
    1,
    26,
    "intent",
    '"\\u{0}" (a string)',
    "at most 2000 characters",
  ],
  ['{"version": null}', 1, 13, "version", "null", "1"],
  [
    '{"private_mcps": {"a": {"type": "deno"}}}',
    1,
    24,
    "private_mcps.a.path",
    "nothing",
    "the path of a file",
  ],
  [
    '{\n  "version": 1,\n  "permissions": {\n    "allow": "*"\n  }\n}',
    4,
    14,
    "permissions.allow",
    '"*" (a string)',
    "an array of rules",
  ],
  [
    '{"version": 1,\n"permissions": {"allow": [], "denied": []}}',
    2,
    40,
    "permissions.denied",
    "an unknown key",
    "one of allow, ask, deny",
  ],
  ['{"version": 1,\n"permissions": []}', 2, 16, "permissions", "an array", "an object"],
  ['{"version": 1, "permissions": null}', 1, 31, "permissions", "null", "an object"],
  [
    '{"version": 1, "permissions": {"deny": [true]}}',
    1,
    41,
    "permissions.deny[0]",
    "true (a boolean)",
    RULE,
  ],
  [
    '{"version": 1, "permissions": {"deny": ["a:b", "file*"]}}',
    1,
    48,
    "permissions.deny[1]",
    '"file*" (a string)',
    RULE,
  ],
  [
    '{"version": 1, "permissions": {"deny": ["a:b(path=src/** )"]}}',
    1,
    41,
    "permissions.deny[0]",
    '"a:b(path=src/** )" (a string)',
    RULE,
  ],
  [
    '{"version": 1,\n "version": 1}',
    2,
    2,
    "version",
    "the key twice (lines 1 and 2)",
    "each key once",
  ],
  [
    '{"version": 1, "permissions": {"deny": ["shell:*"], "deny": []}}',
    1,
    53,
    "permissions.deny",
    "the key twice (lines 1 and 1)",
    "each key once",
  ],
  [
    '{"version": 1, "\\u0076ersion": 1}',
    1,
    16,
    "version",
    "the key twice (lines 1 and 1)",
    "each key once",
  ],
  [
    '{\n<<<<<<< HEAD\n"version": 1\n=======\n"version": 1\n>>>>>>> b\n}',
    2,
    1,
    "",
    "invalid JSON (invalid symbol)",
    JSONC,
  ],
  [
    '{"version": 1 "workspace": "."}',
    1,
    15,
    "workspace",
    "invalid JSON (comma expected)",
    JSONC,
  ],
  ['{"version": 1', 1, 14, "version", "invalid JSON (close brace expected)", JSONC],
  ['{"version": 1} x', 1, 16, "", "invalid JSON (invalid symbol)", JSONC],
  ['{"version": 1} {}', 1, 16, "", "invalid JSON (end of file expected)", JSONC],
  [
    '{"version: 1}',
    1,
    2,
    "version: 1}",
    "invalid JSON (unexpected end of string)",
    JSONC,
  ],
  ["{'version': 1}", 1, 2, "", "invalid JSON (invalid symbol)", JSONC],
  ['{"version": 1} /* x', 1, 16, "", "invalid JSON (unexpected end of comment)", JSONC],
  ["a\0b", 1, 1, "", "invalid JSON (invalid symbol)", JSONC],
  ['\uFEFF{"version": 1,', 1, 15, "", "invalid JSON (property name expected)", JSONC],
];

Deno.test("readWorkspaceFile() reports line, column, key, value and expected type of problems", async () => {
  for (const [text, line, column, key, found, wanted] of BAD_TEXTS) {
    const [first] = await problemsOf(text);
    assert.match(first?.file ?? "", /\.pml\.json$/);
    assert.deepEqual({ ...first, file: "" }, { file: "", line, column, key, found, wanted }, text);
  }
});

Deno.test("readWorkspaceFile() reports a text that ends too early once", async () => {
  const early = [
    '{"version": 1, "mcpServers": {"a": {"args": ["x"',
    '{"version": 1, "mcpServers": {"a": {"command": "x"},\n',
    '{"version": 1, "mcpServers": {"a": {"command": "x\n',
    '{"version": 1, "mcpServers": {"a": /* x',
    '{"version": 1, "mcpServers":',
  ];
  for (const text of early) assert.equal((await problemsOf(text)).length, 1, text);
  const two = await problemsOf('{"version" 1, "intent" "x", "mcpServers": {');
  assert.deepEqual(two.map(({ column }) => column), [12, 24]);
});

Deno.test("readWorkspaceFile() says all of it in one message", async () => {
  const { error, path } = await read(
    '{\n"version": 1,\n"permissions": {\n "allow": "*", "x": 1}, "a": 1, "b": 2, "c": 3\n}',
  );
  const message = error?.message ?? "";
  for (const place of ["4:11", "4:21", "4:30"]) assert.ok(message.includes(`"${path}:${place}"`));
  assertGolden("config/problems of a file", message, { FILE: path });
  assert.equal(error?.code, "CONFIG_INVALID");
  assert.match(error?.hint ?? "", /Fix it/);
});

Deno.test("readWorkspaceFile() reports each of many problems", async () => {
  const problems = await problemsOf(JSON.stringify({
    version: 3,
    permissions: { allow: "*", deny: [1, "x"] },
    grants: { filesystem: { read: "." } },
    nope: true,
  }));
  assert.deepEqual(problems.map(({ key }) => key), [
    "version",
    "permissions.allow",
    "permissions.deny[0]",
    "permissions.deny[1]",
    "grants.filesystem.read",
    "nope",
  ]);
});

Deno.test("readWorkspaceFile() takes __proto__ and constructor for unknown keys", async () => {
  const text = '{"version": 1, "__proto__": {"permissions": {"allow": ["*"]}}, "constructor": 1}';
  const problems = await problemsOf(text);
  assert.deepEqual(problems.map(({ key }) => key), ["__proto__", "constructor"]);
  for (const { found } of problems) assert.equal(found, "an unknown key");
  for (const name of ["grants", "private_mcps", "mcpServers"]) {
    const [first, second] = await problemsOf(`{"version": 1, "${name}": {"__proto__": {}}}`);
    assert.deepEqual([first?.key, first?.found], [`${name}.__proto__`, "an unknown key"]);
    assert.equal(second, undefined);
  }
  const env = '{"version": 1, "mcpServers": {"a": {"command": "x", "env": {"__proto__": "1"}}}}';
  assert.equal((await problemsOf(env))[0]?.key, "mcpServers.a.env.__proto__");
});

Deno.test("readWorkspaceFile() reads comments, trailing commas and CRLF", async () => {
  const text = '// mine\r\n{"version": 1, /* x */\r\n"permissions": {"deny": ["a:b",],},}\r\n';
  const { file } = await read(text);
  assert.deepEqual(file?.permissions?.deny.map(({ pattern }) => pattern.text), ["a:b"]);
  const [bad] = await problemsOf(text.replace("a:b", "a b"));
  assert.deepEqual([bad?.line, bad?.column], [3, 26]);
});

Deno.test("readWorkspaceFile() reads a file without a version as version 1", async () => {
  const rules = '"permissions": {"deny": ["a:b"]}';
  const { file, error } = await read(`{${rules}}`);
  assert.equal(error, undefined);
  assert.deepEqual(file?.permissions?.deny.map(({ pattern }) => pattern.text), ["a:b"]);
});

Deno.test("readWorkspaceFile() takes a byte order mark as editors of Windows write it", async () => {
  const { file, error } = await read('\uFEFF{"version": 1, "permissions": {"allow": ["a:b"]}}');
  assert.equal(error, undefined);
  assert.deepEqual(file?.permissions?.allow.map(({ pattern }) => pattern.text), ["a:b"]);
});

Deno.test("readWorkspaceFile() returns the hash of the bytes", async () => {
  const text = '{"version":1}';
  const { file } = await read(text);
  assert.equal(file?.hash, `sha256-${createHash("sha256").update(text).digest("hex")}`);
});

Deno.test("readWorkspaceFile() refuses all but text files of at most 1 MB", async () => {
  using scratch = new Scratch();
  const path = join(scratch.ws, ".pml.json");
  const refused = async (make: () => void, why: RegExp) => {
    make();
    const { file, error } = await readAt(path, readWorkspaceFile);
    assert.equal(file, undefined);
    await Deno.remove(path, { recursive: true });
    assert.equal(error?.code, "CONFIG_INVALID");
    assert.match(error?.message ?? "", why);
  };
  await refused(() => Deno.mkdirSync(path), /a regular file\)/);
  await refused(
    () => scratch.write("ws/.pml.json", " ".repeat(1_000_001)),
    /at most 1000000 are allowed/,
  );
  // A file this long must not even be read.
  const long = () => {
    scratch.write("ws/.pml.json", "");
    Deno.truncateSync(path, 2 ** 36);
  };
  await refused(long, /at most 1000000 are allowed/);
  await refused(() => Deno.symlinkSync("nowhere", path), /no such file/);
  await refused(() => Deno.symlinkSync(".pml.json", path), /an unreadable file/);
  await refused(() => Deno.symlinkSync("/dev/zero", path), /not a regular file/);
});

Deno.test("readWorkspaceFile() reads no character of a hostile file again and again", async () => {
  for (const part of ['"\\', "/*", '"', "[", "{", "@ ", "\uFFFD", '{"a":', "//\r", "=======\n"]) {
    const { error } = await read(part.repeat(Math.floor(900_000 / part.length / 3)));
    assert.equal(error?.code, "CONFIG_INVALID", part);
  }
});

Deno.test("readWorkspaceFile() finds the byte that is not UTF-8", async () => {
  const bytes = new TextEncoder().encode('{"version": 1,\n"intent": "\uFFFD?"}');
  const bad = bytes.map((byte) => byte === 0x3F ? 0xFF : byte);
  const [first] = await problemsOf(bad);
  assert.deepEqual([first?.line, first?.column, first?.wanted], [2, 12, "UTF-8 text"]);
  assert.equal((await read(bytes)).file?.sections.intent, "\uFFFD?");
});

Deno.test("readWorkspaceFile() returns undefined without a problem for a missing file", async () => {
  using scratch = new Scratch();
  const { file, error } = await readAt(join(scratch.ws, ".pml.json"), readWorkspaceFile);
  assert.deepEqual([file, error], [undefined, undefined]);
});

Deno.test("readWorkspaceFile() and the platform accept the same JSON", async () => {
  const alphabet = fc.constantFrom(..."{}[]\":,1-.eE \n\\u0atrfn'".split(""));
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: alphabet, maxLength: 12 }), async (inner) => {
      const text = `{"version": 1, "intent": ${inner}}`;
      const { file } = await read(text);
      if (file === undefined) return;
      const strict = text.replace(/,(?=\s*})/g, "");
      assert.deepEqual(JSON.parse(strict).intent, file.sections.intent);
    }),
    { numRuns: 300, seed: 11 },
  );
});

Deno.test("readWorkspaceFile() reads the four exposures, and warns of all others", async () => {
  const gatewayOf = async (name: string) => {
    const { file, warnings } = await read(
      `{"version": 1, "gateway": {"tools_exposure": "${name}"}}`,
    );
    return { exposure: file?.sections.gateway?.exposure, warned: warnings.join() };
  };
  for (const name of ["meta_only", "semantic", "hybrid", "full_proxy"]) {
    assert.deepEqual(await gatewayOf(name), { exposure: name, warned: "" });
  }
  const { exposure, warned } = await gatewayOf("everything");
  assert.equal(exposure, "meta_only");
  assert.match(warned, /"everything" is none of meta_only, semantic, hybrid, full_proxy/);
});
