import assert from "node:assert/strict";
import { join } from "node:path";
import { limitsOf } from "../config/limits.ts";
import type { GroupsOpener } from "../sandbox/reaper.ts";
import type { JsonObject } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { until } from "../../tests/kit/wait.ts";
import { CheckedText } from "./_checked_text.ts";
import { LanguageServer } from "./_language_server.ts";
import type { TypeProblem } from "./checked_code.ts";
import { type CallableTools, TypeChecker, type TypeCheckParts } from "./type_check.ts";
import type { CodeToCheck } from "./checked_code.ts";

const TEXT = { type: "string" };
const READ: ToolDefinition = {
  name: "read_file",
  inputSchema: object({
    path: TEXT,
    mode: { enum: ["text", "bytes"] },
    range: { type: "array", prefixItems: [{ type: "number" }, { type: "number" }], minItems: 2 },
    options: object({ depth: { type: "number" } }),
  }, ["path"]),
  outputSchema: object({ text: TEXT, note: TEXT }, ["text"]),
};
const LIST: ToolDefinition = { name: "list-all", inputSchema: object({ path: TEXT }) };
const IMPORT: ToolDefinition = { name: "import", inputSchema: object({ path: TEXT }) };
const NEVER = new AbortController().signal;

function object(properties: JsonObject, required: readonly string[] = []): JsonObject {
  return { type: "object", properties, required };
}

function codeOf(code: string, signal = NEVER, actor = "local"): CodeToCheck {
  return { code, actor, signal };
}

type Checker = Awaited<ReturnType<typeof checker>>;

/** The options of the scene. */
interface CheckerChanges extends Pick<TypeCheckParts, "checkMs" | "waitMs"> {
  readonly callable?: Partial<CallableTools>;
  readonly groups?: GroupsOpener["groups"];
}

