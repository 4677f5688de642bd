/**
 * `pml why` shows the effect of a call, not only the decision of the rules.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ToolPage, ToolRow } from "../src/control/api.ts";
import { assertGolden } from "./kit/golden.ts";
import { openPage } from "./kit/page.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const CODE = `export const __meta__ = {
  name: "weather",
  version: "1.0.0",
  tools: { today: { description: "Tell the weather", inputSchema: { type: "object" } } },
};
export const today = () => "clear";
`;

function makeScene(): Promise<Workspace> {
  const program = { command: "node", args: ["tell.mjs"] };
  return makeWorkspace({
    files: { "tell.mjs": tinyServer(`"fine"`), "weather.ts": CODE },
    pml: {
      version: 1,
      permissions: { allow: ["*", "off:*"], deny: ["dead:no"] },
      private_mcps: { weather: { type: "deno", path: "./weather.ts" } },
      mcpServers: {
        crm: program,
        keyed: { ...program, env: { TOKEN: "${MISSING_TOKEN}" } },
        dead: { command: "node", args: ["none.mjs"] },
        off: { ...program, disabled: true },
      },
    },
  });
}

/**
 * Returns the effect that `pml why` shows, the decision of the rules, and the code of a call. The other
 * commands that list the tool must show the same effect.
 */
async function effectOf(ws: Workspace, tool: string): Promise<readonly unknown[]> {
  const shown = JSON.parse((await runPml(ws, ["why", tool, "--json"])).stdout);
  const text = await runPml(ws, ["why", tool]);
  assert.ok(text.stdout.startsWith(`${tool}: ${shown.verdict}\n`), text.stdout);
  for (const effect of await otherEffects(ws, tool)) assert.equal(effect, shown.verdict);
  const { stderr } = await runPml(ws, ["call", tool]);
  return [shown.verdict, shown.by_rules, /^error: ([A-Z_]+)/m.exec(stderr)?.[1]];
}

/** Returns the effects of a tool that `pml tools` and `pml search` show; empty if none lists it. */
async function otherEffects(ws: Workspace, id: string): Promise<readonly string[]> {
  const [server = "", tool = ""] = id.split(":");
  const list = JSON.parse((await runPml(ws, ["tools", server, "--json"])).stdout || "{}");
  const search = ["search", tool, "--server", server, "--json"];
  const { hits = [] } = JSON.parse((await runPml(ws, search)).stdout || "{}");
  const tools = (list.servers ?? []).flatMap((one: { tools: unknown[] }) => one.tools);
  const items = [...tools, ...hits].filter((item) => item.id === id);
  if (items.length === 0) return [];
  const page = await runPml(ws, ["tools", id]);
  const lines = (await runPml(ws, ["tools", server])).stdout.split("\n");
  const words = lines.filter((line) => line.trim().split(/ +/)[0] === id)
    .map((line) => line.trim().split(/ +/)[1] ?? "");
  const shown = JSON.parse((await runPml(ws, ["tools", id, "--json"])).stdout);
  const pageWord = /^(runs|asks|denied|fails|paused)\b/m.exec(page.stdout)?.[0] ?? "";
  return [...items.map(({ verdict }) => verdict), shown.verdict, pageWord, ...words];
}

Deno.test("pml why begins with the effect of a call, whatever stops it", async () => {
  await using ws = await makeScene();
  assert.deepEqual(await effectOf(ws, "crm:tell"), ["runs", undefined, undefined]);
  assert.deepEqual(await effectOf(ws, "weather:today"), ["runs", undefined, undefined]);
  assert.deepEqual(await effectOf(ws, "keyed:tell"), ["fails", "runs", "KEY_MISSING"]);
  assert.deepEqual(await effectOf(ws, "dead:tell"), ["fails", "runs", "UPSTREAM_DOWN"]);
  assert.deepEqual(await effectOf(ws, "dead:no"), ["denied", undefined, "PERMISSION_DENIED"]);
  assert.deepEqual(await effectOf(ws, "off:tell"), ["fails", "runs", "UNKNOWN_TOOL"]);
  assert.deepEqual(await effectOf(ws, "crm:none"), ["fails", "runs", "UNKNOWN_TOOL"]);
  await writeFile(join(ws.path, "weather.ts"), CODE.replace("clear", "cloudy"));
  assert.deepEqual(await effectOf(ws, "weather:today"), ["asks", "runs", "APPROVAL_STALE"]);
  await runPml(ws, ["pause"]);
  assert.deepEqual(await effectOf(ws, "crm:tell"), ["paused", "runs", "PAUSED"]);
});

