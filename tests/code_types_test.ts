import assert from "node:assert/strict";
import { ledgerOf, ledgerScene, runCode, textsOf, valueOf } from "./attacks/code_tools.ts";
import { endWell, textOf } from "./attacks/oracles.ts";
import { FILES_ALLOWED, makeScene } from "./attacks/stage.ts";
import { until } from "./kit/wait.ts";

const WRONG = "The code did not run: it has type errors";

Deno.test("execute_code reports wrong types with the line, and runs nothing", async () => {
  await using scene = await ledgerScene({ era: "2026-07-28" });
  const { ws, pml } = scene;
  const first = 'await mcp.led.note({ text: "first" });\n';
  const cases: readonly (readonly [code: string, line: RegExp, hint: RegExp])[] = [
    [
      `${first}await mcp.led.nota({ text: "x" });`,
      /code:2: .*"led" has no tool "nota"/,
      /"note"/,
    ],
    [`${first}await mcp.ledd.note({});`, /code:2: There is no server "ledd"/, /led/],
    [
      `${first}\nawait mcp.filesystem.read_file({});`,
      /code:3: .*'path' is missing/,
      /read_file\(path/,
    ],
    [
      `${first}await mcp.led.note({ text: 1 });`,
      /code:2: .*'number' is not .*'string'/,
      /note\(text\?\)/,
    ],
  ];
  for (const [code, line, hint] of cases) {
    const answer = await runCode(pml, code);
    const [said = ""] = textsOf(answer);
    const lines = said.split("\n");
    assert.deepEqual([answer.result?.isError, lines[0], lines.length], [true, WRONG, 3], said);
    assert.match(lines[1] ?? "", line);
    assert.match(lines[2] ?? "", hint);
  }
  assert.deepEqual(await ledgerOf(ws), []);
  const good = textsOf(await runCode(pml, `(await mcp.led.note({ text: "x" })).line.length`));
  assert.deepEqual(good, ["6"]);
  await endWell(ws, pml, { calls: 2 });
});

Deno.test("the type checker recognizes each global of the sandbox", async () => {
  await using scene = await ledgerScene();
  const { pml } = scene;
  const own = "Object.getOwnPropertyNames(globalThis).filter((name) => /^[\\w$]+$/.test(name))";
  const names: readonly string[] = JSON.parse(await valueOf(pml, `return ${own}`));
  assert.ok(names.includes("setTimeout") && names.length > 100, names.join());
  // The unknown name shows that unknown names are reported.
  const looks = [...names, "nowhere"].map((name) => `typeof ${name};`).join("\n");
  const answer = textsOf(await runCode(pml, `mcp;${looks}`))[0] ?? "";
  const unknown = answer.match(/Cannot find name '[^']+'/g);
  assert.deepEqual(unknown, ["Cannot find name 'nowhere'"], answer);
});

Deno.test("types that keep the compiler busy do not delay other code (GX11)", async () => {
  await using scene = await ledgerScene();
  const { pml } = scene;
  const bomb = "type A<N extends number, R extends 0[] = []> = " +
    "R['length'] extends N ? R : A<N, [...R, 0]>;" +
    Array.from({ length: 200 }, (_, at) => `type B${at} = A<${900 - at}>; let b${at}: B${at} = 1;`)
      .join("\n");
  const done: string[] = [];
  const bombs = [1, 2, 3].map((at) =>
    runCode(pml, `mcp; ${bomb} return ${at}`).then(() => done.push(`bomb ${at}`))
  );
  const answer = await runCode(pml, "return (await mcp.led.note({ text: 'a' })).line");
  const [value, types = ""] = textsOf(answer);
  assert.equal(value, "note a");
  assert.match(types, /^types: unchecked \(/);
  assert.ok(!done.includes("bomb 1"), done.join());
  await Promise.all(bombs);
});

Deno.test("code runs where its types cannot be checked, and the answer reports it", async () => {
  await using scene = await ledgerScene();
  const { ws, pml } = scene;
  // A file in the place of the checker's folder, so that the checker cannot start.
  await Deno.writeTextFile(`${ws.home}/types`, "");
  const [value, said] = textsOf(
    await runCode(pml, "return (await mcp.led.note({ text: 'a' })).line"),
  );
  assert.equal(value, "note a");
  assert.match(said ?? "", /^types: unchecked \(.*\)$/);
  await Deno.remove(`${ws.home}/types`);
  assert.match(textsOf(await runCode(pml, "mcp.led.nota()"))[0] ?? "", /no tool "nota"/);
  const own = await runCode(pml, "await mcp.led.note({ text: 'b' });\nconst o = { a: 1,\n b: };");
  assert.match(textsOf(own)[0] ?? "", /^SyntaxError: .*code:3:/);
  assert.deepEqual(await ledgerOf(ws), ["note a"]);
  await endWell(ws, pml);
});

Deno.test("code that names files and hosts learns nothing from the check", async () => {
  await using scene = await ledgerScene({ files: { "secret.ts": "export const hunter2: 1 = 1;" } });
  const { ws, pml } = scene;
  for (const place of [ws.file("secret.ts"), `file://${ws.file("secret.ts")}`, "npm:left-pad"]) {
    for (
      const code of [
        `mcp; type A = typeof import("${place}"); const a: A = 1; return a`,
        `mcp; const a = await import("${place}"); const b: string = a; return 1`,
        `} import * as a from "${place}"; mcp.led.note({ text: a }); {`,
      ]
    ) {
      assert.doesNotMatch(textsOf(await runCode(pml, code)).join("\n"), /hunter2/, code);
    }
  }
  await endWell(ws, pml);
});

Deno.test("the type checker ends when it is idle, and with PML", async () => {
  await using scene = await ledgerScene({ limits: { idle_ms: 1_000 } });
  const { ws, pml } = scene;
  const checkers = () => childrenNamed("lsp", ws.tag);
  assert.equal(await valueOf(pml, "return 1 + 1"), "2");
  assert.equal(checkers(), 0, "code without calls needs none");
  // On a slow machine the run may take longer than the checker may be idle.
  const noted = async (text: string) => {
    await Promise.all([
      valueOf(pml, `await mcp.led.note({ text: '${text}' })`),
      until(() => checkers() === 1),
    ]);
  };
  await noted("a");
  await until(() => checkers() === 0);
  await noted("b");
  await endWell(ws, pml, { calls: 3 });
  await until(() => checkers() === 0);
});

/** Counts the processes of a workspace that have an argument. */
function childrenNamed(argument: string, tag: string): number {
  return [...Deno.readDirSync("/proc")].filter(({ name }) => {
    try {
      const args = Deno.readTextFileSync(`/proc/${name}/cmdline`).split("\0");
      return args[1] === argument && Deno.readLinkSync(`/proc/${name}/cwd`).includes(tag);
    } catch {
      return false; // no process, or gone
    }
  }).length;
}

Deno.test("schema returns declarations, and search reports when code pays", async () => {
  await using scene = await ledgerScene();
  const { pml, ws } = scene;
  const said = async (name: string, args: Record<string, unknown>) =>
    textOf(await pml.callTool(name, args));
  const tools = ["filesystem:read_file", "led:note", "led:odd-name.2", "led:nothing"];
  const text = await said("schema", { tools, as: "typescript" });
  assert.match(text, /^\/\/ For execute_code.*\ndeclare const mcp: \{\n {2}filesystem: \{\n/);
  assert.match(text, /read_file\(args: \{ .*path: string; .*head\?: number/);
  assert.match(text, /\n {2}led: \{\n {4}note\(args\?: \{ text\?: string \}\): Promise<any>;\n/);
  assert.match(text, /"odd-name\.2"\(args\?:/);
  assert.match(text, /\n\/\/ Cannot find the tool "led:nothing"/);
  const none = await pml.callTool("schema", { tools: ["x:y"], as: "typescript" });
  assert.equal(none.result?.isError, true);
  assert.ok(Array.isArray(JSON.parse(await said("schema", { tools }))));
  const hint = /^For several calls: `execute_code`/m;
  assert.match(await said("search", { queries: ["read a file", "write a file"] }), hint);
  assert.doesNotMatch(await said("search", { query: "read a file" }), hint);
  await endWell(ws, pml);
});

Deno.test("search does not mention code where a client cannot run any", async () => {
  const gateway = { meta_tools: ["search", "call"] };
  await using scene = await makeScene({ pml: { ...FILES_ALLOWED, gateway } });
  const queries = ["read a file", "write a file"];
  const answer = textOf(await scene.pml.callTool("search", { queries }));
  assert.match(answer, /filesystem:read_file/);
  assert.doesNotMatch(answer, /execute_code/);
});
