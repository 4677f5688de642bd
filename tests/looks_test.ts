/**
 * The appearance on a terminal: the overview, colours and signs, and one line of progress.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { greeting } from "./cli_greeter.ts";
import { FakeNpm } from "./kit/fake_npm.ts";
import { pmlCommand } from "./kit/pml_command.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { makeWorkspace } from "./kit/workspace.ts";

/** The kit's terminals set NO_COLOR. */
const COLOURED = { env: { NO_COLOR: "" } };
/** The beginning of an escape sequence. */
const ESCAPE = "\u001b[";

Deno.test("pml without arguments shows the state and proposes the next step", async () => {
  await using ws = await greeting({ trusted: false });
  const nextOf = async () => {
    const { code, stdout, stderr } = await runPml(ws, []);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^PML \d+\.\d+\.\d+\n {2}workspace /);
    assert.match(stdout, /^All commands: pml --help$/m);
    return /^Next: (pml \w+(?:.*--move)?)/m.exec(stdout)?.[1];
  };
  assert.equal(await nextOf(), "pml trust");
  await runPmlOnTerminal(ws, ["trust"], { typed: [["to trust exactly this", "trust"]] });
  assert.equal(await nextOf(), "pml init");
  await runPml(ws, ["init", "--yes"]);
  assert.equal(await nextOf(), "pml search");
  const file = ws.file(".mcp.json");
  const text = await Deno.readTextFile(file);
  const { mcpServers } = JSON.parse(text);
  const own = { mcpServers: { ...mcpServers, notes: { command: "notes" } } };
  await Deno.writeTextFile(file, JSON.stringify(own));
  assert.equal(await nextOf(), "pml import", "the client starts another server itself");
  const yaml = join(ws.home, "config.yaml");
  const before = await Deno.readTextFile(yaml).catch(() => "");
  await Deno.writeTextFile(yaml, `${before}\nmcpServers: { notes: { command: notes } }\n`);
  const later = { mcpServers: { ...own.mcpServers, later: { command: "later" } } };
  await Deno.writeTextFile(file, JSON.stringify(later));
  assert.equal(await nextOf(), "pml import claude-code --move", "PML has one of its servers");
  await Deno.writeTextFile(yaml, before);
  await Deno.writeTextFile(file, text);
  assert.equal((await runPml(ws, ["call", "shell:exec", "command=ls"])).code, 1);
  assert.equal(await nextOf(), "pml approve");
  const output = (await runPml(ws, [])).stdout;
  assert.match(output, /^ {2}clients +claude-code$/m);
  assert.match(output, /^ {2}waiting +1 call$/m);
  // A folder in which no call waits.
  await using other = await makeWorkspace({ pml: { version: 1, intent: "another" } });
  const elsewhere = (await runPml(ws, [], { cwd: other.path })).stdout;
  assert.match(elsewhere, /^ {2}waiting +1 call of other folders$/m);
  assert.match(elsewhere, /^Next: pml trust/m);
  await Deno.writeTextFile(ws.file(".pml.json"), "{");
  assert.equal(await nextOf(), "pml doctor");
});

Deno.test("colours and signs appear on a terminal only, and NO_COLOR turns them off", async () => {
  await using ws = await greeting();
  const result = await runPmlOnTerminal(ws, ["doctor"], COLOURED);
  assert.ok(result.stdout.includes(`${ESCAPE}32m✔${ESCAPE}39m home: `), result.stdout);
  assert.doesNotMatch(result.stdout, /^ok {3}/m);
  const output = await runPmlOnTerminal(ws, ["search", "greet"], COLOURED);
  assert.ok(output.stdout.includes(` ${ESCAPE}32mruns${ESCAPE}39m`), output.stdout);
  const failed = await runPmlOnTerminal(ws, ["tools", "nothing"], COLOURED);
  assert.ok(failed.stdout.includes(`${ESCAPE}31merror: USAGE:${ESCAPE}39m`), failed.stdout);
  const asked = await runPmlOnTerminal(ws, ["call", "shell:exec", "command=ls"], {
    ...COLOURED,
    typed: [[`[N]${ESCAPE}22m no`, "n"]],
  });
  assert.ok(asked.stdout.includes(`${ESCAPE}1m[y]${ESCAPE}22m once`), asked.stdout);
  for (const args of [["doctor"], ["search", "greet"], ["tools", "nothing"], []]) {
    const piped = await runPml(ws, args, COLOURED);
    assert.ok(!(piped.stdout + piped.stderr).includes(ESCAPE), args.join(" "));
    const plain = await runPmlOnTerminal(ws, args);
    assert.ok(!plain.stdout.includes(ESCAPE), args.join(" "));
  }
});

