import assert from "node:assert/strict";
import {
  ledgerOf,
  ledgerScene,
  runCode,
  STUCK,
  textsOf,
  valueOf,
  withoutTypeCheck,
} from "./attacks/code_tools.ts";
import { endWell, type JournalLine, journalOf, ofKind } from "./attacks/oracles.ts";
import { makeScene } from "./attacks/stage.ts";
import { until } from "./kit/wait.ts";

Deno.test("execute_code returns the value of the code, or of its last expression", async () => {
  await using scene = await makeScene();
  const { ws, pml } = scene;
  const cases: readonly (readonly [code: string, value: string])[] = [
    ["return 1 + 1", "2"],
    ["1 + 1", "2"],
    ["const a = 20;\n\na + 1; // the end", "21"],
    [
      "const a: number = 1;\ninterface B { c: string }\n({ a, b: 'é' } as { a: number })",
      '{"a":1,"b":"é"}',
    ],
    ["const f = <T>(x: T): T => x;\nf<string>('x')", "x"],
    ["enum A { B = 5 }\nreturn A.B", "5"],
    ["const a: unknown = 6;\n<number> a", "6"],
    ["namespace N { export const x = 7 }\nN.x", "7"],
    ["namespace N { export const x = 7 }\nnamespace M { export const y = 1 }\nN.x + M.y // 8", "8"],
    ["namespace N { export const x = 7 }\nlet y = N.x", "null"],
    ["[1 / 3 > 0, 0 / 3]", "[true,0]"],
    ["[1n, 725653563933458432n]", "[1,725653563933458432]"],
    ["await Promise.resolve([1, null, undefined])", "[1,null,null]"],
    ["let x = 1", "null"],
    ["", "null"],
    ["'a\\nb'", "a\nb"],
    ["new Date(0)", "1970-01-01T00:00:00.000Z"],
    ["if (true) { return 'early' }\n'late'", "early"],
    ["const args = 5, progress = 2, mcp = 3; args + progress + mcp", "10"],
    ["return { toJSON: () => 7 }", "7"],
    ["args", "{}"],
    ["return typeof this", "undefined"],
  ];
  for (const [code, value] of cases) {
    assert.equal(await valueOf(pml, withoutTypeCheck(code)), value, code);
  }
  await endWell(ws, pml, { calls: 1 });
});

Deno.test("execute_code reports errors with the line and column of the code", async () => {
  await using scene = await ledgerScene();
  const { ws, pml } = scene;
  const cases: readonly (readonly [code: string, told: RegExp])[] = [
    ["const a = 1;\n a b", /^SyntaxError: Expected ';'.* \(code:2:4\)$/],
    [
      "let a;\nlet a;",
      /^SyntaxError: Identifier 'a' has already been declared \(code:2:5\)$/,
    ],
    ["f(\n1,", /^SyntaxError: .*the code ends too early \(code:2:3\)$/],
    ["import x from 'y'; x", /^SyntaxError: 'import', and 'export' cannot .*\(code:1:1\)$/],
    ["const a: number = null;\n\n  a.b", /^TypeError: .*'b'\) \(code:3:5\)$/],
    [
      "function f() {\n  throw new RangeError('boo');\n}\nf()",
      /^RangeError: boo \(code:2:9\)$/,
    ],
    ["throw { message: 'odd' }", /^Error: odd$/],
    ["throw 5", /^Error: 5$/],
    ["throw { status: 404 }", /^Error: \{ status: 404 \}$/],
    [
      "setTimeout(() => {\n throw new Error('late') }, 1); await new Promise(() => {})",
      /^Error: late \(code:2:/,
    ],
    [
      "await mcp.led.nope()",
      /^ToolError UNKNOWN_TOOL: Cannot find the tool "led:nope".*\nFind its name/,
    ],
    ["await mcp.nope.nope()", /^ToolError UNKNOWN_TOOL: Cannot find the tool "nope:nope"/],
    [
      "await mcp.filesystem.read_file({ pth: 1 })",
      /^ToolError BAD_ARGUMENTS: .*"pth" is unknown/,
    ],
    ["await mcp.led.note({ size: 0 / 0 })", /^ToolError BAD_ARGUMENTS: .*"size" is NaN/],
    ["await mcp.led.note('a')", /^ToolError BAD_ARGUMENTS: .*not an object/],
    ["mcp.led({})", /^TypeError: Cannot call mcp\.led: it is a server/],
    ["mcp({})", /^TypeError: Cannot call mcp: /],
    ["mcp.led = 1", /^TypeError: Cannot set mcp\.led/],
    [
      "await mcp.led.note({ size: [725653563933458432] })",
      /^ToolError BAD_ARGUMENTS: .*725653563933458432n/,
    ],
    ["await fetch('http://127.0.0.1:1')", /^TypeError: Cannot use fetch: /],
    ['const fs = require("fs")', /^ReferenceError: require .*\n.*mcp\.server\.tool/],
    ['1;\nimport fs from "fs";\nfs', /^SyntaxError: Cannot use import: .* \(code:2:1\)$/],
    ["```ts\nreturn 1\n```", /^SyntaxError: .*without the fence$/],
    ["const r = 'a'; r.content[0].text", /^TypeError: Cannot read .*\nA call returns /],
    ["JSON.parse({ a: 1 })", /is not valid JSON .*\n.*without JSON\.parse$/],
    ["await led.note({})", /^ReferenceError: .*\nCall .* mcp\.led\.tool\(args\)$/],
    ["absent.note", /^ReferenceError: absent is not defined \(code:1:\d+\)$/],
  ];
  for (const [code, told] of cases) {
    const answer = await runCode(pml, withoutTypeCheck(code));
    assert.equal(answer.result?.isError, true, code);
    assert.match(textsOf(answer)[0] ?? "", told, code);
  }
  await endWell(ws, pml);
});

