/**
 * `pml capability` on a terminal and in scripts.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { called, capabilityScene, PARIS, WEATHER } from "./capability_scene.ts";
import { assertGolden } from "./kit/golden.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { until } from "./kit/wait.ts";

const SAVE = [
  "capability",
  "save",
  "my:weather",
  "--code",
  "paris.ts",
  "--parameter",
  "city=Paris",
];

async function workspace(permissions: object = { allow: ["weather:get"] }): Promise<Workspace> {
  return await makeWorkspace({
    files: { "weather.js": WEATHER, "paris.ts": PARIS },
    pml: {
      version: 1,
      permissions,
      private_mcps: { weather: { type: "deno", path: "weather.js" } },
    },
  });
}

async function saved(ws: Workspace, words: readonly string[] = SAVE): Promise<void> {
  const result = await runPmlOnTerminal(ws, words, { typed: [[/Save exactly this\?/, "y"]] });
  assert.equal(result.code, 0, result.stdout);
}

/** Returns the file of a capability. */
async function fileOf(ws: Workspace): Promise<string> {
  const folder = join(ws.home, "capabilities");
  const name = (await readdir(folder)).find((each) => each.startsWith("sha256-"));
  return join(folder, name ?? "none");
}

Deno.test("pml capability saves, shows, lists, renames and deletes", async () => {
  await using ws = await workspace();
  const refused = await runPml(ws, SAVE);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /APPROVAL_REQUIRED.*there is no terminal/s);
  const result = await runPmlOnTerminal(ws, SAVE, { typed: [[/Save exactly this\?/, "y"]] });
  assert.match(
    result.stdout,
    /\| const said = await mcp\.weather\.get\(\{ city: args\.city, days: 3 \}\)/,
  );
  assert.match(result.stdout, /It calls weather:get, which runs now/);
  assert.match(result.stdout, /Saved: call it as my:weather/);
  if (Deno.build.os !== "windows") {
    const { mode } = await stat(await fileOf(ws));
    assert.equal(mode & 0o777, 0o600);
  }
  const { capabilities: list } = JSON.parse(
    (await runPml(ws, ["capability", "list", "--json"])).stdout,
  );
  assert.equal(list.length, 1);
  assert.deepEqual([list[0].name, list[0].kind, list[0].runs, list[0].calls], [
    "my:weather",
    "code",
    "runs",
    ["weather:get"],
  ]);
  const output = await runPml(ws, ["capability", "show", "my:weather"]);
  assert.match(output.stdout, /my:weather \[code, runs\][\s\S]*args\.city/);
  const call = await runPml(ws, ["call", "my:weather", "city=Rome", "--json"]);
  assert.match(call.stdout, /Rome for 3/, call.stderr);
  const why = await runPml(ws, ["why", "my:weather"]);
  assertGolden("why/a capability", why.stdout);
  const rename = ["capability", "rename", "my:weather", "our:forecast"];
  assert.equal((await runPml(ws, rename)).code, 1);
  const renamed = await runPmlOnTerminal(ws, rename, { typed: [[/Rename exactly this\?/, "y"]] });
  assert.equal(renamed.code, 0, renamed.stdout);
  const effect = /^Effect of .*$/m.exec(renamed.stdout)?.[0].trim() ?? "";
  assertGolden("capability/the effect of a call by its new name", effect);
  assert.match((await runPml(ws, ["outdated"])).stderr, /our: .*saved capabilities/);
  assert.match((await runPml(ws, ["call", "our:forecast", "city=Oslo"])).stdout, /Oslo for 3/);
  assert.match((await runPml(ws, ["call", "my:weather", "city=Oslo"])).stderr, /UNKNOWN_TOOL/);
  // Without this name, there is nothing to ask about.
  const unknown = await runPml(ws, ["capability", "delete", "our:nothing"]);
  assert.match(unknown.stderr, /^error: UNKNOWN_TOOL: [^]*our:forecast/);
  const removed = await runPml(ws, ["capability", "delete", "our:forecast", "--yes"]);
  assert.equal(removed.code, 0, removed.stderr);
  assert.match((await runPml(ws, ["capability"])).stderr, /Nothing is saved yet/);
  await assert.rejects(stat(await fileOf(ws)));
});

