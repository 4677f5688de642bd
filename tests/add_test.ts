/**
 * `pml add`, `remove`, `list`, `allow`, `ask` and `deny` on a terminal.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Scripted } from "../src/servers/http/_stage_test.ts";
import { FakeRegistry, moduleEntry } from "./kit/fake_registry.ts";
import { assertGolden } from "./kit/golden.ts";
import { denoCommand } from "./kit/pml_command.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const CONFIG = `# mine
permissions:
  allow:
    # reading is fine
    - git:log # the log
    - git:diff
limits:
  call_ms: 5000 # enough
`;

const ACCEPT = ["[y] accept", "y"] as const;

function echoServer(): readonly string[] {
  return denoCommand("tests/kit/echo_server.ts");
}

Deno.test("pml add starts a command, shows its tools, and names the next step; pml remove takes it out", async () => {
  await using ws = await makeWorkspace();
  const file = join(ws.home, "config.yaml");
  await writeFile(file, CONFIG);
  // The tests use one cache of Deno, so that the start downloads nothing.
  const env = ["--env", "DENO_DIR=${DENO_DIR}"];
  const added = await runPmlOnTerminal(ws, ["add", "echo", ...env, "--", ...echoServer()], {
    typed: [["Add echo and start it?", "yes"], ACCEPT],
  });
  assert.equal(added.code, 0, added.stdout);
  assert.match(added.stdout, /\+ +echo:/);
  assert.match(added.stdout, /runs the command \[/);
  assert.match(added.stdout, /echo has \d+ tools/);
  assert.match(added.stdout, /Try it: pml call echo:\w+/);
  const text = await readFile(file, "utf8");
  for (const kept of ["# mine", "# reading is fine", "# the log", "# enough"]) {
    assert.ok(text.includes(kept), kept);
  }
  const listed = await runPml(ws, ["list"]);
  assert.match(listed.stdout, /^echo +stdio +.*config\.yaml, (?:ready|not started)$/m);
  const again = await runPml(ws, ["add", "echo", "--", "true"]);
  assert.equal(again.code, 2);
  assert.match(again.stderr, /Cannot add "echo": there is a server "echo" already/);
  const mistyped = await runPml(ws, ["remove", "ecko"]);
  assertGolden("remove/a mistyped name", mistyped.stderr);
  const shown = await runPml(ws, ["remove", "echo", "--json"]);
  assert.equal(JSON.parse(shown.stdout).path, file);
  const pinned = async () => {
    const { local } = JSON.parse((await runPml(ws, ["lock", "--json"])).stdout);
    return local.map(({ name, removed }: { name: string; removed: boolean }) => [name, removed]);
  };
  assert.deepEqual(await pinned(), [["echo", false]]);
  const own = await readFile(file, "utf8");
  await writeFile(file, CONFIG);
  assert.deepEqual(await pinned(), [["echo", true]]);
  await writeFile(file, own);
  const piped = await runPml(ws, ["remove", "echo"]);
  assert.match(piped.stderr, /there is no terminal/);
  const removed = await runPmlOnTerminal(ws, ["remove", "echo"], {
    typed: [["Remove echo?", "yes"]],
  });
  assert.equal(removed.code, 0, removed.stdout);
  assert.doesNotMatch(await readFile(file, "utf8"), /echo/);
  assert.deepEqual(await pinned(), []);
});

Deno.test("pml remove removes a server from the workspace's file, whichever section contains it", async () => {
  const server = { command: "true" };
  const module = { type: "deno", path: "own.js" };
  const cases = [{ mcpServers: { one: server } }, { private_mcps: { one: module } }];
  for (const sections of cases) {
    await using ws = await makeWorkspace({ pml: { version: 1, ...sections } });
    const removed = await runPmlOnTerminal(ws, ["remove", "one"], {
      typed: [["Remove one?", "yes"]],
    });
    assert.equal(removed.code, 0, removed.stdout);
    assert.doesNotMatch(await readFile(ws.file(".pml.json"), "utf8"), /one/);
  }
});

Deno.test("pml remove names the stored keys that no other server needs", async () => {
  const server = (...names: readonly string[]) => ({
    command: "true",
    env: Object.fromEntries(names.map((name) => [name, `\${${name}}`])),
  });
  const mcpServers = {
    one: server("OWN_KEY", "SHARED_KEY", "UNSET_KEY"),
    two: server("SHARED_KEY"),
  };
  await using ws = await makeWorkspace({ pml: { version: 1, mcpServers } });
  for (const name of ["OWN_KEY", "SHARED_KEY"]) {
    await runPml(ws, ["key", "set", name, "--stdin"], { stdin: "a value\n" });
  }
  const removed = await runPmlOnTerminal(ws, ["remove", "one"], {
    typed: [["Remove one?", "yes"]],
  });
  assert.match(removed.stdout, /key remove OWN_KEY/);
  assert.doesNotMatch(removed.stdout, /key remove (?:SHARED|UNSET)_KEY/);
});

Deno.test("pml add stores no secret, names the keys to set, and refuses invalid names, addresses and headers", async () => {
  await using ws = await makeWorkspace();
  const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
  const args = ["add", "hub", "--url", "https://hub.example.com/mcp", "--header"];
  const result = await runPml(ws, [...args, `Authorization: Bearer ${secret}`, "--json"]);
  assert.equal(result.code, 0, result.stderr);
  assert.doesNotMatch(result.stdout + result.stderr, /ghp_/);
  assert.match(result.stdout, /"Authorization": "Bearer \$\{\w+\}"/);
  const bad: readonly (readonly [readonly string[], RegExp])[] = [
    [["add", "hub", "--url", "ftp://x"], /Cannot add "hub"/],
    [["add", "a", "--url", "https://x.example.com", "--header", "none"], /it has no ":"/],
    [["add", "Bad Name", "--", "true"], /valid name; .* bad-name/],
    [["add", "filesystem", "--", "true"], /built in/],
    [["add", "nothing", "--"], /no command after --/],
    [["add", "nothing"], /no registry has it\n.*pml add NAME -- COMMAND/],
  ];
  for (const [words, says] of bad) {
    const output = await runPml(ws, words);
    assert.equal(output.code, 2, output.stderr);
    assert.match(output.stderr, says);
  }
});

Deno.test("pml add of a server that fails reports why, keeps it, and names the command that removes it", async () => {
  await using ws = await makeWorkspace();
  const result = await runPmlOnTerminal(ws, ["add", "broken", "--", "false"], {
    typed: [["start it?", "yes"]],
  });
  assert.equal(result.code, 1);
  assert.match(
    result.stdout,
    /broken stays configured, in .*config\.yaml; `pml remove broken` removes it/,
  );
});

Deno.test("pml add of an address adds it, and of a registry's server shows the entry before it asks", async () => {
  await using far = new Scripted();
  await using registry = await FakeRegistry.open([
    await moduleEntry(
      "clock",
      `export const __meta__ = { name: "clock", version: "1.0.0", description: "Tells the time",
        tools: { tell: { description: "Tell the time" } } };
      export function tell() { return "late"; }`,
    ),
  ]);
  await using ws = await makeWorkspace({ env: { PML_REGISTRIES: registry.url } });
  const versioned = await runPml(ws, ["add", "greeter@1.0.0"]);
  assert.equal(versioned.code, 2);
  assertGolden("add/a version of a registry's server", versioned.stderr);
  // A key in the address would have to be set first.
  const [url = ""] = far.url.split("?");
  const remote = await runPmlOnTerminal(ws, ["add", "far", "--url", url], {
    typed: [["start it?", "yes"], ACCEPT],
  });
  assert.equal(remote.code, 0, remote.stdout);
  assert.match(remote.stdout, /far has \d+ tools?/);
  const offered = await runPmlOnTerminal(ws, ["add", "clock"], {
    typed: [["Use clock in this workspace?", "y"], [
      /\| Tell the time[^]*\[y\] accept/,
      "y",
    ]],
  });
  assert.equal(offered.code, 0, offered.stdout);
  assert.match(offered.stdout, /clock has 1 tool/);
  const used = await runPml(ws, ["tools", "clock"]);
  assert.match(used.stdout, /clock:tell/);
});

Deno.test("pml add --url stores a key typed in the address or in a header, does not show it, and starts the server with it", async () => {
  const key = "fc-0a1b2c3d4e5f60718293a4b5c6d7e8f9";
  const places = [
    { url: `/${key}/mcp`, header: [] },
    { url: `/mcp?api_key=${key}`, header: [] },
    { url: "/mcp", header: ["--header", `Authorization: Bearer ${key}`] },
  ];
  for (const { url, header } of places) {
    await using far = new Scripted();
    await using ws = await makeWorkspace();
    const address = new URL(url, far.url).href;
    const args = ["add", "far", "--url", address, ...header];
    const result = await runPmlOnTerminal(ws, args, {
      typed: [
        ["start it?", "yes"],
        [/Store \w+ in PML, as you typed it\?.*\[N\] no/, "y"],
        ACCEPT,
      ],
    });
    assert.equal(result.code, 0, result.stdout);
    assert.match(result.stdout, /far has \d+ tools?/);
    assert.doesNotMatch(result.stdout, /pml key set/);
    const text = result.stdout.replaceAll(args.join(" "), "");
    assert.ok(!text.includes(key), text);
    const config = await Deno.readTextFile(join(ws.home, "config.yaml"));
    assert.ok(!config.includes(key), config);
    assert.match(config, /\$\{\w+\}/);
  }
  await using far = new Scripted();
  await using ws = await makeWorkspace();
  const args = ["add", "far", "--url", new URL(`/mcp?api_key=${key}`, far.url).href];
  const no = await runPmlOnTerminal(ws, args, {
    typed: [["start it?", "yes"], [/as you typed it\?/, "n"]],
  });
  assert.equal(no.code, 1);
  assert.match(no.stdout, /KEY_MISSING[^]*pml key set \w+/);
  await assert.rejects(Deno.stat(join(ws.home, "keys.json")), Deno.errors.NotFound);
});

Deno.test("pml allow, ask and deny edit rules, keep comments, and move a rule between the lists", async () => {
  await using ws = await makeWorkspace();
  const file = join(ws.home, "config.yaml");
  await writeFile(file, CONFIG);
  const typed = [['Type "write"', "write"]] as const;
  const allowed = await runPmlOnTerminal(ws, ["allow", "shell"], { typed });
  assert.equal(allowed.code, 0, allowed.stdout);
  assert.match(
    await readFile(file, "utf8"),
    /- git:log # the log\n {4}- git:diff\n {4}- shell:\*\n/,
  );
  const why = await runPml(ws, ["why", "shell:exec"]);
  assert.match(why.stdout, /shell:exec: runs\n.*"shell:\*" in .*config\.yaml/);
  const denied = await runPmlOnTerminal(ws, ["deny", "git:log"], { typed });
  assert.equal(denied.code, 0, denied.stdout);
  const text = await readFile(file, "utf8");
  assert.match(text, /deny:\n +- git:log/);
  assert.doesNotMatch(text, /# the log/);
  assert.match(text, /# reading is fine|- git:diff/);
  assert.match((await runPml(ws, ["why", "git:log"])).stdout, /git:log: denied/);
  const odd = await runPml(ws, ["ask", "a b"]);
  assert.equal(odd.code, 2);
  assert.match(odd.stderr, /Cannot read the rule "a b"/);
  const near = await runPmlOnTerminal(ws, ["allow", "filesytem"], {
    typed: [[/Did you mean "filesystem"[^]*Type "write"/, "no"]],
  });
  assert.equal(near.code, 1, near.stdout);
  assert.doesNotMatch(await readFile(file, "utf8"), /filesytem/);
});

Deno.test("pml allow --workspace keeps the comments, the trust and the default rules of the workspace file", async () => {
  const pml = `{
  // rules of ours
  "permissions": {
    "allow": [
      "git:log" // the log
    ],
    "ask": ["git:diff"]
  }
}
`;
  await using ws = await makeWorkspace({ pml, trusted: false });
  const file = ws.file(".pml.json");
  const untrusted = await runPml(ws, ["allow", "git:diff", "--workspace"]);
  assert.match(untrusted.stderr, /WORKSPACE_UNTRUSTED/);
  assert.equal(
    (await runPmlOnTerminal(ws, ["trust"], { typed: [["to trust exactly this", "trust"]] })).code,
    0,
  );
  const typed = [['Type "write"', "write"]] as const;
  const moved = await runPmlOnTerminal(ws, ["allow", "git:diff", "--workspace"], { typed });
  assert.equal(moved.code, 0, moved.stdout);
  const text = await readFile(file, "utf8");
  assert.match(text, /\/\/ rules of ours/);
  assert.match(text, /"git:log",? \/\/ the log/);
  assert.match((await runPml(ws, ["why", "git:diff"])).stdout, /git:diff: runs/);
  // A new file contains the default rules, so that nothing else changes.
  await using fresh = await makeWorkspace();
  const result = await runPmlOnTerminal(fresh, ["allow", "shell:exec", "--workspace"], { typed });
  assert.equal(result.code, 0, result.stdout);
  assert.match((await runPml(fresh, ["why", "filesystem:read_file"])).stdout, /: runs/);
  assert.match((await runPml(fresh, ["why", "shell:exec"])).stdout, /: runs/);
});

Deno.test("pml list shows the states of servers, and starts none", async () => {
  const server = tinyServer('"fine"')
    .replace("capabilities: {}", "capabilities: { tools: { listChanged: true } }");
  const started = `import { writeFileSync } from "node:fs"; writeFileSync("started", "");\n`;
  await using ws = await makeWorkspace({
    files: {
      "tiny.mjs": started + server.replace(/^#!.*$/m, ""),
      "wrong.ts": "export const (",
    },
    pml: {
      version: 1,
      mcpServers: { tiny: { command: "node", args: ["tiny.mjs"] } },
      private_mcps: { wrong: { type: "deno", path: "./wrong.ts" } },
    },
  });
  const states = async () => {
    const { servers } = JSON.parse((await runPml(ws, ["list", "--json"])).stdout);
    const entries = servers.map(({ name, state }: Record<string, string>) => [name, state]);
    return Object.fromEntries(entries);
  };
  const before = await states();
  assert.deepEqual(
    [before.tiny, before.wrong, before.filesystem],
    ["not started", "failed", "ready"],
  );
  await assert.rejects(Deno.stat(ws.file("started")), Deno.errors.NotFound);
  const shown = await runPml(ws, ["list"]);
  assert.match(shown.stdout, /^tiny .*, not started$/m);
  assert.match(shown.stderr, /pml tools SERVER/);
  await runPml(ws, ["tools", "tiny"]);
  await Deno.remove(ws.file("started"));
  assert.equal((await states()).tiny, "ready");
  await assert.rejects(Deno.stat(ws.file("started")), Deno.errors.NotFound);
  await writeFile(ws.file("tiny.mjs"), "process.exit(3);");
  await runPml(ws, ["tools", "tiny", "--refresh"]);
  const failed = await runPml(ws, ["list"]);
  assert.match(failed.stdout, /^tiny .*, failed: .* exit code 3 \(\d+ s ago\)$/m);
});
