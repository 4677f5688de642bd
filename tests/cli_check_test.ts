import assert from "node:assert/strict";
import { assertGolden } from "./kit/golden.ts";
import { ProcWatch } from "./kit/procwatch.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace, type Workspace, writeFiles } from "./kit/workspace.ts";

const A = `a: { description: "A" }`;
const IN = (schema: string) => `a: { description: "A", inputSchema: ${schema} }`;

/** Returns a module with these tools and one function. */
function module(tools: string, more = ""): string {
  return `export const __meta__ = {
  name: "x", description: "X",${more}
  tools: { ${tools} },
};
export function a() {}
`;
}

const GOOD = `import type { Host, Meta } from "@casys/pml";
import type { ToolResult } from "jsr:@casys/pml@^0.1.0";
import type { City } from "./city.ts";

export const __meta__ = {
  name: "weather",
  version: "1.0.0",
  description: "Tells the weather",
  permissions: { read: ["."], net: ["api.example.com"] },
  tools: {
    look: {
      description: "Tell the weather of a city",
      inputSchema: {
        type: "object",
        properties: {
          city: { type: "string", minLength: 2 },
          days: { type: "integer", minimum: 1 },
        },
        required: ["city"],
        additionalProperties: false,
      },
      outputSchema: { type: "object", properties: { sun: { type: "boolean" } } },
      annotations: { readOnlyHint: true },
    },
  },
} satisfies Meta;

/** Calls fetch() of the host. */
export async function look({ name }: City, host: Host): Promise<ToolResult> {
  host.progress({ progress: 1, message: "await fetch(x) is only told here" });
  const answer = await host.fetch(\`https://api.example.com/\${name}\`);
  return { content: [{ type: "text", text: await answer.text() }] };
}
`;

/** Files with an error. */
const BAD: Readonly<Record<string, string>> = {
  "unread.ts": "const a = `",
  "odd_type.ts": module('a: { description: "A", outputSchema: { type: "nonsense" } }'),
  "syntax.ts": module(A) + "const b = ;\n",
  "twice.ts": module(A) + "let b = 1;\nlet b = 2;\n",
  "imports.ts": module(A) +
    'import { x } from "./x.ts";\nexport * from "npm:zod";\nimport "node:fs";\n',
  "types_as_values.ts": 'import { Host } from "jsr:@casys/pml";\n' + module(A),
  "no_meta.ts": "export function a() {}\n",
  "comment.ts": '// __meta__: {"name": x}\nexport function a() {}\n',
  "array.ts": "export const __meta__ = [];\n",
  "reserved.ts": module(A).replace('"x"', '"search"'),
  "builtin.ts": module(A).replace('"x"', '"filesystem"'),
  "permission.ts": module(A, " permissions: { reed: ['.'] },"),
  "tools.ts": module("a: 5, 'b c': {}, c: { description: 1 }, d: { description: 'D' }"),
  "empty.ts": module("").replace("export function a() {}\n", ""),
  "no_arguments.ts": module(IN('{ type: "string" }')),
  "reference.ts": module(IN('{ $ref: "https://x.y/z" }')),
  "no_pattern.ts": module(IN('{ properties: { p: { type: "string", pattern: "(" } } }')),
  "example.ts": module(IN('{ properties: { p: { type: "string" } }, examples: [{ p: 1 }] }')),
  "throws.ts": module(A) + 'throw new Error("boo\\nok   types: no problem");\n',
  "bigint.ts": "export const __meta__ = { name: 'x', tools: { a: 1n } };\n",
};

/** Files without an error, which cause warnings. */
const ODD: typeof BAD = {
  "pattern.ts": module(IN('{ properties: { p: { type: "string", pattern: "^(?!a)" } } }')),
  "dynamic.ts": module(A) + 'export const b = () => import("node:fs");\n',
  "denied.ts": module(A) + "const f = async () => {\n  new Worker('x'); Deno.env.get('A');\n" +
    "  return [await fetch('x'), new Deno.Command('git'), Deno.openKv()];\n};\n",
  "unknown.ts": module("a: { description: 'A', outputShema: {} }", " permision: {},"),
  "undescribed.ts": module("a: {}"),
  "open.ts": module(IN("{ properties: { p: {} } }")),
  "never.ts": module(
    IN('{ properties: { p: { type: "string", pattern: "^qqq$" } }, required: ["p"] }'),
  ),
  "no_type.ts": module('a: { description: "A", outputSchema: { type: [] } }'),
  "grants.ts": module(A, " permissions: { read: ['.', '../out'], net: ['*'], env: ['A', 'B C'] },"),
};

