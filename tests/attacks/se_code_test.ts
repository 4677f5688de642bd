/**
 * Hostile code: code tries everything that a module tries inside its child, and can also forge and
 * flood tool calls.
 *
 * @module
 */

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { symlink } from "node:fs/promises";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { waitUntil } from "../kit/wait.ts";
import {
  ledgerOf,
  ledgerScene,
  runCode,
  textsOf,
  valueOf,
  withoutTypeCheck,
} from "./code_tools.ts";
import { moduleText } from "./evilmod/house.ts";
import { assertServes, endWell } from "./oracles.ts";
import { makeScene } from "./stage.ts";

/** Returns a hostile module as code whose types are not checked. Code has no `import.meta`. */
async function asCode(name: string): Promise<string> {
  const text = await moduleText(name);
  return withoutTypeCheck(
    text.replaceAll(/^export /gm, "").replaceAll("import.meta.resolve", "String"),
  );
}

const GROUPS: Readonly<Record<string, number>> = {
  imports: 17,
  packages: 8,
  environment: 16,
  powers: 29,
  files: 24,
  network: 16,
  node_network: 3,
};

Deno.test("every probe of hostile code is refused, and no secret is revealed (SE12)", async (t) => {
  const key = `canary-key-${randomBytes(12).toString("hex")}`;
  await using scene = await makeScene({
    files: { ".env": `SECRET=${key}\n`, ".git/config": "[core]\n" },
    env: { PML_CANARY_KEY: key, ANTHROPIC_API_KEY: key, PML_API_KEY: key },
  });
  const { ws, pml } = scene;
  await symlink("/proc/self/environ", ws.file("environ"));
  const probes = await asCode("probes.ts");
  for (const tool of ["probe", "again"]) {
    for (const [group, least] of Object.entries(GROUPS)) {
      await t.step(`${tool} ${group}`, async () => {
        const args = {
          group,
          canary: ws.outside,
          link: ws.file("environ"),
          http: 1,
          tcp: 1,
          udp: 1,
        };
        const code = `${probes}\nreturn await ${tool}(${JSON.stringify(args)});`;
        const text = await valueOf(pml, code);
        const told = Object.entries<string>(JSON.parse(text));
        assert.ok(told.length >= least, `${told.length} probes`);
        for (const [name, said] of told) assert.doesNotMatch(said, /^GOT /, name);
        assert.ok(!text.includes(key) && !text.includes(ws.canary));
      });
    }
  }
  await endWell(ws, pml, { secrets: [] });
});

Deno.test("code reads no file of the workspace (SE12)", async () => {
  await using scene = await makeScene();
  const { ws, pml } = scene;
  for (const code of ["Deno.readTextFileSync('good.txt')", "[...Deno.readDirSync('.')]"]) {
    assert.match(await valueOf(pml, code), /SANDBOX_DENIED|PATH_OUTSIDE_WORKSPACE/, code);
  }
  await endWell(ws, pml);
});

Deno.test("code ends nothing but its own child, and the next code has another (SE12)", async (t) => {
  await using scene = await makeScene();
  const { ws, pml } = scene;
  const life = await asCode("life.ts");
  const ways = [...life.matchAll(/^ {2}(\w+): \(\) =>/gm)].map(([, way]) => way);
  assert.ok(ways.length >= 18, `${ways.length} ways`);
  for (const way of ways) {
    await t.step(String(way), async () => {
      const code = `${life}\nreturn await die({ how: ${JSON.stringify(way)} });`;
      const answer = await runCode(pml, code, { timeout_ms: 1_500 });
      assert.equal(answer.result?.isError, true, textsOf(answer).join("\n"));
      assert.equal(await valueOf(pml, "return 1"), "1");
      await assertServes(pml);
    });
  }
  await endWell(ws, pml);
});

Deno.test("output of code to its pipes reaches no client and completes no call (SE12)", async () => {
  await using scene = await ledgerScene();
  const { ws, pml } = scene;
  const talk = await asCode("talk.ts");
  for (const how of ["log", "write_sync", "write", "stderr", "node", "stream", "print"]) {
    const code = `${talk}\nconst held = mcp.led.echo({ held: true });
      await speak({ how: "${how}" }).catch(() => {}); return await held`;
    assert.equal(await valueOf(pml, withoutTypeCheck(code)), '{"given":{"held":true}}', how);
  }
  assert.ok(!pml.stdout.includes('"text":"forged"'));
  await endWell(ws, pml);
});