Deno.test("a tool's text reaches a terminal without its control characters", async () => {
  await using ws = await makeWorkspace({ files: { "odd.txt": "a\u001b[31mred\u001b[2Kb" } });
  const read = ["call", "filesystem:read_file", "path=odd.txt"];
  const result = await runPmlOnTerminal(ws, read, COLOURED);
  assert.ok(result.stdout.includes("a\\u{1b}[31mred\\u{1b}[2Kb"), result.stdout);
});

Deno.test("progress is one line on a terminal, and a line each elsewhere", async () => {
  const files = { "package.json": '{"bin":"main.js"}', "main.js": tinyServer("1") };
  await using npm = new FakeNpm({ tiny: { "1.0.0": files }, other: { "1.0.0": files } });
  const server = (spec: string) => ({ command: "npx", args: ["-y", spec] });
  await using ws = await makeWorkspace({
    pml: {
      version: 1,
      permissions: { allow: ["tiny:*", "other:*"] },
      mcpServers: { tiny: server("tiny"), other: server("other") },
    },
    trusted: true,
    env: { NPM_CONFIG_USERCONFIG: npm.settings },
  });
  const ms = 120_000;
  const result = await runPmlOnTerminal(ws, ["call", "tiny:tell"], { ...COLOURED, ms });
  const redrawn = result.stdout.split(`\r${ESCAPE}K… `).slice(1);
  assert.ok(redrawn.length > 0, result.stdout);
  for (const line of redrawn) assert.match(line, /^Install[^\n]*\r/);
  const plain = await runPmlOnTerminal(ws, ["call", "other:tell"], { ms });
  assert.match(plain.stdout, /^… Install[^\r\n]*\r?\n/m);
});

Deno.test("lists and reports wrap between words at the width of the terminal, and not in pipes", async () => {
  await using ws = await makeWorkspace({ pml: { version: 1 } });
  const command = ["sh", "-c", 'stty cols 60; exec "$@"', "sh", ...pmlCommand()] as const;
  for (const args of [["tools", "filesystem"], ["doctor"]]) {
    const piped = await runPml(ws, args);
    assert.ok(piped.stdout.split("\n").some(({ length }) => length > 60), args.join(" "));
    const result = await runPmlOnTerminal(ws, args, { command });
    const long = result.stdout.split(/\r?\n/).filter((line) => line.length > 60);
    assert.ok(long.every((line) => /^ *\S{40,}$|\S{50,}/.test(line)), long.join("\n"));
    const words = (text: string) =>
      text.replace(/✔|✘|→|!|^(?:ok {2}|warn|FAIL) /gm, " ").split(/\s+/);
    const kept = new Set(words(result.stdout));
    const lost = words(piped.stdout).filter((word) => !kept.has(word));
    assert.deepEqual(lost.filter((word) => !/\d/.test(word)), [], "no word is lost");
  }
});

Deno.test("questions and errors wrap between words, commands do not, and no other line looks like a line of PML", async () => {
  const words = Array.from({ length: 40 }, (_, at) => `word-${at}`).join(" ");
  await using ws = await makeWorkspace({
    pml: {
      version: 1,
      mcpServers: { far: { command: "node", args: ["server.js", words] } },
    },
    trusted: false,
  });
  const command = ["sh", "-c", 'stty cols 50; exec "$@"', "sh", ...pmlCommand()] as const;
  const linesOf = async (args: readonly string[], asks: RegExp) => {
    const result = await runPmlOnTerminal(ws, args, { command, typed: [[asks, "n"]] });
    const lines = result.stdout.split(/\r?\n/);
    const long = lines.filter((line) => line.length > 50);
    // A hash, a path and a command are one word each.
    assert.ok(long.every((line) => /`.*`|\S{36,}/.test(line)), long.join("\n"));
    return lines;
  };
  const content = `content=${words} Server: "other"`;
  const call = await linesOf(
    ["call", "filesystem:write_file", "path=a", content],
    /May it run\?.*\[N\]\s+no/s,
  );
  const at = call.findIndex((line) => /^ {6}"content": "word-0 /.test(line));
  assert.ok(at > 0, call.join("\n"));
  assert.match(call[at + 1] ?? "", /^ {10}word-\d/);
  // Values are indented deeper than PML's own lines.
  assert.deepEqual(call.filter((line) => /^ {0,9}(?:Server|Tool): /.test(line)).length, 2);
  assert.match(call.join(" ").replace(/\s+/g, " "), new RegExp(words));
  const trust = await linesOf(["trust"], /to\s+trust\s+exactly\s+this/s);
  assert.ok(trust.some((line) => /\bsha256 [0-9a-f]{64}\b|^ +[0-9a-f]{64}\)/.test(line)));
  const failed = await runPmlOnTerminal(ws, ["tools", "nothing", "of", "this", "kind"], {
    command,
  });
  assert.match(failed.stdout, /^error: USAGE: .*\r?\n {4}\S/);
  const piped = await runPml(ws, ["tools", "nothing", "of", "this", "kind"]);
  assert.match(piped.stderr, /^error: USAGE: .{50,}\n/);
});