Deno.test("execute_code refuses a result that is not plain JSON, and names its type", async () => {
  await using scene = await makeScene({ limits: { result_bytes: 100_000 } });
  const { ws, pml } = scene;
  const cases: readonly (readonly [code: string, told: RegExp])[] = [
    ["return () => 1", /OUTPUT_INVALID.*it is a function/],
    ["return { a: { b: () => 1 } }", /OUTPUT_INVALID.*"b" is a function/],
    ["return { a: [1, 0 / 0] }", /OUTPUT_INVALID.*"1" is NaN; /],
    ["1 / 0", /OUTPUT_INVALID.*it is Infinity/],
    ["return { s: Symbol() }", /OUTPUT_INVALID.*"s" is a symbol/],
    ["return { m: new Map() }", /OUTPUT_INVALID.*"m" is a Map; use Object\.fromEntries/],
    ["return { s: new Set() }", /OUTPUT_INVALID.*\[\.\.\.set\]/],
    ["return { p: Promise.resolve(1) }", /OUTPUT_INVALID.*"p" is a Promise; /],
    ["const a = {}; a.a = a; return a", /OUTPUT_INVALID.*refers to itself/],
    ["return mcp", /OUTPUT_INVALID.*function/],
    ["return mcp.led", /OUTPUT_INVALID.*function/],
    ['return JSON.parse(\'{"__proto__":{"a":1}}\')', /OUTPUT_INVALID/],
    ["return { constructor: 1 }", /OUTPUT_INVALID/],
    ["let a = 1; for (let i = 0; i < 5000; i++) a = [a]; return a", /OUTPUT_INVALID/],
    ["return { get a() { throw new Error('gotten') } }", /OUTPUT_INVALID.*gotten/],
    ["return 'x'.repeat(200_000)", /RESULT_TOO_LARGE/],
    ["return Array(60_000).fill(1)", /RESULT_TOO_LARGE/],
  ];
  for (const [code, told] of cases) {
    const answer = await runCode(pml, withoutTypeCheck(code));
    assert.equal(answer.result?.isError, true, code);
    assert.match(textsOf(answer)[0] ?? "", told, code);
  }
  await endWell(ws, pml, { calls: 1 });
});

