import assert from "node:assert/strict";
import { makeWorkspace } from "../../tests/kit/workspace.ts";
import { PassedCapabilities } from "./passed_capabilities.ts";

function serverOf(name: string, definition: unknown = {}) {
  return { name, definition, workspace: "/w" };
}

Deno.test("declarations are those of the last start, for one definition in one workspace", async () => {
  await using ws = await makeWorkspace();
  const declarations = new PassedCapabilities(ws.home);
  const [a, other] = [serverOf("a"), serverOf("a", { command: "other" })];
  declarations.note(a, {
    experimental: { x: 1 },
    extensions: { "a/b": {}, "a/pml": {} },
    tools: {},
  });
  const expected = { experimental: { x: 1 }, extensions: { "a/b": {} } };
  assert.deepEqual(new PassedCapabilities(ws.home).of([a, serverOf("b")]), expected);
  assert.deepEqual(declarations.of([other, { ...a, workspace: "/v" }]), {});
  declarations.note(a, { extensions: { "io.modelcontextprotocol/tasks": {} } });
  assert.deepEqual(declarations.of([a]), {});
});

Deno.test("a name that servers declare differently is declared for none", async () => {
  await using ws = await makeWorkspace();
  const declarations = new PassedCapabilities(ws.home);
  const [a, b] = [serverOf("a"), serverOf("b")];
  declarations.note(a, { experimental: { x: 1, y: { z: [1] } } });
  declarations.note(b, { experimental: { x: 2, y: { z: [1] } } });
  assert.deepEqual(declarations.of([a, b]), { experimental: { y: { z: [1] } } });
});

Deno.test("long declarations are not kept", async () => {
  await using ws = await makeWorkspace();
  const declarations = new PassedCapabilities(ws.home);
  const a = serverOf("a");
  declarations.note(a, { experimental: { x: 1 } });
  declarations.note(a, { experimental: { x: "y".repeat(20_000) } });
  assert.deepEqual(declarations.of([a]), {});
});

Deno.test("an empty declaration writes no file", async () => {
  await using ws = await makeWorkspace();
  new PassedCapabilities(ws.home).note(serverOf("a"), { experimental: {}, extensions: {} });
  assert.deepEqual((await Array.fromAsync(Deno.readDir(ws.home))).map(({ name }) => name), []);
});