Deno.test("pml why shows that a call fails whose server does not exist", async () => {
  await using ws = await makeScene();
  const { stdout, code } = await runPml(ws, ["why", "nosuch:tell", "--json"]);
  const { verdict, by_rules } = JSON.parse(stdout);
  assert.deepEqual([verdict, by_rules, code], ["fails", "asks", 1]);
});

Deno.test("pml why says that a tool asks whose definition has changed", async () => {
  await using ws = await makeScene();
  assert.deepEqual(await effectOf(ws, "crm:tell"), ["runs", undefined, undefined]);
  const changed = tinyServer(`"fine"`).replace(`name: "tell"`, `name: "tell", title: "Other"`);
  await writeFile(join(ws.path, "tell.mjs"), changed);
  await runPml(ws, ["tools", "crm", "--refresh"]);
  assert.equal((await otherEffects(ws, "crm:tell")).length, 5);
  assert.deepEqual(await effectOf(ws, "crm:tell"), ["asks", "runs", "APPROVAL_STALE"]);
});

/** Returns the rules that the list of tools and the page of a tool in `pml page` show. */
async function rulesOnPage(ws: Workspace): Promise<readonly unknown[]> {
  await using page = await openPage(ws);
  const browser = await page.signIn();
  const at = `workspace=${encodeURIComponent(ws.path)}`;
  const tools = await browser.get<readonly ToolRow[]>(`/api/tools?${at}&server=crm`);
  const tool = await browser.get<ToolPage>(`/api/tool?${at}&id=crm:tell`);
  return [tools[0]?.rule, tool.rule];
}

Deno.test("pml page marks a tool whose definition changed as one that asks", async () => {
  await using ws = await makeScene();
  assert.equal((await runPml(ws, ["call", "crm:tell"])).code, 0);
  assert.deepEqual(await rulesOnPage(ws), ["allow", "allow"]);
  const changed = tinyServer(`"fine"`).replace(`name: "tell"`, `name: "tell", title: "Other"`);
  await writeFile(join(ws.path, "tell.mjs"), changed);
  await runPml(ws, ["tools", "crm", "--refresh"]);
  assert.deepEqual(await rulesOnPage(ws), ["ask", "ask"]);
});

Deno.test("pml approve names that a yes also approves a changed definition, and later calls run", async () => {
  await using ws = await makeScene();
  const call = () => runPml(ws, ["call", "crm:tell"]);
  assert.equal((await call()).code, 0);
  const changed = tinyServer(`"fine"`).replace(`name: "tell"`, `name: "tell", title: "Other"`);
  await writeFile(join(ws.path, "tell.mjs"), changed);
  const waiting = await call();
  assert.match(waiting.stderr, /APPROVAL_STALE/);
  const warning = /"crm:tell" is .*$/m.exec(waiting.stderr)?.[0] ?? "";
  assertGolden("approve/the warning about a changed definition", warning);
  const [{ text }] = JSON.parse((await runPml(ws, ["approve", "--json"])).stdout).calls;
  assertGolden("approve/a changed definition", text.replaceAll(ws.root, "<ROOT>"));
  const { stdout } = await runPmlOnTerminal(ws, ["approve"], {
    typed: [[/y\] approve the change/, "y"]],
  });
  assert.match(stdout, /approves the change/);
  for (let time = 0; time < 2; time++) assert.equal((await call()).code, 0);
});