Deno.test("pml capability save takes a plan, and refuses what could not run", async () => {
  const tasks = [{ id: "a", tool: "weather:get", arguments: { city: "Paris" } }];
  await using ws = await workspace();
  const files: Record<string, string> = {
    "plan.json": JSON.stringify({ tasks }),
    "cycle.json": JSON.stringify({ tasks: [{ ...tasks[0], depends_on: ["a"] }] }),
    "odd.json": JSON.stringify({ tasks: [{ id: "a" }] }),
    "odd.ts": "const a = 1;\nconst = 2;",
    "import.ts": 'import fs from "node:fs";\nreturn 1',
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(ws.path, name), text);
  await saved(ws, [
    "capability",
    "save",
    "my:plan",
    "--plan",
    "plan.json",
    "--parameter",
    "city=Paris",
  ]);
  const result = await runPml(ws, ["call", "my:plan", "city=Rome"]);
  assert.match(result.stdout, /"city": ?"Rome"/, result.stderr);
  const cases: [string[], RegExp][] = [
    [["--plan", "cycle.json"], /BAD_ARGUMENTS/],
    [["--plan", "odd.json"], /BAD_ARGUMENTS/],
    [["--code", "odd.ts"], /BAD_ARGUMENTS.*SyntaxError[\s\S]*code:2:/],
    [["--code", "import.ts"], /BAD_ARGUMENTS/],
    [["--code", "missing.ts"], /no such file/],
    [["--code", "odd.ts", "--plan", "odd.json"], /wanted a name/],
    [[], /wanted a name/],
  ];
  for (const [words, wanted] of cases) {
    const refused = await runPml(ws, ["capability", "save", "my:odd", ...words]);
    assert.match(refused.stderr, wanted, words.join(" "));
  }
  assert.equal((await runPml(ws, ["capability", "nonsense"])).code, 2);
});

Deno.test("pml capability moves to another machine by export and import", async () => {
  await using ws = await workspace();
  await saved(ws);
  const exported = await runPml(ws, ["capability", "export", "my:weather"]);
  const whole = JSON.parse(exported.stdout);
  assert.deepEqual([whole.name, whole.kind, whole.version], ["my:weather", "code", 1]);
  await using other = await workspace();
  await writeFile(join(other.path, "weather.json"), exported.stdout);
  const words = ["capability", "import", "weather.json"];
  assert.match((await runPml(other, words)).stderr, /APPROVAL_REQUIRED/);
  const result = await runPmlOnTerminal(other, words, { typed: [[/Save exactly this\?/, "y"]] });
  assert.match(result.stdout, /\| const said = await/);
  assert.match((await runPml(other, ["call", "my:weather", "city=Rome"])).stdout, /Rome for 3/);
  const changed = { ...whole, code: whole.code.replace("sun", "rain") };
  await writeFile(join(other.path, "weather.json"), JSON.stringify(changed));
  assert.match((await runPml(other, words)).stderr, /INTEGRITY_MISMATCH/);
  await writeFile(join(other.path, "weather.json"), `{"name": "my:weather"`);
  assert.match((await runPml(other, words)).stderr, /not a JSON object/);
});

Deno.test("a capability that was changed outside of PML does not run, and the error names the next step", async () => {
  await using ws = await workspace();
  await saved(ws);
  const file = await fileOf(ws);
  const before = await readFile(file, "utf8");
  await writeFile(file, before.replace("weather.get", "weather.warn"));
  const result = await runPml(ws, ["call", "my:weather", "city=Rome"]);
  assert.notEqual(result.code, 0);
  assert.match(result.stderr, /INTEGRITY_MISMATCH.*its file was changed/s);
  assert.match(result.stderr, /pml capability delete my:weather/);
  const list = await runPml(ws, ["capability", "list"]);
  assert.match(list.stdout, /my:weather \[\]?\s*[\s\S]*INTEGRITY_MISMATCH/);
  // The index contains the approved hash, which no longer matches the file.
  await writeFile(file, before);
  const index = join(ws.home, "capabilities", "index.json");
  const approved = await readFile(index, "utf8");
  await writeFile(index, approved.replace(/sha256-.{4}/, "sha256-0000"));
  assert.match(
    (await runPml(ws, ["call", "my:weather", "city=Rome"])).stderr,
    /INTEGRITY_MISMATCH/,
  );
  await writeFile(index, "{");
  const broken = await runPml(ws, ["call", "my:weather", "city=Rome"]);
  assert.match(broken.stderr, /Cannot use ".*index\.json"/);
  const save = await runPmlOnTerminal(ws, SAVE, { typed: [] });
  assert.match(save.stdout, /CONFIG_INVALID/);
  assert.equal(await readFile(index, "utf8"), "{", "what cannot be read is not replaced");
});

