/**
 * `pml import` of a server whose variable has a name that PML has with another value.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { parse } from "yaml";
import { assertError } from "./cli_greeter.ts";
import { assertGolden } from "./kit/golden.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const OLD = "wk_live_1111aaaa1111aaaa1111";
const NEW = "wk_live_6666bbbb6666bbbb6666";
const NOTES = { command: "notes", env: { WIKI_TOKEN: NEW } };
const WIKI = "mcpServers:\n  wiki: { command: wiki, env: { WIKI_TOKEN: '${WIKI_TOKEN}' } }\n";

/** Returns a workspace whose PML has the server `wiki` with a key, and whose client has `notes`. */
async function withWiki(): Promise<Workspace> {
  const files = { ".mcp.json": JSON.stringify({ mcpServers: { notes: NOTES } }) };
  const ws = await makeWorkspace({ files });
  await Deno.writeTextFile(join(ws.home, "config.yaml"), WIKI);
  await runPml(ws, ["key", "set", "WIKI_TOKEN", "--stdin"], { stdin: `${OLD}\n` });
  return ws;
}

async function stateOf(ws: Workspace) {
  const { mcpServers } = parse(await Deno.readTextFile(join(ws.home, "config.yaml")));
  return {
    notes: mcpServers.notes?.env.WIKI_TOKEN,
    wiki: mcpServers.wiki.env.WIKI_TOKEN,
    keys: (await Deno.readTextFile(join(ws.home, "keys.env"))).replaceAll('"', "")
      .match(/^\w+=.*$/gm)?.sort(),
    client: await Deno.readTextFile(ws.file(".mcp.json")),
  };
}

function importMoved(ws: Workspace, answers: readonly [RegExp, string][]) {
  return runPmlOnTerminal(ws, ["import", ".mcp.json", "--move"], {
    typed: [[/Import .*\[N\] no/, "y"], ...answers],
  });
}

Deno.test("pml import uses another name for the key of a server if PML has another value of the name", async () => {
  await using ws = await withWiki();
  const before = await stateOf(ws);
  const shown = await runPml(ws, ["import", ".mcp.json", "--dry-run"]);
  assertGolden("import/another value of a key", shown.stdout.replaceAll(ws.root, "ROOT"));
  const { take: [{ variables, definition }] } = JSON.parse(
    (await runPml(ws, ["import", ".mcp.json", "--json"])).stdout,
  );
  assert.equal(definition.env.WIKI_TOKEN, "${NOTES_WIKI_TOKEN}");
  const [{ name, isSet, otherValueOf }] = variables;
  assert.deepEqual([name, isSet, otherValueOf], ["NOTES_WIKI_TOKEN", false, "WIKI_TOKEN"]);
  assertError(await runPml(ws, ["import", ".mcp.json"]), { code: "APPROVAL_REQUIRED", exit: 1 });
  assert.deepEqual(await stateOf(ws), before);
  const moved = await importMoved(ws, [
    [/WIKI_TOKEN.*wiki.*NOTES_WIKI_TOKEN/s, "o"],
    [/Store NOTES_WIKI_TOKEN/, "y"],
    [/Start th/, "n"],
    [/out of/, "y"],
  ]);
  assert.equal(moved.code, 0, moved.stdout);
  assert.doesNotMatch(moved.stdout, /pml key set/);
  assert.ok(!moved.stdout.includes(NEW) && !moved.stdout.includes(OLD));
  const { client, ...after } = await stateOf(ws);
  assert.ok(!client.includes(NEW));
  assert.deepEqual(after, {
    notes: "${NOTES_WIKI_TOKEN}",
    wiki: "${WIKI_TOKEN}",
    keys: [`NOTES_WIKI_TOKEN=${NEW}`, `WIKI_TOKEN=${OLD}`],
  });
});

Deno.test("pml import replaces the value that PML has only after an answer", async () => {
  await using ws = await withWiki();
  const ran = await importMoved(ws, [
    [/NOTES_WIKI_TOKEN.*\[r\]/s, "r"],
    [/Start th/, "n"],
    [/out of/, "y"],
  ]);
  assert.equal(ran.code, 0, ran.stdout);
  const { notes, keys, client } = await stateOf(ws);
  assert.deepEqual([notes, keys], ["${WIKI_TOKEN}", [`WIKI_TOKEN=${NEW}`]]);
  assert.ok(!client.includes(NEW));
});

Deno.test("a server whose key was not stored stays in the client's file, without the key of another server", async () => {
  await using ws = await withWiki();
  const ran = await importMoved(ws, [
    [/NOTES_WIKI_TOKEN.*\[r\]/s, "\r"],
    [/Store NOTES_WIKI_TOKEN/, "n"],
    [/Start th/, "n"],
  ]);
  assert.equal(ran.code, 0, ran.stdout);
  assert.match(ran.stdout, /pml key set NOTES_WIKI_TOKEN/);
  assert.doesNotMatch(ran.stdout, /pml key set WIKI_TOKEN/);
  const { notes, keys, client } = await stateOf(ws);
  assert.deepEqual([notes, keys], ["${NOTES_WIKI_TOKEN}", [`WIKI_TOKEN=${OLD}`]]);
  assert.ok(client.includes(NEW));
});

Deno.test("pml import --move takes a server out whose key changed in PML since the import", async () => {
  await using ws = await withWiki();
  const config = join(ws.home, "config.yaml");
  await Deno.writeTextFile(config, WIKI.replaceAll("wiki", "notes"));
  const ran = await runPmlOnTerminal(ws, ["import", ".mcp.json", "--move"], {
    typed: [[/out of/, "y"]],
  });
  assert.equal(ran.code, 0, ran.stdout);
  assert.ok(!(await Deno.readTextFile(ws.file(".mcp.json"))).includes(NEW));
});

Deno.test("pml import names the command for each variable that is not set, and the references that it sends as they are", async () => {
  const env = { A: "${input:api-key}", B: "$BARE", C: "${lower}", D: "${D_KEY:-info}", OWN: "1" };
  const servers = {
    one: { command: "x", args: ["$OTHER", "${OWN}", "${env:my_name}"], env },
    two: { command: "x", args: ["${config:a.b}"] },
  };
  await using ws = await makeWorkspace({
    files: { ".vscode/mcp.json": JSON.stringify({ servers }) },
  });
  const shown = await runPml(ws, ["import", "vscode", "--dry-run"]);
  assertGolden("import/variables of a client", shown.stdout.replaceAll(ws.root, "ROOT"));
});

Deno.test("pml import shows why two servers of one file get different names for one variable, and names --move once they are imported", async () => {
  const wiki = { command: "wiki", env: { WIKI_TOKEN: OLD } };
  const files = { ".mcp.json": JSON.stringify({ mcpServers: { notes: NOTES, wiki } }) };
  await using ws = await makeWorkspace({ files });
  const shown = await runPml(ws, ["import", ".mcp.json", "--dry-run"]);
  assertGolden("import/two values of a key", shown.stdout.replaceAll(ws.root, "ROOT"));
  const ran = await runPmlOnTerminal(ws, ["import", ".mcp.json"], {
    typed: [[/Import .*\[N\] no/, "y"], [/Store WIKI_TOKEN, WIKI_WIKI_TOKEN/, "y"], [
      /Start th/,
      "n",
    ]],
  });
  assert.equal(ran.code, 0, ran.stdout);
  const again = await runPml(ws, ["import", ".mcp.json"]);
  assert.match(again.stderr, /`pml import \.mcp\.json --move`/);
});
