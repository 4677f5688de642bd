import assert from "node:assert/strict";
import { ProcWatch } from "./kit/procwatch.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace, writeFiles } from "./kit/workspace.ts";

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

/** Files with an error, and the expected lines of the report. */
const BAD: Readonly<Record<string, readonly [text: string, ...lines: readonly string[]]>> = {
  "unread.ts": [
    "const a = `",
    "FAIL syntax: unread.ts:1:11: Unterminated template",
    "     Fix the syntax error in line 1",
  ],
  "odd_type.ts": [
    module('a: { description: "A", outputSchema: { type: "nonsense" } }'),
    'FAIL schemas: outputSchema of "a" has the unknown type "nonsense"',
  ],
  "syntax.ts": [
    module(A) + "const b = ;\n",
    "FAIL syntax: syntax.ts:6:11: Expression expected",
    "     Fix the syntax error in line 6",
  ],
  "twice.ts": [
    module(A) + "let b = 1;\nlet b = 2;\n",
    "FAIL syntax: twice.ts:7:5: Identifier 'b' has already been declared",
  ],
  "imports.ts": [
    module(A) + 'import { x } from "./x.ts";\nexport * from "npm:zod";\nimport "node:fs";\n',
    'FAIL imports: imports.ts:6:1: it imports "./x.ts", but a module is one file',
    'FAIL imports: imports.ts:7:1: it imports "npm:zod", but a module is one file',
    'FAIL imports: imports.ts:8:1: it imports "node:fs", but a module is one file',
    "warn load: not checked, and neither is the rest: fix the imports first",
  ],
  "types_as_values.ts": [
    'import { Host } from "jsr:@casys/pml";\n' + module(A),
    'FAIL imports: types_as_values.ts:1:1: it imports "jsr:@casys/pml", but a module is one file',
    "     Write `import type`: only types can be imported from there",
  ],
  "no_meta.ts": ["export function a() {}\n", "FAIL meta: there is no __meta__"],
  "comment.ts": [
    '// __meta__: {"name": x}\nexport function a() {}\n',
    "FAIL meta: its __meta__ comment is not JSON",
    '     Write `// __meta__: {"name": "x", "tools": ["x:tool"]}` in one line',
  ],
  "array.ts": [
    "export const __meta__ = [];\n",
    "FAIL meta: __meta__ is [], wanted an object",
  ],
  "reserved.ts": [
    module(A).replace('"x"', '"search"'),
    `FAIL meta: __meta__.name is "search", wanted a server name (a-z, 0-9, '.', '_', '-')`,
  ],
  "builtin.ts": [
    module(A).replace('"x"', '"filesystem"'),
    'FAIL meta: __meta__.name is "filesystem", which ships with PML',
    "     Choose another name",
  ],
  "permission.ts": [
    module(A, " permissions: { reed: ['.'] },"),
    'FAIL meta: __meta__.permissions.reed is "reed", wanted one of read, write, net, run, env',
  ],
  "tools.ts": [
    module("a: 5, 'b c': {}, c: { description: 1 }, d: { description: 'D' }"),
    "FAIL meta: __meta__.tools.a is 5, wanted an object",
    `FAIL meta: __meta__.tools.b c is "b c", wanted a tool name (A-Z, a-z, 0-9, '_', '.', '-')`,
    "FAIL meta: __meta__.tools.c.description is 1, wanted a string",
    'FAIL functions: __meta__ names the tool "d", but no such function is exported',
    "     Write `export function d(args, host)`, or remove it from __meta__.tools",
    "4 failed, 0 to look at, 8 ok",
  ],
  "empty.ts": [
    module("").replace("export function a() {}\n", ""),
    "FAIL meta: __meta__.tools is empty",
  ],
  "no_arguments.ts": [
    module(IN('{ type: "string" }')),
    'FAIL meta: __meta__.tools.a.inputSchema is {"type":"string"}, wanted a JSON Schema object of type "object"',
  ],
  "reference.ts": [
    module(IN('{ $ref: "https://x.y/z" }')),
    'FAIL schemas: inputSchema of "a" cannot be used: $ref "https://x.y/z" leads to no schema',
    "     Write plain JSON Schema 2020-12: local $ref, less depth and size",
  ],
  "no_pattern.ts": [
    module(IN('{ properties: { p: { type: "string", pattern: "(" } } }')),
    'FAIL schemas: inputSchema of "a" cannot be used: Invalid regular expression: /(/u: ' +
    "Unterminated group",
  ],
  "example.ts": [
    module(IN('{ properties: { p: { type: "string" } }, examples: [{ p: 1 }] }')),
    'FAIL arguments: an example of "a" does not fit its own schema: p: the value is of type ' +
    "number, not string",
  ],
  "throws.ts": [
    module(A) + 'throw new Error("boo\\nok   types: no problem");\n',
    "FAIL load: Error: boo",
    "     It is loaded without any grant: do all work in the functions of its tools",
  ],
  "bigint.ts": [
    "export const __meta__ = { name: 'x', tools: { a: 1n } };\n",
    "FAIL load: TypeError: Do not know how to serialize a BigInt",
  ],
};

