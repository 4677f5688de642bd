/**
 * `pml key`: keys of servers, stored in the PML home.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { Scripted } from "../src/servers/http/_stage_test.ts";
import { call } from "./attacks/evil_servers.ts";
import { assertGolden } from "./kit/golden.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

Deno.test("a stored key reaches the server that names it, after the environment and before .env", async () => {
  await using far = new Scripted();
  const headers = { "X-Key": "${SOME_KEY}" };
  await using ws = await makeWorkspace({
    files: { ".env": "SOME_KEY=of-dotenv\n" },
    pml: {
      permissions: { allow: ["far:*"] },
      mcpServers: { far: { type: "http", url: far.url, headers } },
    },
  });
  const sent = async (env: Record<string, string> = {}) => {
    await using pml = new RawStdio(ws, { env });
    await pml.open();
    await call(pml, "far:t");
    assert.equal((await pml.close()).code, 0);
    return far.came.at(-1)?.headers.get("x-key");
  };
  assert.equal(await sent(), "of-dotenv");
  const secret = 'kept "1" \\ two';
  const result = await runPml(ws, ["key", "set", "SOME_KEY", "--stdin"], { stdin: `${secret}\n` });
  assert.equal(result.code, 0, result.stderr);
  assert.doesNotMatch(result.stdout + result.stderr, /kept "1"/);
  const path = `${ws.home}/keys.env`;
  assert.equal(((await Deno.stat(path)).mode ?? 0) & 0o777, 0o600);
  assert.equal(await sent(), secret);
  assert.equal(await sent({ SOME_KEY: "of-the-environment" }), "of-the-environment");
  const listed = await runPml(ws, ["key", "list"]);
  assert.match(listed.stdout, /^SOME_KEY +the key file +needed by far$/m);
  assert.match(listed.stdout, /^PML_API_KEY +not set +needed by cloud tools$/m);
  assert.doesNotMatch(listed.stdout, /kept "1"|of-dotenv/);
  assert.equal((await runPml(ws, ["key", "remove", "SOME_KEY"])).code, 0);
  assert.equal(await sent(), "of-dotenv");
});

Deno.test("pml key keeps a file with invalid lines, and writes no file that is too long", async () => {
  await using ws = await makeWorkspace();
  const path = `${ws.home}/keys.env`;
  const ran = async (stdin: string, ...words: readonly string[]) =>
    await runPml(ws, ["key", ...words, "--stdin"], { stdin });
  assert.equal((await ran("one", "set", "ONE")).code, 0);
  const good = await Deno.readTextFile(path);
  const long = await ran("x".repeat(70_000), "set", "LONG");
  assert.notEqual(long.code, 0);
  assert.match(long.stderr, /64 KB/);
  assert.equal(await Deno.readTextFile(path), good);
  const odd = [`${good}this is no line of keys\n`, `${good}# ${"x".repeat(70_000)}\n`];
  for (const text of odd) {
    await Deno.writeTextFile(path, text);
    for (const words of [["set", "TWO"], ["remove", "ONE"]]) {
      const { code, stderr } = await ran("two", ...words);
      assert.notEqual(code, 0, words.join(" "));
      assert.match(stderr, /Cannot change .*keys\.env/);
      assert.equal(await Deno.readTextFile(path), text);
    }
  }
});

Deno.test("pml key set names the servers whose key it replaces, and a value that comes first", async () => {
  await using ws = await makeWorkspace({ pml: { version: 1 } });
  const wiki = "mcpServers:\n  wiki: { command: wiki, env: { WIKI_TOKEN: '${WIKI_TOKEN}' } }\n";
  await Deno.writeTextFile(join(ws.home, "config.yaml"), wiki);
  const set = async (value: string, env: Readonly<Record<string, string>> = {}) => {
    const ran = await runPml(ws, ["key", "set", "WIKI_TOKEN", "--stdin"], { stdin: value, env });
    assert.equal(ran.code, 0, ran.stderr);
    return `${ran.stdout}${ran.stderr}`;
  };
  const texts = [await set("first"), await set("second"), await set("second")];
  texts.push(await set("third", { WIKI_TOKEN: "fourth" }));
  const shown = texts.map((text) => text.split("\n").slice(1).join("\n"));
  assertGolden("key/another value", shown.map((text) => `${text.trim() || "nothing"}\n`).join(""));
});

Deno.test("pml key set on a terminal shows nothing, and refuses invalid names and values", async () => {
  await using ws = await makeWorkspace();
  const result = await runPmlOnTerminal(ws, ["key", "set", "TOKEN_A"], {
    typed: [["The value of TOKEN_A", "seen-by-nobody"]],
  });
  assert.equal(result.code, 0, result.stdout);
  assert.doesNotMatch(result.stdout, /seen-by-nobody/);
  const bad: readonly (readonly [readonly string[], string, RegExp])[] = [
    [["set", "NODE_OPTIONS"], "x", /changes how programs run/],
    [["set", "PML_TRUST"], "x", /PML's own/],
    [["set", "a-b"], "x", /name of a variable/],
    [["set", "A"], "", /no value was given/],
    [["set", "A"], "a${B}", /that no key has/],
    [["set", "A"], "a\u0007", /that no key has/],
    [["remove", "NOPE"], "", /does not have it/],
    [["remove"], "", /pml key --help/],
    [["show"], "", /subcommand "show"\n.* set, from, list, remove/],
  ];
  for (const [words, stdin, says] of bad) {
    const args = words[0] === "set" ? [...words, "--stdin"] : words;
    const refused = await runPml(ws, ["key", ...args], { stdin });
    assert.notEqual(refused.code, 0, words.join(" "));
    assert.match(refused.stderr, says);
  }
  assert.match((await runPml(ws, ["key", "set", "A"])).stderr, /Pass the key with --stdin/);
  assert.match(await Deno.readTextFile(`${ws.home}/keys.env`), /^TOKEN_A="seen-by-nobody"\n$/);
});
