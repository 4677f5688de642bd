/**
 * The output of `schema` and `search` next to the schemas of tools: errors, and whether a tool
 * reads, writes or destroys, and who claims it.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { JsonObject } from "../src/core/json.ts";
import { textOf } from "./attacks/oracles.ts";
import { makeScene } from "./attacks/stage.ts";
import { FakeRegistry, manifestEntry } from "./kit/fake_registry.ts";
import { runPml } from "./kit/run.ts";
import type { Table } from "./kit/said_server.ts";
import { makeWorkspace } from "./kit/workspace.ts";
import { definitions, filesOf } from "./said_scene.ts";

const ERRORS = {
  NO_SUCH_CITY: "Nobody knows the city",
  TOO_FAR: { type: "object", properties: { days: { type: "integer" } } },
};
const inputSchema = { type: "object" };

Deno.test("schema returns the errors of a tool, of a module and of a server", async () => {
  const table: Table = {
    "tools/list": { result: { tools: [{ name: "tell", inputSchema, errors: ERRORS }] } },
  };
  const meta = { name: "oracle", tools: { tell: { errors: ERRORS }, plain: {} } };
  await using scene = await makeScene({
    era: "2025-11-25",
    files: {
      ...filesOf({ said: table }),
      "oracle.js": `export const __meta__ = ${JSON.stringify(meta)};
          export function tell() {}
          export function plain() {}`,
    },
    pml: {
      mcpServers: definitions({ said: table }),
      private_mcps: { oracle: { type: "deno", path: "oracle.js" } },
    },
  });
  const tools = ["oracle:tell", "said:tell", "oracle:plain"];
  const shown = JSON.parse(textOf(await scene.pml.callTool("schema", { tools })));
  const errors = shown.map((one: { readonly errors?: unknown }) => one.errors);
  assert.deepEqual(errors, [ERRORS, ERRORS, undefined]);
  assert.equal((await scene.pml.close()).code, 0);
});

/**
 * Tools by their claims, and the mark that `search` shows; `says` where only the server claims it.
 */
const CLAIMS: Readonly<
  Record<string, readonly [annotations: JsonObject | undefined, mark: string]>
> = {
  looks: [{ readOnlyHint: true }, ""],
  makes: [{ readOnlyHint: false, destructiveHint: false }, ""],
  wipes: [{ destructiveHint: true }, "says destructive"],
  both: [{ readOnlyHint: true, destructiveHint: true }, "says destructive"],
  silent: [undefined, ""],
  // None of these values is a valid claim.
  odd: [{ readOnlyHint: "true", destructiveHint: 1, title: "read" }, ""],
};
const claiming: readonly JsonObject[] = Object.entries(CLAIMS).map(([name, [annotations]]) => ({
  name,
  description: "Stamp a letter",
  inputSchema,
  ...(annotations === undefined ? {} : { annotations }),
}));
const DESTROYS = "says destructive";
/** Tools of a module by their declared permissions, and the mark of each. */
const ASKING: Readonly<Record<string, readonly [said: object, mark: string]>> = {
  reads: [{ permissions: { read: ["."] } }, ""],
  // Without the permission the tool cannot do it, whatever it claims.
  boasts: [{ annotations: { destructiveHint: true } }, ""],
  wipes: [{ permissions: { write: ["."] }, annotations: { destructiveHint: true } }, DESTROYS],
};
const stamp = {
  name: "stamp",
  tools: Object.fromEntries(
    Object.entries(ASKING).map(([name, [said]]) => [
      name,
      { description: "Stamp a letter", ...said },
    ]),
  ),
};
const STAMP = `export const __meta__ = ${JSON.stringify(stamp)};
  ${Object.keys(ASKING).map((name) => `export function ${name}() {}`).join("\n")}`;

/** Returns the marks after that of the question, for each tool in an answer of `search`. */
function marksIn(answer: string, server: string): Readonly<Record<string, string>> {
  const line = new RegExp(`^${server}:(\\w+)\\(.*\\[asks(?:, not installed)?(?:, (.*))?\\]$`, "gm");
  return Object.fromEntries([...answer.matchAll(line)].map(([, tool, mark = ""]) => [tool, mark]));
}

function expected(of: Readonly<Record<string, readonly [unknown, string]>>) {
  return Object.fromEntries(Object.entries(of).map(([name, [, mark]]) => [name, mark]));
}

Deno.test("search marks tools that destroy, and claims of the server", async () => {
  const table: Table = { "tools/list": { result: { tools: claiming } } };
  await using registry = await FakeRegistry.open([
    manifestEntry("far", { type: "http", url: "https://far.example.com/mcp", tools: claiming }),
  ]);
  await using scene = await makeScene({
    era: "2026-07-28",
    env: { PML_REGISTRIES: registry.url },
    files: { ...filesOf({ said: table }), "stamp.js": STAMP },
    pml: {
      permissions: { allow: ["filesystem:*"] },
      mcpServers: definitions({ said: table }),
      private_mcps: { stamp: { type: "deno", path: "stamp.js" } },
    },
  });
  const { pml } = scene;
  const found = async (server: string) =>
    textOf(await pml.callTool("search", { query: "stamp a letter", server, limit: 20 }));
  assert.deepEqual(marksIn(await found("said"), "said"), expected(CLAIMS));
  assert.deepEqual(marksIn(await found("far"), "far"), expected(CLAIMS));
  assert.deepEqual(marksIn(await found("stamp"), "stamp"), expected(ASKING));
  const files = textOf(
    await pml.callTool("search", { queries: ["read a file", "write a file"] }),
  );
  assert.match(files, /^filesystem:read_text_file\(.*\)$/m);
  assert.match(files, /^filesystem:write_file\(.*\) \[destructive\]$/m);
  // A claim allows nothing to run.
  const { result } = await pml.callTool("said__looks", {});
  assert.equal(result?.structuredContent?.error?.code, "APPROVAL_REQUIRED");
  assert.equal((await pml.close()).code, 0);
});

Deno.test("invalid errors of a tool are reported with file, key, found and wanted, and pml check accepts valid ones", async () => {
  const module = (errors: unknown) =>
    `export const __meta__ = ${
      JSON.stringify({ name: "m", description: "M", tools: { a: { description: "A", errors } } })
    };\nexport function a() {}`;
  await using ws = await makeWorkspace({
    files: { "m.js": module({ NO: 7 }), "good.js": module(ERRORS) },
    pml: { private_mcps: { m: { type: "deno", path: "m.js" } } },
  });
  const refused = await runPml(ws, ["call", "m:a"]);
  assert.match(refused.stderr, /m\.js.*__meta__\.tools\.a\.errors is .*NO.*7.*wanted an object of/);
  const checked = await runPml(ws, ["check", "good.js"]);
  assert.match(checked.stdout, /0 failed, 0 to look at/, checked.stdout);
});