/** Files without an error, and the expected warnings. */
const ODD: typeof BAD = {
  "pattern.ts": [
    module(IN('{ properties: { p: { type: "string", pattern: "^(?!a)" } } }')),
    "ok   schemas: the gateway can use each",
  ],
  "dynamic.ts": [
    module(A) + 'export const b = () => import("node:fs");\n',
    'warn denied: dynamic.ts:6:24: import("node:fs") is denied when it runs',
    "     Bundle it into the module, or do not use it",
    'warn functions: dynamic.ts:6: the function "b" is exported, but no tool has its name',
  ],
  "denied.ts": [
    module(A) + "const f = async () => {\n  new Worker('x'); Deno.env.get('A');\n" +
    "  return [await fetch('x'), new Deno.Command('git'), Deno.openKv()];\n};\n",
    "warn denied: denied.ts:7:7: Worker is denied when it runs",
    "     A module runs on one thread",
    "warn denied: denied.ts:7:20: Deno.env is denied when it runs",
    "     Use host.env, with an env grant",
    "warn denied: denied.ts:8:17: fetch is denied when it runs",
    "     Local modules are network-isolated: use host.fetch, with a net grant",
    "warn denied: denied.ts:8:33: Deno.Command is denied when it runs",
    "     Use host.exec, with a run grant",
  ],
  "unknown.ts": [
    module("a: { description: 'A', outputShema: {} }", " permision: {},"),
    "warn meta: __meta__.permision is unknown and is ignored",
    "     Known are name, version, description, permissions, tools",
    "warn meta: __meta__.tools.a.outputShema is unknown and is ignored",
  ],
  "undescribed.ts": [
    module("a: {}"),
    "warn meta: __meta__.tools.a has no description",
    "     A model chooses by it: write a sentence",
  ],
  "open.ts": [
    module(IN("{ properties: { p: {} } }")),
    'warn arguments: "p" of "a" accepts every kind of value',
    "     Give it a type",
  ],
  "never.ts": [
    module(IN('{ properties: { p: { type: "string", pattern: "^qqq$" } }, required: ["p"] }')),
    'warn arguments: no arguments were found that "a" accepts: p: the value does not match pattern',
    '     Add some to inputSchema, as "examples": [{…}]',
  ],
  "no_type.ts": [
    module('a: { description: "A", outputSchema: { type: [] } }'),
    'warn schemas: no result was found that outputSchema of "a" accepts: the value is of ' +
    "type string, not ",
  ],
  "grants.ts": [
    module(A, " permissions: { read: ['.', '../out'], net: ['*'], env: ['A', 'B C'] },"),
    "warn permissions: reads the workspace; asks for read ../out: not granted; asks for net *: not " +
    'granted; asks for env A: not granted; asks for env "B C": not granted',
    '     To grant it, write into .pml.json: "grants": {"x":{"read":["../out"],"net":["*"],' +
    '"env":["A","B C"]}}',
  ],
};

