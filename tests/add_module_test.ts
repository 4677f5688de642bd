/**
 * `pml add FILE`: adds a module of the workspace on a terminal.
 *
 * @module
 */

import assert from "node:assert/strict";
import { rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { assertError } from "./cli_greeter.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const WEATHER = `export const __meta__ = {
  name: "weather", description: "Weather", permissions: { net: ["api.example.com"] },
  tools: {
    today: { description: "Weather of today", permissions: { read: ["."] } },
    send: { description: "Send the weather" },
  },
};
export function today() { return "sunny"; }
export function send() { return "sent"; }
`;
const TRUST = [/to add \w+ and trust/, "trust"] as const;
const ACCEPT = ["[y] accept", "y"] as const;

Deno.test("pml add of a module's file shows it once, approves exactly its code, and adds its grants after a yes", async () => {
  await using ws = await makeWorkspace({ files: { "mcp/weather.ts": WEATHER } });
  const added = await runPmlOnTerminal(ws, ["add", "./mcp/weather.ts"], {
    typed: [[/connects to api\.example\.com[^]*Grant it all of that\?/, "y"], TRUST, ACCEPT],
  });
  assert.equal(added.code, 0, added.stdout);
  assert.match(added.stdout, /code of "weather": sha256-/);
  assert.match(added.stdout, /weather has 2 tools/);
  const { private_mcps, grants, permissions } = JSON.parse(
    await Deno.readTextFile(ws.file(".pml.json")),
  );
  assert.deepEqual(private_mcps, { weather: { type: "deno", path: "./mcp/weather.ts" } });
  assert.deepEqual(grants, { weather: { net: ["api.example.com"] } });
  assert.ok(permissions.allow.includes("weather:today"));
  // Neither the file nor the code asks for trust again.
  assert.equal((await runPml(ws, ["call", "weather:today"])).stdout, "sunny\n");
  const again = await runPml(ws, ["add", "./mcp/weather.ts"]);
  assertError(again, { code: "USAGE", exit: 2 });
  await writeFile(ws.file("mcp/weather.ts"), WEATHER.replace("sunny", "rainy"));
  assertError(await runPml(ws, ["call", "weather:today"]), { code: "APPROVAL_STALE", exit: 1 });
});

Deno.test("pml add of a module approves no other code of the workspace file", async () => {
  const other =
    'export const __meta__ = { name: "other", tools: { one: {} } };\nexport function one() {}\n';
  await using ws = await makeWorkspace({
    files: { "other.ts": other, "weather.ts": WEATHER },
    pml: {
      permissions: { allow: ["other:one"] },
      private_mcps: { other: { type: "deno", path: "./other.ts" } },
    },
    trusted: false,
  });
  const trusted = await runPmlOnTerminal(ws, ["trust"], {
    typed: [[/to trust exactly this: /, "trust"], ["Start this server", "n"]],
  });
  assert.equal(trusted.code, 0, trusted.stdout);
  await writeFile(ws.file("other.ts"), `${other}// changed\n`);
  const added = await runPmlOnTerminal(ws, ["add", "clouds", "weather.ts"], {
    typed: [["Grant it all of that?", "n"], TRUST, ACCEPT],
  });
  assert.equal(added.code, 0, added.stdout);
  assert.match(added.stdout, /asks for net api\.example\.com: not granted/);
  assert.equal((await runPml(ws, ["call", "clouds:today"])).stdout, "sunny\n");
  assertError(await runPml(ws, ["call", "other:one"]), { code: "APPROVAL_STALE", exit: 1 });
});

Deno.test("pml trust after pml add of a module shows only the edits since", async () => {
  await using ws = await makeWorkspace({
    files: { "weather.ts": WEATHER },
    pml: { permissions: { allow: ["git:log"] } },
    trusted: false,
  });
  await runPmlOnTerminal(ws, ["add", "weather.ts"], {
    typed: [[/to trust exactly this: /, "trust"], ["Grant it", "n"], TRUST, ACCEPT],
  });
  const file = JSON.parse(await Deno.readTextFile(ws.file(".pml.json")));
  file.permissions.ask = ["git:log"];
  await writeFile(ws.file(".pml.json"), JSON.stringify(file));
  const { stdout } = await runPmlOnTerminal(ws, ["trust"], {
    typed: [[/to trust exactly this: /, "no"]],
  });
  const changes = stdout.split(/\r?\n/).filter((line) => /^[+-] /.test(line));
  assert.deepEqual(changes, ["- runs unasked: git:log"]);
});

Deno.test("pml add of a module drops the grants that the workspace file has for its name", async () => {
  await using ws = await makeWorkspace({
    files: { "weather.ts": WEATHER },
    pml: { grants: { weather: { net: ["api.example.com"] } } },
  });
  const added = await runPmlOnTerminal(ws, ["add", "./weather.ts"], {
    typed: [["Grant it all of that?", "n"], TRUST, ACCEPT],
  });
  assert.equal(added.code, 0, added.stdout);
  assert.match(added.stdout, /asks for net api\.example\.com: not granted/);
  const { grants = {} } = JSON.parse(await Deno.readTextFile(ws.file(".pml.json")));
  assert.deepEqual(grants, {});
});