Deno.test("execute_code calls tools by any name, in parallel and one after the other", async () => {
  await using scene = await ledgerScene();
  const { ws, pml } = scene;
  const code = `
    const both = await Promise.all([mcp.led.echo({ a: 1 }), mcp["led"]["odd-name.2"]()]);
    const text = await mcp["filesystem:read_file"]({ path: "good.txt" });
    const wire = await mcp["led:echo"]({ deep: [{ é: null }] });
    try { await mcp.led.fail() } catch (error) {
      return { both, text, wire, name: error.name, is: error instanceof ToolError,
        message: error.message, result: error.result, tool: error.tool };
    }`;
  assert.deepEqual(JSON.parse(await valueOf(pml, code)), {
    both: [{ given: { a: 1 } }, "odd"],
    text: "good\n",
    wire: { given: { deep: [{ é: null }] } },
    name: "ToolError",
    is: true,
    message: "it broke",
    result: { content: [{ type: "text", text: "it broke" }], isError: true },
    tool: "led:fail",
  });
  const failed = await runCode(pml, "await mcp.led.fail()");
  assert.equal(failed.result?.isError, true);
  assert.match(
    textsOf(failed)[0] ?? "",
    /^ToolError: it broke \(led:fail, code:1:15\)$/,
  );
  const answer = await runCode(pml, "mcp.led.hang(); mcp.led.hang(); return 'done'");
  const [value, said = ""] = textsOf(answer);
  assert.equal(value, "done");
  assert.match(said, /^Cancelled calls .*: 2/m);
  const meta = answer.result?._meta as unknown as Record<string, string>;
  await endWell(ws, pml);
  const lines = await journalOf(ws) as readonly (JournalLine & { readonly run?: string })[];
  const own = lines.filter(({ run, kind }) => kind === "start" && run === meta["pml/run"]);
  assert.deepEqual(own.map(({ via, tool }) => [via, tool]), [
    ["code", "led:hang"],
    ["code", "led:hang"],
  ]);
  const events = ofKind(lines, "event")
    .filter(({ about }) => (about as unknown as { run?: string })?.run === meta["pml/run"]);
  assert.deepEqual(events.map(({ event }) => event), ["code began", "code ended"]);
  const [began, ended] = events.map(({ about }) => about as unknown as Record<string, unknown>);
  assert.match(String(began?.code), /^[0-9a-f]{64}$|^sha256-/);
  assert.deepEqual([ended?.calls, ended?.outcome], [2, "value"]);
  assert.ok(!JSON.stringify(lines).includes("return 'done'"), "the journal has the code");
});

Deno.test("execute_code runs each code in a new child that shares no state with others", async () => {
  await using scene = await makeScene();
  const { ws, pml } = scene;
  const code = `
    const seen = globalThis.left ?? Object.prototype.left ?? "nothing";
    globalThis.left = Object.prototype.left = "something";
    Array.prototype.map = () => "patched";
    JSON.stringify = () => '"patched"';
    return seen;`;
  for (let run = 0; run < 3; run++) {
    assert.match(await valueOf(pml, code), /^nothing$/);
    // The child for the next code starts a quarter of a second later.
    await new Promise((resolve) => setTimeout(resolve, 800));
    assert.equal(await valueOf(pml, "return [1].map((x) => x + 1)"), "[2]");
  }
  await endWell(ws, pml);
});