Deno.test("pml check finds no error in a good module that imports types of PML", async () => {
  await using ws = await makeWorkspace({
    files: { "weather.ts": GOOD, "city.ts": "export interface City { readonly name: string }\n" },
  });
  const result = await runPml(ws, ["check", "weather.ts"]);
  assert.equal(result.code, 0, result.stdout + result.stderr);
  assertGolden("check/a good module", result.stdout, { BYTES: `${GOOD.length}` });
  assert.equal(result.stderr, "");
  const json = await runPml(ws, ["check", "--json", "--no-types", ws.file("weather.ts")]);
  const { path, ok, checks, tools, permissions } = JSON.parse(json.stdout);
  assert.deepEqual([path, ok, checks.length], [ws.file("weather.ts"), true, 10]);
  const asked = { read: ["."], write: [], net: ["api.example.com"], run: [], env: [] };
  assert.deepEqual(tools, [{ name: "look", permissions: asked, example: { city: "xx" } }]);
  assert.deepEqual(permissions, asked);
  const { name, state, message, hint } = checks[9];
  assert.deepEqual([name, state], ["permissions", "warning"]);
  assert.match(message, / net api\.example\.com: not granted$/);
  assert.ok(hint.endsWith('"grants": {"weather":{"net":["api.example.com"]}}'), hint);
});

Deno.test("pml check applies the grants of the server that .pml.json defines with the file", async () => {
  const asks = module(A, " permissions: { net: ['127.0.0.1:7803', '127.0.0.1:7804'] },");
  const grant = (...net: readonly string[]) => ({
    version: 1,
    private_mcps: { quotes: { type: "deno", path: "./mods/x.ts" } },
    // "x" is the name in `__meta__`, but another server.
    grants: { quotes: { net }, x: { net: ["127.0.0.1:7804"] } },
  });
  const files = { "mods/x.ts": asks, "other.ts": asks };
  const check = async (ws: Workspace, file: string) => {
    const { stdout } = await runPml(ws, ["check", "--json", "--no-types", file]);
    return JSON.parse(stdout).checks.find(({ name }: { name: string }) => name === "permissions");
  };
  {
    await using ws = await makeWorkspace({
      pml: grant("127.0.0.1:7803", "127.0.0.1:7804"),
      files: { ...files },
    });
    const { state, message } = await check(ws, "mods/x.ts");
    assert.deepEqual([state, message], [
      "ok",
      "connects to 127.0.0.1:7803; connects to 127.0.0.1:7804",
    ]);
    assert.equal((await check(ws, "other.ts")).state, "warning");
  }
  await using ws = await makeWorkspace({ pml: grant("127.0.0.1:7803"), files });
  const { state, message, hint } = await check(ws, "mods/x.ts");
  assert.equal(state, "warning");
  assert.match(message, /net 127\.0\.0\.1:7804: not granted$/);
  const entry = '"grants": {"quotes":{"net":["127.0.0.1:7803","127.0.0.1:7804"]}}';
  assert.ok(hint.endsWith(entry), hint);
});

Deno.test("pml check names pml trust if the file with the grants is not trusted", async () => {
  const asks = module(A, " permissions: { net: ['127.0.0.1:7803'] },");
  await using ws = await makeWorkspace({
    pml: {
      version: 1,
      private_mcps: { x: { type: "deno", path: "./x.ts" } },
      grants: { x: { net: ["127.0.0.1:7803"] } },
    },
    trusted: false,
    files: { "x.ts": asks },
  });
  const { stdout } = await runPml(ws, ["check", "--no-types", "x.ts"]);
  assertGolden("check/grants in an untrusted file", stdout);
});

Deno.test("pml check reports each error of a module in a line, and continues", async () => {
  const files = [...Object.entries(BAD), ...Object.entries(ODD)];
  await using ws = await makeWorkspace({ files: Object.fromEntries(files) });
  for (const [name] of files) {
    const result = await runPml(ws, ["check", "--no-types", name]);
    assert.equal(result.code, name in BAD ? 1 : 0, name + result.stdout + result.stderr);
    assertGolden(`check/${name}`, result.stdout);
    assert.equal(/^FAIL/m.test(result.stdout), name in BAD);
    assert.equal(result.stderr, "", name);
  }
});