Deno.test("pml add of a module asks for trust in a workspace file first, and keeps the file after a no", async () => {
  const pml = '{ "version": 1, "permissions": { "allow": ["git:log"] } }\n';
  await using ws = await makeWorkspace({
    files: { "weather.ts": WEATHER },
    pml,
    trusted: false,
  });
  const untrusted = await runPmlOnTerminal(ws, ["add", "weather.ts"], {
    typed: [[/runs unasked: git:log[^]*to trust exactly this: /, "no"]],
  });
  assert.match(untrusted.stdout, /WORKSPACE_UNTRUSTED/);
  const declined = await runPmlOnTerminal(ws, ["add", "weather.ts"], {
    typed: [[/to trust exactly this: /, "trust"], ["Grant it", "n"], [TRUST[0], "no"]],
  });
  assert.equal(declined.code, 1, declined.stdout);
  assert.equal(await Deno.readTextFile(ws.file(".pml.json")), pml);
});

Deno.test("pml add of a module removes the workspace file that it made if its table is declined", async () => {
  await using ws = await makeWorkspace({ files: { "weather.ts": WEATHER } });
  const declined = await runPmlOnTerminal(ws, ["add", "weather.ts"], {
    typed: [["Grant it all", "n"], TRUST, ["[N] decline", "n"]],
  });
  assert.equal(declined.code, 1, declined.stdout);
  await assert.rejects(Deno.stat(ws.file(".pml.json")), Deno.errors.NotFound);
});

Deno.test("pml add refuses a module outside the workspace, also behind a link, and names the line to write", async () => {
  await using ws = await makeWorkspace();
  const path = join(ws.root, "weather.ts");
  await writeFile(path, WEATHER);
  await symlink(path, ws.file("link.ts"));
  for (const file of ["../weather.ts", "./link.ts"]) {
    const result = await runPml(ws, ["add", file]);
    assertError(result, { code: "USAGE", exit: 2 });
    const line = '"private_mcps": {"weather":{"type":"deno","path":"../weather.ts"}}';
    assert.ok(result.stderr.includes(line), result.stderr);
  }
  await rm(path);
});

Deno.test("pml add refuses a module that does not load, a missing file, and a name that is taken", async () => {
  await using ws = await makeWorkspace({
    files: { "broken.ts": "export const x = ;", "weather.ts": WEATHER, "program.js": "1;\n" },
  });
  assertError(await runPml(ws, ["add", "./broken.ts"]), { code: "CONFIG_INVALID", exit: 2 });
  assertError(await runPml(ws, ["add", "./program.js"]), { code: "CONFIG_INVALID", exit: 2 });
  for (const words of [["./none.ts"], ["git", "weather.ts"], ["Bad Name", "weather.ts"]]) {
    assertError(await runPml(ws, ["add", ...words]), { code: "USAGE", exit: 2 });
  }
  const piped = await runPml(ws, ["add", "weather.ts"]);
  assertError(piped, { code: "APPROVAL_REQUIRED", exit: 1 });
  const { name, definition, asks } = JSON.parse(
    (await runPml(ws, ["add", "clouds", "weather.ts", "--json"])).stdout,
  );
  assert.deepEqual([name, definition.path, asks], ["clouds", "./weather.ts", {
    net: ["api.example.com"],
  }]);
  await assert.rejects(Deno.stat(ws.file(".pml.json")), Deno.errors.NotFound);
});

Deno.test("pml add --replace of a module asks about its old grants before it runs, and undoes it", async () => {
  await using ws = await makeWorkspace({
    files: { "old.ts": WEATHER, "new.ts": WEATHER.replace("sunny", "rainy") },
    pml: {
      permissions: { allow: ["weather:*", "git:log"] },
      private_mcps: { weather: { type: "deno", path: "./old.ts" } },
      grants: { weather: { net: ["api.example.com"] } },
    },
    trusted: false,
  });
  const before = await Deno.readTextFile(ws.file(".pml.json"));
  assert.equal(
    (await runPmlOnTerminal(ws, ["trust"], {
      typed: [[/to trust exactly this: /, "trust"], ["Start this", "n"]],
    }))
      .code,
    0,
  );
  const replaced = await runPmlOnTerminal(ws, ["add", "new.ts", "--replace"], {
    typed: [
      ["Grant it all of that?", "n"],
      [/to replace weather and/, "trust"],
      [/- .*weather:\*[^]*Remove the rules and grants/, "y"],
      ACCEPT,
    ],
  });
  assert.equal(replaced.code, 0, replaced.stdout);
  const now = JSON.parse(await Deno.readTextFile(ws.file(".pml.json")));
  assert.equal(now.private_mcps.weather.path, "./new.ts");
  assert.equal(now.grants, undefined);
  assert.deepEqual(now.permissions.allow, ["git:log", "weather:today", "weather:send"]);
  const undone = await runPmlOnTerminal(ws, ["add", "--undo", "--workspace"], {
    typed: [[/only the definition before[^]*Continue\?/, "y"]],
  });
  assert.equal(undone.code, 0, undone.stdout);
  const back = JSON.parse(await Deno.readTextFile(ws.file(".pml.json")));
  assert.deepEqual(back.private_mcps, JSON.parse(before).private_mcps);
});