Deno.test("execute_code returns the output of the code, up to a limit, also of code that failed", async () => {
  await using scene = await makeScene();
  const { ws, pml } = scene;
  const [value, said = ""] = textsOf(
    await runCode(
      pml,
      `console.log("a", { b: [1] }, 2); console.warn("w"); console.error(new Error("e"));
       console.table([1]); console.info("i"); console.debug("d"); 1`,
    ),
  );
  assert.equal(value, "1");
  assert.deepEqual(said.split("\n"), [
    "console:",
    "a { b: [ 1 ] } 2",
    "warn: w",
    "error: Error: e",
    "i",
    "d",
  ]);
  const many = textsOf(
    await runCode(pml, `for (let i = 0; i < 5_000; i++) console.log("x".repeat(100)); 1`),
  )[1] ?? "";
  assert.ok(many.length < 70_000 && many.length > 60_000, `${many.length} characters`);
  assert.match(many, /\(\d{4} more lines /);
  const failed = textsOf(await runCode(pml, `console.log("before"); throw new Error("no")`));
  assert.match(failed.join("\n"), /^Error: no \(code:1:30\)\nconsole:\nbefore$/);
  const late = await runCode(pml, `console.log("before"); await 1; ${STUCK}`, {
    timeout_ms: 2_500,
  });
  assert.equal(late.result?.isError, true);
  assert.match(textsOf(late).join("\n"), /^TIMED_OUT: [^]*longer than 2\.5 s[^]*console:\nbefore/);
  const alone = textsOf(
    await runCode(
      pml,
      `Promise.reject(new Error("e")); await new Promise((r) => setTimeout(r, 5)); 1`,
    ),
  );
  assert.match(alone.join("\n"), /^1\nconsole:\nerror: A promise failed.*Error: e/);
  await endWell(ws, pml);
});

Deno.test("execute_code reports its progress", async () => {
  await using scene = await ledgerScene({ era: "2026-07-28" });
  const { ws, pml } = scene;
  const told = async (code: string) => {
    const before = pml.messages.length;
    const params = {
      name: "execute_code",
      arguments: { code: withoutTypeCheck(code) },
      _meta: { progressToken: 7 },
    };
    await pml.request("tools/call", params);
    return pml.messages.slice(before).filter(({ method }) => method === "notifications/progress")
      .map(({ params }) => params as unknown as Record<string, unknown>);
  };
  const calls = await told("await mcp.led.echo(); await mcp.led.note(); 1");
  assert.deepEqual(
    calls.map(({ progress, message, progressToken }) => [
      progress,
      message,
      progressToken,
    ]),
    [[1, "led:echo", 7], [2, "led:note", 7]],
  );
  const own = await told("progress(1, 3, 'begun'); await mcp.led.echo(); progress(3, 3); 1");
  assert.deepEqual(own.map(({ progress, total, message }) => [progress, total, message]), [
    [1, 3, "begun"],
    [3, 3, undefined],
  ]);
  await endWell(ws, pml);
});

Deno.test("execute_code ends with its child when the client cancels it", async () => {
  await using scene = await ledgerScene({ era: "2025-11-25" });
  const { ws, pml } = scene;
  const { id, answer } = pml.begin("tools/call", {
    name: "execute_code",
    arguments: {
      code: withoutTypeCheck("await mcp.led.hang(); await mcp.led.note({ text: 'late' })"),
    },
  });
  await until(async () => (await ledgerOf(ws)).includes("hang"));
  await pml.notify("notifications/cancelled", { requestId: id });
  await until(async () => (await ledgerOf(ws)).includes("stopped"));
  answer.catch(() => {}); // a cancelled request has no answer
  const spin = pml.begin("tools/call", {
    name: "execute_code",
    arguments: { code: withoutTypeCheck("await mcp.led.note({ text: 'spins' }); for (;;);") },
  });
  await until(async () => (await ledgerOf(ws)).includes("note spins"));
  spin.answer.catch(() => {});
  await pml.notify("notifications/cancelled", { requestId: spin.id });
  assert.equal(await valueOf(pml, "return 1"), "1");
  assert.deepEqual(await ledgerOf(ws), ["hang", "stopped", "note spins"]);
});

Deno.test("execute_code runs nothing where the configuration is broken or not trusted", async () => {
  await using broken = await makeScene({
    pml: { version: 1, permissions: { allow: "*" } } as never,
  });
  const refused = await runCode(broken.pml, "return 1");
  assert.match(textsOf(refused).join(), /CONFIG_INVALID/);
  await using untrusted = await ledgerScene({ trusted: false, capabilities: {} });
  const code = `try { await mcp.led.note() } catch ({ code }) { return code }`;
  assert.equal(await valueOf(untrusted.pml, withoutTypeCheck(code)), "WORKSPACE_UNTRUSTED");
  assert.deepEqual(await ledgerOf(untrusted.ws), []);
});

Deno.test("execute_code reports wrong types before anything runs", async () => {
  await using scene = await ledgerScene();
  const { ws, pml } = scene;
  const code = `await mcp.led.note({ text: "before" });
await mcp.filesystem.read_file({ path: 5 });`;
  const answer = await runCode(pml, code);
  assert.equal(answer.result?.isError, true);
  assert.match(textsOf(answer)[0] ?? "", /^The code did not run: .*\ncode:2: /);
  assert.deepEqual(await ledgerOf(ws), []);
  await endWell(ws, pml, { calls: 1 });
});