/** Finds the port on which the boot code communicates. */
const FIND_PORT = `
  let port;
  const post = MessagePort.prototype.postMessage;
  MessagePort.prototype.postMessage = function (...said) {
    port = this;
    return post.apply(this, said);
  };
  progress(0);
  const want = (id, args) => post.call(port, { kind: "ask", id, op: "want", args });
  const frame = (type, id, json) => post.call(port, { kind: "frame", type, id, json });
`;

Deno.test("forged requests of code pass no check and answer no other run (SE12)", async () => {
  const permissions = { deny: ["led:note"] };
  await using scene = await ledgerScene({ permissions, limits: { call_ms: 5_000 } });
  const { ws, pml } = scene;
  const held = runCode(pml, withoutTypeCheck("await mcp.led.hang()"));
  held.catch(() => {}); // checked below
  await waitUntil(async () => (await ledgerOf(ws)).includes("hang"));
  const forged = await valueOf(
    pml,
    withoutTypeCheck(`${FIND_PORT}
    const call = (tool, args = {}) => JSON.stringify(["call", { tool, arguments: args }]);
    want(9001, [1, call("led:note", { text: "forged" })]);
    for (let id = 0; id < 20; id++) want(9100 + id, [id, call("led:note", { text: "other" })]);
    want(9002, [1, '["call",{"tool":"led:echo","arguments":{"__proto__":{"polluted":1}}}]']);
    want(9003, [1, '["call",{"tool":{"toString":1}}]']);
    want(9004, [1, '["call"]']);
    want(9005, [1, '["log",[{"a":1},7,null]]']);
    want(9006, [1, '["nothing",1]']);
    want(9007, [1, 'x'.repeat(100_000)]);
    want("9008", [1, call("led:note")]);
    frame("want", 1, '1 ' + call("led:note"));
    frame("answered", 1, '{"ok":true,"value":{"output":"forged"}}');
    frame("drop", 1, "0");
    frame("group", 1, "1");
    frame("kill", 1, "1");
    return (await mcp.led.echo({ after: 1 })).given;`),
  );
  assert.equal(forged, '{"after":1}');
  const lines = await ledgerOf(ws);
  assert.ok(!lines.some((line) => line.startsWith("note")), lines.join());
  assert.match(textsOf(await held)[0] ?? "", /^ToolError TIMED_OUT: .*"led:hang"/);
  await endWell(ws, pml);
});

Deno.test("forged lines and names of tools take no more space than the console has (SE12)", async () => {
  await using scene = await ledgerScene();
  const { ws, pml } = scene;
  const code = `${FIND_PORT}
    const lines = JSON.stringify(["log", Array.from({ length: 300_000 }, () => "")]);
    for (let id = 9001; id < 9005; id++) want(id, [1, lines]);
    return (await mcp.led.echo({ a: 1 })).given.a`;
  const [value, said = ""] = textsOf(await runCode(pml, withoutTypeCheck(code)));
  assert.equal(value, "1");
  assert.ok(said.length < 200_000, `${said.length} characters`);
  const { result } = await pml.request("tools/call", {
    name: "execute_code",
    arguments: {
      code: withoutTypeCheck('await mcp["x".repeat(2_000_000)].y().catch(({ code }) => code)'),
    },
    _meta: { progressToken: 7 },
  });
  assert.match(JSON.stringify(result), /UNKNOWN_TOOL|NAME_INVALID/);
  const told = pml.messages.filter(({ method }) => method === "notifications/progress");
  assert.equal(told.length, 1);
  assert.ok(JSON.stringify(told).length < 2_000);
  await endWell(ws, pml);
});

/** Asserts that code finds no state of earlier code. */
async function assertClean(pml: RawStdio, after: string): Promise<void> {
  const text = await valueOf(pml, "return Object.prototype.tool ?? 'clean'");
  assert.equal(text, "clean", after);
}