Deno.test("a changed tool makes a capability stale: PML reports it, and asks before it runs", async () => {
  await using ws = await workspace({ allow: ["weather:*"] });
  await saved(ws);
  await writeFile(
    join(ws.path, "weather.js"),
    WEATHER.replace("Weather of a city", "Weather of a city, and its mood"),
  );
  const trust = await runPmlOnTerminal(ws, ["trust"], {
    typed: [["to trust exactly this", "trust"]],
  });
  assert.equal(trust.code, 0, trust.stdout);
  const shown = JSON.parse(
    (await runPml(ws, ["capability", "show", "my:weather", "--json"])).stdout,
  );
  assert.match(shown.stale.join("\n"), /"weather:get": was sha256[\s\S]*and its mood/);
  assert.match(shown.stale.join("\n"), /"description" was: "Weather of a city"$/m);
  const refused = await runPml(ws, ["call", "my:weather", "city=Rome"]);
  assert.notEqual(refused.code, 0);
  assert.match(refused.stderr, /APPROVAL_STALE/);
  const result = await runPmlOnTerminal(ws, ["call", "my:weather", "city=Rome"], {
    typed: [[/and its mood[\s\S]*May it run\?/, "Yes"]],
  });
  assert.match(result.stdout, /Rome for 3/);
  assert.match((await runPml(ws, ["call", "my:weather", "city=Oslo"])).stdout, /Oslo for 3/);
  // If a tool is gone, the call fails with the name of the tool.
  await writeFile(join(ws.path, "weather.js"), WEATHER.replaceAll("get", "fetch"));
  await runPmlOnTerminal(ws, ["trust"], { typed: [["to trust exactly this", "trust"]] });
  const gone = await runPml(ws, ["call", "my:weather", "city=Rome"]);
  assert.match(gone.stderr, /UNKNOWN_TOOL.*it calls "weather:get", which no longer exists/s);
});

Deno.test("a capability that another process saves is found without a restart", async () => {
  await using scene = await capabilityScene("2025-11-25", { files: { "paris.ts": PARIS } });
  const { pml, ws } = scene;
  assert.match(await called(pml, "my:weather", { city: "Rome" }), /UNKNOWN_TOOL|Cannot find/);
  await saved(ws);
  await until(async () => /Rome for 3/.test(await called(pml, "my:weather", { city: "Rome" })));
  const removed = await runPml(ws, ["capability", "delete", "my:weather", "--yes"]);
  assert.equal(removed.code, 0, removed.stderr);
  assert.match(await called(pml, "my:weather", { city: "Rome" }), /UNKNOWN_TOOL|Cannot find/);
});

Deno.test("a server hides the capabilities of its name, and PML reports it", async () => {
  await using ws = await workspace();
  await saved(ws);
  const pml = JSON.parse(await readFile(join(ws.path, ".pml.json"), "utf8"));
  pml.private_mcps.my = { type: "deno", path: "my.js" };
  await writeFile(join(ws.path, "my.js"), WEATHER.replace('name: "weather"', 'name: "my"'));
  await writeFile(join(ws.path, ".pml.json"), JSON.stringify(pml));
  const list = await runPml(ws, ["capability", "list"]);
  assertGolden("capability/list with a hidden name", list.stdout);
  assert.match(list.stdout, /hidden: "my" /);
  const result = await runPml(ws, ["call", "my:weather", "city=Rome"]);
  assert.match(result.stderr, /UNKNOWN_TOOL/);
  assert.match(result.stderr, /NAME_CONFLICT/);
});