async function checker({ callable, groups: opened, ...changes }: CheckerChanges = {}) {
  const folder = await Deno.makeTempDir({ prefix: "pml-types-" });
  const pids = new Set<number>();
  const groups = {
    mark: "test",
    add: (pid: number) => Promise.resolve(void pids.add(pid)),
    remove: (pid: number) => Promise.resolve(void pids.delete(pid)),
  };
  const limits = { ...limitsOf({}), idleMs: 60_000 };
  const types = new TypeChecker({
    folder: join(folder, "types"),
    processes: { groups: opened ?? (() => Promise.resolve(groups)) },
    policy: { config: { limits } },
    callable: {
      names: () => ["fs", "my-server", "silent"],
      tools: (name) => {
        if (name === "silent") return Promise.reject(new Error("it does not answer"));
        return Promise.resolve(name === "fs" ? [READ, LIST, IMPORT] : undefined);
      },
      isCallable: (name) => Promise.resolve(name === "offered"),
      ...callable,
    },
    checkMs: 60_000,
    waitMs: 60_000,
    ...changes,
  });
  const problems = async (code: string): Promise<readonly TypeProblem[]> => {
    const verdict = await types.check(codeOf(code));
    if (verdict.kind === "unchecked") throw new Error(verdict.why);
    return verdict.kind === "problems" ? verdict.problems : [];
  };
  return {
    ...{ types, folder, pids, problems, limits },
    async [Symbol.asyncDispose]() {
      await types[Symbol.asyncDispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

/** Checks that one checker runs one after the other. The first one starts its process. */
const CHECKS: Readonly<Record<string, (scene: Checker) => Promise<void>>> = {
  "What aborts waits no longer, and the checker goes on": async (scene) => {
    const reason = new Error("gone");
    const controller = new AbortController();
    const work = scene.types.check(codeOf("return mcp", controller.signal));
    controller.abort(reason);
    await assert.rejects(work, reason);
    assert.deepEqual(await scene.problems("return mcp"), []);
  },
  "A wrong tool, a missing and a mistyped argument each give a line and a hint": async (scene) => {
    const signature = /^fs: read_file\(path, mode\?: "text" \| "bytes"/;
    const cases: readonly [string, number, RegExp, RegExp][] = [
      [
        `\nawait mcp.fs.raed_file({});`,
        2,
        /"fs" has no tool "raed_file"/,
        /Did you mean "read_file"/,
      ],
      ["await mcp.fs.zzz({})", 1, /no tool "zzz"/, /There is read_file, list-all, import/],
      ["await mcp.sf.read_file({})", 1, /no server "sf"/, /fs/],
      ["const a = 1;\n\nreturn await mcp.fs.read_file({})", 3, /'path' is missing/, signature],
      ["await mcp.fs.read_file()", 1, /Expected 1 arguments/, signature],
      ["await mcp.fs.read_file({ path: 1 })", 1, /'number' is not assignable/, signature],
      ["const o = { path: 1 };\nawait mcp.fs.read_file(o)", 2, /'number' is not/, signature],
      ["await mcp.fs.read_file({\n path: '',\n mode: 'x' })", 3, /"text" \| "bytes"/, signature],
      [
        "mcp.fs.read_file({ path: '',\n options: { depth: 'x' } })",
        2,
        /'string' is not/,
        signature,
      ],
      [`await mcp["fs"]["list-all"]({ path: 1 })`, 1, /'number' is not assignable/, /list-all/],
      [
        "const { fs } = mcp;\nawait fs.import({ path: 1 })",
        2,
        /'number' is not assignable/,
        /import/,
      ],
      ["(await mcp.fs.read_file({ path: '' })).txt", 1, /Property 'txt'.*'text'/, signature],
      ["const all = ['a'].map((path) => mcp.fs.read_file({ file: path }))", 1, /'path'/, signature],
    ];
    for (const [code, line, says, hint] of cases) {
      const [problem, ...more] = await scene.problems(code);
      assert.deepEqual([problem?.line, more], [line, []], code);
      assert.match(problem?.message ?? "", says, code);
      assert.match(problem?.hint ?? "", hint, code);
    }
    assert.deepEqual(await scene.problems("mcp; return missingName + 1"), [
      { line: 1, message: "Cannot find name 'missingName'." },
    ]);
  },
  "What may be right is no problem": async (scene) => {
    const cases = [
      "return 1 + 1",
      "const all = await Promise.all(['a', 'b'].map((path) => mcp.fs.read_file({ path })));\n" +
      "return all.map(({ text }) => text.length).reduce((a, b) => a + b, 0)",
      "const o = { path: '', mode: 'text', range: [1, 2], more: 1 }; await mcp.fs.read_file(o)",
      "for (const path of new Set(JSON.parse('[]'))) await mcp.fs.read_file({ path })",
      "await mcp.fs.read_file({ path: ['a'].find((one) => one) })",
      "await mcp.fs.read_file({ path: /a/.exec('a')[0] }); const o = {}; o.x = new Date() - 1",
      "const a = []; a.push(1); try { throw 1 } catch (e) { console.log(e.message) } parseInt(5)",
      "if (args.x) throw new ToolError('x'); progress(1, 2); await mcp['my-server'].any.thing({})",
      "await mcp.offered.tool({}); await mcp.silent.tool(1); await mcp[args.name].y(); await mcp['fs:read_file']({}); for (const one of ['a']) mcp[one].z()",
      "await mcp.fs['list-all'](); const { note } = await mcp.fs.read_file({ path: '' }); note.length",
      "// import what is exported\nreturn 'import module require'",
      "function f(x) { return x.y } return f({ y: 1 })",
      // Names that the text writes with escapes.
      String.raw`await mcp.fs["read\x5ffile"]({}); await mcp.fs["list\x2dall"]({})`,
      String
        .raw`let list: (typeof mcp.fs)["list\x2dall"]; const keys: (keyof typeof mcp.fs)[] = []`,
      "const name = `read_${'file'}` as const; await mcp.fs[name]({}); mcp.fs['read_' + 'file']({})",
    ];
    for (const code of cases) assert.deepEqual(await scene.problems(code), [], code);
  },
  "Each check is of its own text alone, also after one that cannot be read": async (scene) => {
    const wrong = "const first = 1;\nawait mcp.fs.read_file({ path: 1 })";
    for (let round = 0; round < 3; round++) {
      assert.deepEqual((await scene.problems(wrong)).map(({ line }) => line), [2]);
      assert.equal((await scene.types.check(codeOf("mcp.fs;\nconst b = {;"))).kind, "unchecked");
      assert.deepEqual(await scene.problems(`await mcp.fs.read_file({ path: "${round}" })`), []);
      // A name of the previous text is no longer declared.
      assert.equal((await scene.problems("mcp; return first")).length, 1);
    }
  },
  "code that TypeScript cannot parse is not checked": async (scene) => {
    const verdict = await scene.types.check(codeOf("mcp.fs;\nconst b = {;"));
    assert.ok(verdict.kind === "unchecked");
    assert.match(verdict.why, /cannot parse code:2/);
    const long = await scene.types.check(codeOf(`//${"x".repeat(300_000)}`));
    assert.ok(long.kind === "unchecked" && /longer than/.test(long.why));
  },
};

Deno.test("one checker checks many texts independently", async (t) => {
  await using scene = await checker();
  for (const [name, check] of Object.entries(CHECKS)) await t.step(name, () => check(scene));
});

Deno.test("the compiler reads only the tools that the code names", () => {
  const tools = Array.from({ length: 1_000 }, (_, at) => ({ ...LIST, name: `tool_${at}` }));
  const used = ["a", "b"].map((name) => ({ name, tools }));
  const { text } = new CheckedText("await mcp.a.tool_7({ path: '' }); mcp.b", {
    serverNames: ["a", "b"],
    usedServers: used,
  });
  assert.deepEqual(new Set(text.match(/tool_\d+/g)), new Set(["tool_7"]));
});

/** Code that names other modules in every form. `@` is replaced by their address. */
const NAMING = [
  `import { secret } from "@"; const n: number = secret;`,
  `} import { secret } from "@"; const n: number = secret; {`,
  `type A = typeof import("@").secret; const a: A = 1; const n: number = a;`,
  `const a = await import("@"); const n: number = a.secret;`,
  `export * from "@"; export { secret } from "@";`,
  `declare module "@" { const a: 1 } const n: number = require("@");`,
  `/// <reference path="@" />\nconst n: number = secret;`,
  `// @deno-types="@"\nimport * as a from "@"; const n: number = a.secret;`,
  String.raw`type A = im\u0070ort("@").secret; const n: number = null as A;`,
  `[...import("@")].map((a) => { const n: number = a.secret })`,
];

Deno.test("the language server reads no file and contacts no host that the code names", async () => {
  await using scene = await checker();
  await Deno.mkdir(scene.folder, { recursive: true });
  const file = join(scene.folder, "secret.ts");
  await Deno.writeTextFile(file, "export const secret: { hunter2: 1 } = null!;");
  await Deno.writeTextFile(join(scene.folder, "secret.json"), `{ "hunter2": 1 }`);
  let asked = 0;
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => {
    asked++;
    return new Response("export const secret: { hunter2: 1 };");
  });
  const { port } = server.addr as Deno.NetAddr;
  const types = join(scene.folder, "types");
  await using language = new LanguageServer(types, {
    mark: "test",
    add: () => Promise.resolve(),
    remove: () => Promise.resolve(),
  });
  const places = [
    file,
    `file://${file}`,
    "../secret.ts",
    "./../secret.json",
    `file://localhost${file}`,
  ]
    .concat([`http://127.0.0.1:${port}/a.ts`, "npm:left-pad", "jsr:@std/assert", "node:fs"]);
  for (const place of places) {
    for (const naming of NAMING) {
      // The compiler may fail on some of these texts.
      const found = await language.check(naming.replaceAll("@", place)).catch(() => []);
      assert.doesNotMatch(JSON.stringify(found), /hunter2/, `${place}: ${naming}`);
    }
  }
  assert.equal(asked, 0);
  // With the file in place, the same text has an error, so the test would detect a read.
  await Deno.mkdir(join(types, "nothing"), { recursive: true });
  const within = join(types, "nothing", file);
  await Deno.mkdir(join(within, ".."), { recursive: true });
  await Deno.copyFile(file, within);
  const [seen] = await language.check(
    `import { secret } from "${file}"; const n: number = secret;`,
  );
  assert.match(seen?.message ?? "", /hunter2/);
});

Deno.test("the text for the compiler contains no word that could load a module", () => {
  for (const naming of NAMING) {
    const { text } = new CheckedText(naming, { serverNames: [], usedServers: [] });
    assert.doesNotMatch(
      text.split("async function () {")[1] ?? "",
      /\b(import|require|module)\b|export \*|\\u0/,
    );
  }
  const { text } = new CheckedText("mcp.fs.import(); mcp.x.export?.()", {
    serverNames: [],
    usedServers: [],
  });
  assert.match(text, /mcp\.fs\.import\(\); mcp\.x\.export/);
});

/** Code whose types keep the compiler busy for minutes. */
const BOMB =
  "mcp; type A<N extends number, R extends 0[] = []> = R['length'] extends N ? R : A<N, [...R, 0]>;" +
  Array.from({ length: 200 }, (_, at) => `type B${at} = A<${900 - at}>; let b${at}: B${at} = 1;`)
    .join("\n");

Deno.test("a check that takes too long ends its process, and the next check starts a new one", async () => {
  await using scene = await checker({ checkMs: 3_000 });
  const verdict = await scene.types.check(codeOf(BOMB));
  assert.ok(verdict.kind === "unchecked", JSON.stringify(verdict));
  assert.match(verdict.why, /over 3 s/);
  await until(() => scene.pids.size === 0);
  await using again = await checker();
  assert.deepEqual(await again.problems("return mcp"), []);
});

Deno.test("code that comes while other code is checked waits a short time, then runs unchecked (GX11)", async () => {
  await using scene = await checker({ waitMs: 1 });
  const bombs = [1, 2, 3].map(() => scene.types.check(codeOf(BOMB, NEVER, "mallory")));
  const busy = { kind: "unchecked", why: "other code is being checked" };
  assert.deepEqual(await Promise.all(bombs.slice(1)), [busy, busy]);
  assert.deepEqual(await scene.types.check(codeOf("mcp.fs.nothing()", NEVER, "ada")), busy);
  // Ends the process and with it the first check.
  await scene.types[Symbol.asyncDispose]();
  assert.equal((await bombs[0])?.kind, "unchecked");
});

Deno.test("each client has at most one request that waits for the checker (GX11)", async () => {
  const order: string[] = [];
  await using scene = await checker();
  const checked = (actor: string, code: string) =>
    scene.types.check(codeOf(`mcp; return "${code}"`, NEVER, actor)).then(() => order.push(code));
  const first = checked("mallory", "m1");
  await until(() => scene.pids.size > 0);
  await Promise.all([
    first,
    ...["m2", "m3", "m4"].map((code) => checked("mallory", code)),
    checked("ada", "a1"),
    checked("grace", "g1"),
  ]);
  assert.deepEqual(order, ["m1", "m2", "a1", "g1", "m3", "m4"]);
});

Deno.test("a server whose tools are listed late delays no check of other code (GX11)", async () => {
  const never = new Promise<undefined>(() => {});
  await using scene = await checker({
    callable: { tools: (name) => name === "silent" ? never : Promise.resolve([READ]) },
  });
  const late = new AbortController();
  const stuck = scene.types.check(codeOf("mcp.silent.x()", late.signal));
  assert.deepEqual(await scene.problems("return mcp.fs"), []);
  late.abort(new Error("gone"));
  await assert.rejects(stuck, /gone/);
  await using quick = await checker({ checkMs: 10, callable: { tools: () => never } });
  const unchecked = await quick.types.check(codeOf("mcp.silent.x()"));
  assert.equal(unchecked?.kind, "unchecked");
  assert.match(JSON.stringify(unchecked), / 10 ms"/);
});

Deno.test("a process that dies is replaced, and an idle process is ended", async () => {
  await using scene = await checker();
  assert.deepEqual(await scene.problems("return mcp"), []);
  const [first = 0] = scene.pids;
  Deno.kill(first, "SIGKILL");
  await until(() => scene.pids.size === 0);
  assert.equal((await scene.problems("mcp.fs.nothing()")).length, 1);
  scene.limits.idleMs = 1;
  assert.deepEqual(await scene.problems("return mcp"), []);
  await until(() => scene.pids.size === 0);
  assert.deepEqual(await scene.problems("return mcp"), []);
});

Deno.test("code that calls no tool starts no process", async () => {
  await using scene = await checker();
  assert.deepEqual(await scene.problems("return 1 + 1"), []);
  assert.equal(scene.pids.size, 0);
});

Deno.test("code is not checked if the process cannot start", async () => {
  await using scene = await checker({ groups: () => Promise.reject(new Error("no groups")) });
  const verdict = await scene.types.check(codeOf("return mcp"));
  assert.equal(verdict?.kind, "unchecked");
  assert.match(JSON.stringify(verdict), /: no groups"/);
});

Deno.test("only a limited number of compiler errors is read", () => {
  const tools = Array.from(
    { length: 1_000 },
    (_, at) => ({ ...LIST, name: `a_tool_with_a_name_${at}` }),
  );
  const text = new CheckedText("mcp.fs.a;let b:1=2;".repeat(8_000), {
    serverNames: ["fs"],
    usedServers: [{ name: "fs", tools }],
  });
  const line = text.text.split("\n").findIndex((one) => one.startsWith("mcp.fs.a"));
  const missing = "Property 'a_tool_with_a_nam_0' does not exist on type '$Server0'.";
  const unfit = "Type '2' is not assignable to type '1'.";
  for (const [message, code, told] of [[missing, 2339, 20], [unfit, 2322, 0]] as const) {
    const read = new Set<number>();
    const found = Array.from({ length: 15_000 }, (_, at) => ({
      ...{ code, line, column: at * 10, related: [] },
      get message() {
        read.add(at);
        return message;
      },
    }));
    assert.equal(text.problemsOf(found).length, told);
    assert.ok(read.size <= 200, `${read.size} were read`);
  }
});