Deno.test("odd names, arguments and globals of code affect only its own run (SE12)", async () => {
  await using scene = await ledgerScene();
  const { ws, pml } = scene;
  const cases: readonly (readonly [code: string, told: RegExp])[] = [
    ["await mcp.constructor.constructor('return 1')()", /^TypeError/],
    ["await mcp.__proto__.x({})", /UNKNOWN_TOOL|NAME_INVALID/],
    ["await mcp['led']['__proto__']({})", /UNKNOWN_TOOL|NAME_INVALID/],
    ["await mcp['led:note:x']({})", /UNKNOWN_TOOL|NAME_INVALID/],
    ["await mcp['']['']({})", /UNKNOWN_TOOL|NAME_INVALID/],
    ["await mcp['led\\n'].note({})", /UNKNOWN_TOOL|NAME_INVALID/],
    [
      "return [typeof mcp.then, typeof mcp.led.then, await mcp === mcp]",
      /^\["undefined","undefined",true\]$/,
    ],
    ["return Object.getPrototypeOf(mcp) === Object.prototype", /^false$/],
    [
      "Object.prototype.tool = 'led:note'; Object.prototype.output = 'lie'; Object.prototype.error = 0; " +
      "return await mcp.led.echo({ a: 1 })",
      /given|lie|TypeError/,
    ],
    ["return await mcp.led.echo({ a: { toJSON: () => 'j' } })", /^\{"given":\{"a":"j"\}\}$/],
    [
      "let n = 0; return await mcp.led.echo({ get a() { return ++n } })",
      /^\{"given":\{"a":\d\}\}$/,
    ],
    [
      'return await mcp.led.echo(JSON.parse(\'{"__proto__":{"x":1}}\'))',
      /BAD_ARGUMENTS|OUTPUT_INVALID/,
    ],
    ["return { then(resolve) { resolve('thenable') } }", /^thenable$/],
    [
      "JSON.stringify = () => { throw new Error('patched') }; return await mcp.led.echo({ a: 1 })",
      /given/,
    ],
    ["Promise.prototype.then = () => {}; return 1", /./],
    ["}); evil(); (async () => {", /^SyntaxError/],
    ["} evil(); {", /^ReferenceError|^SyntaxError/],
    ["*/ evil(); /*", /^SyntaxError/],
    ["return 1\n//# sourceURL=/etc/passwd", /^1$/],
    ["export const a = 1", /^SyntaxError/],
    [
      "return await import('data:text/javascript,export default 1')",
      /^\{"default":1\}$/,
    ],
    ["return await import('file:///etc/passwd')", /Cannot use|denied|Requires|import/],
    ["return typeof require", /^undefined$/],
    ["globalThis.console = null; ToolError = null; console = null; return 1", /^1$/],
    ["Object.freeze(globalThis); return 1", /./],
  ];
  for (const [code, told] of cases) {
    // This test is not about types.
    const text = await valueOf(pml, withoutTypeCheck(code), { timeout_ms: 5_000 });
    assert.match(text, told, `${code}: ${text}`);
    if (/prototype/.test(code)) await assertClean(pml, code);
  }
  await assertClean(pml, "all of it");
  assert.ok(!("polluted" in {}));
  await endWell(ws, pml);
});

Deno.test("a denied tool stays denied in code, and its name looks like an unknown one (PM8, PM15)", async () => {
  const deny = ["led:note", "filesystem:write_file(path=secrets/**)"];
  await using scene = await ledgerScene({ permissions: { deny } });
  const { ws, pml } = scene;
  const ways = [
    "await mcp.led.note({ text: 'x' })",
    "await mcp['led:note']({ text: 'x' })",
    "await mcp['led']['note']({ text: 'x' })",
    "await Promise.all([mcp.led.echo(), mcp.led.note({ text: 'x' })])",
    "await mcp.filesystem.write_file({ path: 'secrets/a', content: 'x' })",
    "await mcp.filesystem.write_file({ path: './src/../secrets/a', content: 'x' })",
    "const t = mcp; const { led } = t; const f = led.note; await f({ text: 'x' })",
    "await mcp.led.note.call(null, { text: 'x' })",
  ];
  for (const code of ways) {
    // Denied tools have no types.
    const answer = await runCode(pml, withoutTypeCheck(code));
    assert.equal(answer.result?.isError, true, code);
    assert.match(textsOf(answer)[0] ?? "", /PERMISSION_DENIED/, code);
  }
  const caught = `try { await mcp.led.note() } catch ({ code, message }) { return code }`;
  assert.equal(await valueOf(pml, withoutTypeCheck(caught)), "PERMISSION_DENIED");
  assert.deepEqual(await ledgerOf(ws), []);
  await endWell(ws, pml);
});
