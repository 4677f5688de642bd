/**
 * Rules for all tools of a server that only read, such as `notes:@reads`.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { listOf, objectOf } from "../src/core/json.ts";
import { codeOf, textOf } from "./attacks/oracles.ts";
import { picked, questionOf, read } from "./attacks/questions.ts";
import { makeScene } from "./attacks/stage.ts";
import { runPml } from "./kit/run.ts";
import type { Table } from "./kit/said_server.ts";
import { makeWorkspace } from "./kit/workspace.ts";
import { definitions, filesOf } from "./said_scene.ts";

const NOTES = `export const __meta__ = { name: "notes", version: "1.0.0", tools: {
    list: { permissions: { read: ["."] } },
    count: {},
    lookUp: { permissions: { net: ["api.example.com"] } },
    peek: { permissions: { net: ["other.example.com"] } },
    save: { permissions: { read: ["."], write: ["saved"] } },
    format: { permissions: { run: ["date"] } },
  } };
  export const list = () => "listed";
  export const count = () => "counted";
  export const lookUp = () => "looked up";
  export const peek = () => "peeked";
  export const save = () => "saved";
  export const format = () => "formatted";`;
const PML = {
  version: 1,
  private_mcps: { notes: { type: "deno", path: "./notes.js" } },
  grants: { notes: { net: ["api.example.com"], run: ["date"] } },
} as const;
const FILES = { "notes.js": NOTES };

function rules(permissions: Readonly<Record<string, readonly string[]>>) {
  return { ...PML, permissions };
}

/** Calls tools of the module in order, in a PML that has not loaded it. */
async function codesOf(
  permissions: Readonly<Record<string, readonly string[]>>,
  tools: readonly string[],
): Promise<readonly (string | undefined)[]> {
  await using scene = await makeScene({
    era: "2025-11-25",
    files: FILES,
    pml: rules(permissions),
  });
  const codes = [];
  for (const tool of tools) codes.push(codeOf(await scene.pml.callTool(`notes__${tool}`, {})));
  return codes;
}

const ASKS = "APPROVAL_REQUIRED";
const DENIES = "PERMISSION_DENIED";

Deno.test("an allow rule for the tools that read covers those whose permissions only let them read", async () => {
  const all = ["list", "count", "peek", "lookUp", "save", "format"];
  const codes = await codesOf({ allow: ["notes:@reads"] }, all);
  // Without a grant, `peek` reaches no host.
  assert.deepEqual(codes, [undefined, undefined, undefined, ASKS, ASKS, ASKS]);
});

Deno.test("a deny rule for the tools that read denies them at the first call, and hides them", async () => {
  const permissions = { allow: ["notes:*"], deny: ["notes:@reads"] };
  assert.deepEqual(await codesOf(permissions, ["list", "save"]), [DENIES, undefined]);
  const pml = { ...rules(permissions), gateway: { tools_exposure: "full_proxy" } };
  await using scene = await makeScene({ era: "2025-11-25", files: FILES, pml });
  const { result } = await scene.pml.request("tools/list", {});
  const names = listOf(result?.tools).map((tool) => String(objectOf(tool).name));
  assert.deepEqual(names.filter((name) => name.startsWith("notes__")).sort(), [
    "notes__format",
    "notes__lookUp",
    "notes__save",
  ]);
});

Deno.test("a rule for a tool is narrower than one for the tools that read, and this than one for the server", async () => {
  const narrower = { ask: ["notes:list", "notes:*"], allow: ["notes:@reads"] };
  assert.deepEqual(await codesOf(narrower, ["list", "count", "save"]), [ASKS, undefined, ASKS]);
  const allowed = { ask: ["notes:@reads"], allow: ["notes:count", "notes:*"] };
  assert.deepEqual(await codesOf(allowed, ["list", "count", "save"]), [ASKS, undefined, undefined]);
});

const TABLE: Table = {
  "tools/list": {
    result: {
      tools: [{
        name: "look",
        inputSchema: { type: "object", properties: { path: { type: "string" } } },
        annotations: { readOnlyHint: true },
      }],
    },
  },
  "tools/call": { result: { content: [{ type: "text", text: "looked" }] } },
};

