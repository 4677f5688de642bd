import assert from "node:assert/strict";
import { capabilityModule } from "./_capability_module.ts";
import { integrityOf } from "../core/hash.ts";

/** Imports the module of a capability. */
async function loaded(fqdn: string, content: object): Promise<Record<string, unknown>> {
  const bytes = new TextEncoder().encode(JSON.stringify(content));
  const tools = [{ name: fqdn.split(":")[1] ?? "", inputSchema: { type: "object" } }];
  const manifest = { fqdn, version: "1.0.0", integrity: integrityOf(bytes), tools };
  const url = URL.createObjectURL(
    new Blob([capabilityModule(bytes, manifest).slice()], { type: "application/typescript" }),
  );
  try {
    return await import(url);
  } finally {
    URL.revokeObjectURL(url);
  }
}

type Run = (args?: object, tools?: object) => Promise<unknown>;

async function ran(code: string, ...given: readonly object[]): Promise<unknown> {
  const { default: run } = await loaded("my:do", { kind: "code", code });
  return await (run as Run)(...given);
}

const TOOLS = {
  a: {
    b: (args: object) => Promise.resolve({ got: args }),
    fails: () => Promise.reject(Object.assign(new Error("no"), { name: "ToolError" })),
  },
};

Deno.test("an imported capability runs its code with its arguments and tools", async () => {
  assert.deepEqual(await ran("return await mcp.a.b({ x: args.x });", { x: 1 }, TOOLS), {
    got: { x: 1 },
  });
  assert.deepEqual(await ran('const all = await mcp["a:b"]({});\nall', {}, TOOLS), { got: {} });
  const typed = "const n: number = args.n as number;\nprogress(1);\nreturn n + 1;";
  assert.equal(await ran(typed, { n: 1 }, TOOLS), 2);
  const caught = "try { await mcp.a.fails() } catch (e) { return e instanceof ToolError }";
  assert.equal(await ran(caught, {}, TOOLS), true);
  await assert.rejects(ran("return 1;"), /the tools, is missing/);
});

Deno.test("no text of a capability runs when its module is loaded", async () => {
  const trick = "globalThis.pmlTrick = true;";
  for (
    const code of [`}; ${trick} async () => {`, `*/ ${trick} /*`, `"); ${trick} ("`, "`${" + trick]
  ) {
    await loaded("my:do", { kind: "code", code, __proto__: null });
    await ran(code, {}, TOOLS).catch(() => {}); // most texts are not valid code
  }
  await loaded("my:do", { kind: "code", code: `\u2028${trick}` });
  assert.equal(Object.hasOwn(globalThis, "pmlTrick"), false);
});

Deno.test("an imported capability is exported under its name even if the name is not an identifier", async () => {
  for (const name of ["read_json", "read-json", "a.b", "default", "class"]) {
    const { __meta__: meta, ...exports } = await loaded(`my:${name}`, { kind: "code", code: "1" });
    assert.deepEqual(Object.keys(exports).sort(), [...new Set([name, "default"])].sort());
    assert.deepEqual(Object.keys((meta as { tools: object }).tools), [name]);
  }
  // A module with an export `then` would be taken for a promise.
  const exports = await loaded("my:then", { kind: "code", code: "1" });
  assert.deepEqual(Object.keys(exports).sort(), ["__meta__", "default"]);
});

Deno.test("an imported plan calls its tasks in order with the outputs of earlier tasks", async () => {
  const plan = {
    tasks: [
      {
        id: "each",
        tool: "a:b",
        for_each: { $ref: "first#/got/list" },
        arguments: { n: { $ref: "$item" }, as: { $literal: { $ref: "x" } } },
      },
      { id: "first", tool: "a:b", arguments: { list: { $ref: "$params#/list" } } },
      { id: "never", tool: "a:none", when: false, arguments: {} },
      { id: "after", tool: "a:none", depends_on: ["never"], arguments: {} },
    ],
  };
  const { default: run } = await loaded("my:do", { kind: "plan", plan });
  assert.deepEqual(await (run as Run)({ list: [1, 2] }, TOOLS), {
    each: [{ got: { n: 1, as: { $ref: "x" } } }, { got: { n: 2, as: { $ref: "x" } } }],
    after: null,
  });
  const failing = { tasks: [{ id: "x", tool: "a:fails" }, { id: "y", tool: "no:tool" }] };
  const { default: fails } = await loaded("my:do", { kind: "plan", plan: failing });
  await assert.rejects((fails as Run)({}, TOOLS), { name: "ToolError" });
  await assert.rejects((fails as Run)({}), /the tools, is missing/);
});