Deno.test("pml check reports an unreadable file and a too large file", async () => {
  await using ws = await makeWorkspace({
    files: { "large.ts": "/".repeat(2_000), "latin.ts": new Uint8Array([0x2f, 0x2f, 0xe9]) },
  });
  await writeFiles(ws.home, { "config.yaml": "limits:\n  module_bytes: 1024\n" });
  const reports: string[] = [];
  for (const file of ["none.ts", ".", "latin.ts", "large.ts"]) {
    const result = await runPml(ws, ["check", file]);
    assert.equal(result.code, 1);
    assert.match(result.stdout, /^FAIL file: /m);
    reports.push(result.stdout);
  }
  assertGolden("check/files that cannot be read", reports.join(""));
  for (const args of [["check"], ["check", "a", "b"], ["check", "--nonsense", "a"]]) {
    assert.equal((await runPml(ws, args)).code, 2);
  }
});

Deno.test("pml check reports compiler errors with the module's lines, without network", async () => {
  let asked = 0;
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => {
      asked++;
      return new Response("export type Far = string;", {
        headers: { "content-type": "application/typescript" },
      });
    },
  );
  const far = `http://127.0.0.1:${server.addr.port}/far.ts`;
  await using ws = await makeWorkspace({
    files: {
      "wrong.ts": module(A) + `import type { Host } from "@casys/pml";\n` +
        "const n: number = 'x';\nexport const f = (host: Host) => [n, host.nope];\n" +
        "export const g = (any) => any;\n",
      "far.ts": module(A) + `import type { Far } from "${far}";\nexport const f: Far = "x";\n`,
      "other.ts": `import type { A } from "npm:zod";\nexport const a: number = "x";\n`,
    },
  });
  const lax = JSON.stringify({
    compilerOptions: { strict: false },
    imports: { "@casys/pml": "./other.ts" },
  });
  // The compiler uses no configuration file, whichever folder it starts from.
  for (const folder of [ws.path, ws.home]) await writeFiles(folder, { "deno.json": lax });
  const wrong = await runPml(ws, ["check", "wrong.ts"]);
  assert.equal(wrong.code, 1);
  const places = [...wrong.stdout.matchAll(/^FAIL types: wrong\.ts:(\d+:\d+): /gm)];
  assert.deepEqual(places.map(([, place]) => place), ["7:7", "8:43", "9:19"]);
  const remote = await runPml(ws, ["check", "far.ts"]);
  assert.match(remote.stdout, /^FAIL types: far\.ts:6:\d+: .*127\.0\.0\.1/m);
  assert.equal(asked, 0);
  const left = [...Deno.readDirSync(ws.home)].filter(({ name }) => name.startsWith("check-"));
  assert.deepEqual(left, []);
});

Deno.test("a module cannot harm pml check while it loads", async () => {
  const read = (path: string) => `Deno.readTextFileSync(${JSON.stringify(path)});\n`;
  await using ws = await makeWorkspace({
    files: {
      "forever.ts": module(A) + "for (;;);\n",
      "waits.ts": module(A) + "await new Promise(() => {});\n",
      "prints.ts": module(A) + 'console.log("ok   loud"); console.error("loud");\n',
      "reads.ts": module(A) + read("a.txt"),
      "a.txt": "secret of the workspace",
    },
  });
  await writeFiles(ws.path, { "outside.ts": module(A) + read(ws.outside) });
  await writeFiles(ws.home, { "config.yaml": "limits:\n  start_ms: 1500\n" });
  const table: readonly (readonly [file: string, code: number, line: RegExp])[] = [
    ["forever.ts", 1, /^FAIL load: .*in time$/m],
    ["waits.ts", 1, /^FAIL load: .*in time$/m],
    ["prints.ts", 0, /^warn load: .*prints/m],
    ["reads.ts", 1, /^FAIL load: Cannot read "a\.txt": /m],
    ["outside.ts", 1, /^FAIL load: Cannot read ".*\/outside\/canary\.txt": /m],
  ];
  for (const [file, code, line] of table) {
    const result = await runPml(ws, ["check", "--no-types", file]);
    assert.equal(result.code, code, result.stdout);
    assert.match(result.stdout, line);
    assert.doesNotMatch(result.stdout + result.stderr, /loud|secret|canary-/);
    assert.equal(result.stderr, "");
  }
  await ws.assertCanaries();
  await new ProcWatch(ws).assertNothingLeft();
});