Deno.test("the hint of a server does not make its tools read, for any list of rules", async () => {
  const tables = { own: TABLE };
  const verdict = async (permissions: Readonly<Record<string, readonly string[]>>) => {
    await using scene = await makeScene({
      era: "2025-11-25",
      files: filesOf(tables),
      pml: { version: 1, permissions, mcpServers: definitions(tables) },
    });
    return codeOf(await scene.pml.callTool("own__look", {}));
  };
  assert.equal(await verdict({ allow: ["own:@reads"] }), ASKS);
  assert.equal(await verdict({ allow: ["own:look"], deny: ["own:@reads"] }), undefined);
});

Deno.test("pml why and pml allow show which tools a rule for reads covers, and where it covers none", async () => {
  const tables = { own: TABLE };
  await using ws = await makeWorkspace({
    files: { ...FILES, ...filesOf(tables) },
    pml: { ...rules({ allow: ["notes:@reads", "own:@reads"] }), mcpServers: definitions(tables) },
    trusted: true,
  });
  const json = async (...args: readonly string[]) =>
    JSON.parse((await runPml(ws, [...args, "--json"])).stdout);
  const list = await json("why", "notes:list");
  assert.deepEqual([list.verdict, list.rule], ["runs", "notes:@reads"]);
  assert.deepEqual((await json("why", "notes:save")).verdict, "asks");
  const whole = await json("why", "notes:@reads");
  assert.deepEqual([whole.verdict, whole.covers], ["runs", ["list", "count", "peek"]]);
  assert.deepEqual((await json("why", "own:@reads")).covers, []);
  await writeFile(join(ws.home, "config.yaml"), "permissions: { ask: ['notes:list'] }\n");
  const { tools } = await json("why", "notes:@reads");
  assert.deepEqual([tools.length, tools[0].tool, tools[0].verdict], [1, "list", "asks"]);
  await writeFile(join(ws.home, "config.yaml"), "");
  assert.deepEqual((await json("allow", "notes:@reads")).covers, ["list", "count", "peek"]);
  assert.deepEqual((await json("allow", "own:@reads")).covers, []);
  const { verdict, reading } = await json("why", "own:look");
  assert.deepEqual([verdict, reading.reads], ["asks", true]);
  assert.deepEqual([list.reading.reads, (await json("why", "notes:save")).reading.reads], [
    true,
    false,
  ]);
  assert.match((await runPml(ws, ["why", "own:look"])).stdout, /"own:@reads" in .* not cover/);
  assert.match((await runPml(ws, ["doctor"])).stdout, /"own:@reads" in /);
});

Deno.test("a link that is moved does not make a tool with a path to write a reader", async () => {
  await using scene = await makeScene({
    era: "2025-11-25",
    files: FILES,
    pml: rules({ allow: ["notes:@reads"] }),
  });
  // The link leads outside of the workspace, so the tool has no access to write now.
  await Deno.symlink(scene.ws.home, scene.ws.file("saved"));
  const answer = await scene.pml.callTool("notes__save", {});
  assert.equal(codeOf(answer), ASKS, textOf(answer));
});

Deno.test("a rule for the tools that read covers tools that the module adds later, and no tool that changes", async () => {
  await using scene = await makeScene({
    era: "2025-11-25",
    capabilities: { elicitation: {} },
    files: FILES,
    pml: rules({ allow: ["notes:@reads"] }),
  });
  const codeAfter = async (tool: string) => codeOf(await scene.pml.callTool(`notes__${tool}`, {}));
  assert.deepEqual([await codeAfter("list"), await codeAfter("count")], [undefined, undefined]);
  const later = NOTES
    .replace(
      "count: {},",
      'count: { permissions: { write: ["."] } }, recount: {}, wipe: { permissions: { write: ["."] } },',
    )
    .concat("\nexport const recount = () => 'again'; export const wipe = () => 'wiped';");
  await Deno.writeTextFile(scene.ws.file("notes.js"), later);
  const code = await questionOf(scene.pml, { name: "notes__recount", arguments: {} });
  await read();
  assert.equal(textOf(await code.answer(picked("Yes"))), "again");
  // The answer was about the code, and covered that call. No rule was written.
  assert.equal(await codeAfter("recount"), undefined);
  assert.equal(await codeAfter("list"), undefined);
  for (const tool of ["wipe", "count"]) {
    const call = await questionOf(scene.pml, { name: `notes__${tool}`, arguments: {} });
    await read();
    assert.equal(codeOf(await call.answer(picked("No"))), "APPROVAL_DECLINED");
  }
});