Deno.test("pml check finds no error in a good module that imports types of PML", async () => {
  await using ws = await makeWorkspace({
    files: { "weather.ts": GOOD, "city.ts": "export interface City { readonly name: string }\n" },
  });
  const ran = await runPml(ws, ["check", "weather.ts"]);
  assert.equal(ran.code, 0, ran.stdout + ran.stderr);
  assert.equal(
    ran.stdout,
    `weather.ts
ok   file: ${GOOD.length} bytes of at most 2097152
ok   imports: it is one file
ok   denied: it names nothing that the sandbox denies
ok   syntax: it reads as TypeScript
ok   load: it loads without any grant
ok   meta: "weather" with 1 tool
ok   functions: each tool has its function
ok   schemas: the gateway can use each
ok   arguments: calls that fit are accepted (1), others are refused (4)
warn permissions: reads the workspace; asks for net api.example.com: not granted
     To grant it, write into .pml.json: "grants": {"weather":{"net":["api.example.com"]}}
ok   types: no problem
0 failed, 1 to look at, 10 ok
`,
  );
  assert.equal(ran.stderr, "");
  const json = await runPml(ws, ["check", "--json", "--no-types", ws.file("weather.ts")]);
  const { file, ok, checks, tools, permissions } = JSON.parse(json.stdout);
  assert.deepEqual([file, ok, checks.length], [ws.file("weather.ts"), true, 10]);
  const asked = { read: ["."], write: [], net: ["api.example.com"], run: [], env: [] };
  assert.deepEqual(tools, [{ name: "look", permissions: asked, example: { city: "xx" } }]);
  assert.deepEqual(permissions, asked);
  assert.deepEqual(checks[9], {
    name: "permissions",
    state: "warning",
    message: "reads the workspace; asks for net api.example.com: not granted",
    hint: 'To grant it, write into .pml.json: "grants": {"weather":{"net":["api.example.com"]}}',
  });
});

Deno.test("pml check reports each error of a module in a line, and continues", async () => {
  const files = [...Object.entries(BAD), ...Object.entries(ODD)];
  await using ws = await makeWorkspace({
    files: Object.fromEntries(files.map(([name, [text]]) => [name, text])),
  });
  for (const [name, [, ...lines]] of files) {
    const ran = await runPml(ws, ["check", "--no-types", name]);
    assert.equal(ran.code, name in BAD ? 1 : 0, name + ran.stdout + ran.stderr);
    const said = ran.stdout.split("\n");
    for (const line of lines) assert.ok(said.includes(line), `${name}: ${line}\n${ran.stdout}`);
    assert.equal(/^FAIL/m.test(ran.stdout), name in BAD);
    assert.equal(ran.stderr, "", name);
  }
});

Deno.test("pml check reports a file that cannot be read, and one that is too large", async () => {
  await using ws = await makeWorkspace({
    files: { "large.ts": "/".repeat(2_000), "latin.ts": new Uint8Array([0x2f, 0x2f, 0xe9]) },
  });
  await writeFiles(ws.home, { "config.yaml": "limits:\n  module_bytes: 1024\n" });
  const table: readonly (readonly [string, string])[] = [
    ["none.ts", "FAIL file: there is no such file"],
    [".", "FAIL file: it is not a regular file"],
    ["latin.ts", "FAIL file: it is not UTF-8"],
    ["large.ts", "FAIL file: it has 2000 bytes, and at most 1024 are allowed"],
  ];
  for (const [file, line] of table) {
    const ran = await runPml(ws, ["check", file]);
    assert.deepEqual([ran.code, ran.stdout.split("\n")[1]], [1, line]);
  }
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
  assert.deepEqual(wrong.stdout.split("\n").filter((line) => line.includes("types")), [
    "FAIL types: wrong.ts:7:7: Type 'string' is not assignable to type 'number'.",
    "FAIL types: wrong.ts:8:43: Property 'nope' does not exist on type 'Host'.",
    "FAIL types: wrong.ts:9:19: Parameter 'any' implicitly has an 'any' type.",
  ]);
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
  const table: readonly (readonly [file: string, code: number, line: string])[] = [
    ["forever.ts", 1, "FAIL load: it did not load in time"],
    ["waits.ts", 1, "FAIL load: it did not load in time"],
    ["prints.ts", 0, "warn load: it prints something while it loads"],
    ["reads.ts", 1, 'FAIL load: Cannot read "a.txt": '],
    ["outside.ts", 1, `FAIL load: Cannot read "${ws.outside}": it is outside the workspace`],
  ];
  for (const [file, code, line] of table) {
    const ran = await runPml(ws, ["check", "--no-types", file]);
    assert.equal(ran.code, code, ran.stdout);
    assert.ok(ran.stdout.includes(`\n${line}`), ran.stdout);
    assert.doesNotMatch(ran.stdout + ran.stderr, /loud|secret|canary-/);
    assert.equal(ran.stderr, "");
  }
  await ws.assertCanaries();
  await new ProcWatch(ws.tag).assertNothingLeft();
});
