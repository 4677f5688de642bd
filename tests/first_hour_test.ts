/**
 * Commands of a new user in the first hour, also with mistakes: each answer names the next step.
 *
 * @module
 */

import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import process from "node:process";
import { parse } from "yaml";
import { assertError } from "./cli_greeter.ts";
import { HAS_ACCOUNTS } from "./kit/account.ts";
import { FullHttp } from "./kit/full_http.ts";
import { pmlCommand } from "./kit/pml_command.ts";
import { runPml, runPmlOnTerminal, type TerminalInput } from "./kit/run.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const IN_PROJECT = { files: { "package.json": "{}", "README.md": "hello\n" } };

Deno.test("a hint about a terminal repeats the command as it was typed, quoted for a shell", async () => {
  await using ws = await makeWorkspace(IN_PROJECT);
  const rule = "filesystem:write_file(path=it's/**)";
  const table: readonly (readonly [args: readonly string[], hint: string])[] = [
    [
      ["deny", rule, "--workspace"],
      `pml deny 'filesystem:write_file(path=it'\\''s/**)' --workspace\` yourself on a terminal; \`--json\` only shows it\n`,
    ],
    [
      ["key", "from", "A", "--", "op", "read b"],
      `pml key from A -- op 'read b'\` yourself on a terminal\n`,
    ],
    [["token", "new", "ci"], "pml token new ci` yourself on a terminal\n"],
  ];
  for (const [args, hint] of table) {
    const result = await runPml(ws, args);
    assertError(result, { code: "APPROVAL_REQUIRED", exit: 1 });
    assert.ok(result.stderr.includes(`Run \`${hint}`), result.stderr);
  }
  const output = await runPml(ws, ["deny", rule, "--json"]);
  const { list, rule: written, diff } = JSON.parse(output.stdout);
  assert.deepEqual([list, written], ["deny", rule]);
  assert.match(diff, /^\+ +- "?filesystem:write_file/m);
});

Deno.test("pml call and pml why take arguments as pairs and as one JSON object", async () => {
  await using ws = await makeWorkspace({
    ...IN_PROJECT,
    pml: {
      permissions: { allow: ["filesystem:read_file"], deny: ["filesystem:read_file(path=a)"] },
    },
  });
  const read = await runPml(ws, ["call", "filesystem:read_file", '{"path": "README.md"}']);
  assert.equal(read.stdout, "hello\n");
  for (
    const [said, verdict] of [['{"path":"a"}', "denied"], ["path=a", "denied"], ["path=b", "runs"]]
  ) {
    const { stdout } = await runPml(ws, ["why", "filesystem:read_file", said ?? ""]);
    assert.equal(stdout.split("\n")[0], `filesystem:read_file: ${verdict}`);
  }
});

Deno.test("pml why and pml deny suggest the nearest tool for a mistyped one", async () => {
  await using ws = await makeWorkspace(IN_PROJECT);
  const why = await runPml(ws, ["why", "filesystem:writ_file"]);
  assert.match(why.stderr, /"filesystem" lists no tool "writ_file"\. Did you mean "write_file"\?/);
  const right = await runPml(ws, ["why", "filesystem:write_file"]);
  assert.equal(right.stderr, "");
  const rule = await runPmlOnTerminal(ws, ["deny", "filesystem:remove_fil"], {
    typed: [[/Did\s+you mean "filesystem:remove_file"\?\s[^]*Type "write"/, "no"]],
  });
  assert.equal(rule.code, 1);
});

Deno.test("the error of a mistyped command names the help to read, the nearest word or the next command", async () => {
  // No process listens at this port.
  const env = { PML_REGISTRIES: "http://127.0.0.1:9/mcp" };
  await using ws = await makeWorkspace({ ...IN_PROJECT, env });
  const table: readonly (readonly [line: string, says: RegExp])[] = [
    ["call", /Look at `pml call --help`/],
    ["cal", /Look at `pml --help`/],
    [
      "call filesystem:read_file pth=a",
      /Missing argument: path; "pth" is unknown\n.*`pml tools filesystem:read_file`/,
    ],
    ["call filesystem:read_file path:=5", /path: .*number, not string/],
    ["key lst", /Did you mean "list"\?/],
    ["lock foo", /unknown subcommand "foo"\n.*Use update/],
    ["memory foo", /unknown subcommand "foo"\n.*Use one of show, clear/],
    ["token lst", /Did you mean "list"\?/],
    ["config shw", /Did you mean "show"\?/],
    ["config set gateway.tools_exposure all", /none of meta_only, semantic, hybrid, full_proxy/],
    ["add @scope/package", /Write `pml add npm:@scope\/package`/],
    ["add https://example.com/mcp", /Write `pml add NAME --url https:\/\/example\.com\/mcp`/],
    ["add --url https://example.com/mcp", /Write `pml add NAME --url https:\/\/example\.com\/mcp`/],
    ["add files npx -y @scope/package .", /`pml add files -- npx -y @scope\/package \.`/],
    ["add npx -y @scope/package", /`pml add NAME -- npx -y @scope\/package`/],
    ["add npx @scope/package -y", /`pml add NAME -- npx @scope\/package -y`/],
    ["key from A op read --x", /`pml key from A -- op read --x`/],
    ["add far --url http://example.com/mcp", /"far": .*https:/],
    ["remove git", /It comes with PML; `pml deny git`/],
    ["upgrade git", /Cannot upgrade "git".*\n.*`pml update`/],
    ["learn git", /"git": .*the sandbox\n.*`pml list`/],
    ["logout git", / out at "git".*\n.*`pml list`/],
    [
      "call weather:today",
      /"weather": no server or saved/,
    ],
    ["call my:sky", /"my": no server or saved/],
  ];
  for (const [line, says] of table) {
    const result = await runPml(ws, line.split(" "));
    assert.notEqual(result.code, 0, line);
    assert.match(result.stderr, says, line);
  }
  const none = await runPml(ws, ["memory", "show", "filesystem:read_file"]);
  assert.match(none.stderr, /Nothing is remembered of filesystem:read_file yet/);
});

Deno.test("pml trust after pml init in a project marks only new facts", async () => {
  await using ws = await makeWorkspace({
    files: {
      ...IN_PROJECT.files,
      "tool.ts": "export const __meta__ = { name: 'tool', tools: {} };\n",
    },
  });
  const result = await runPml(ws, ["init", "--yes"]);
  assert.doesNotMatch(result.stderr, /info/);
  const path = ws.file(".pml.json");
  const file = JSON.parse(await Deno.readTextFile(path));
  file.private_mcps = { tool: { type: "deno", path: "./tool.ts" } };
  await writeFile(path, JSON.stringify(file));
  const { facts } = JSON.parse((await runPml(ws, ["trust", "--json"])).stdout);
  const marked = facts.filter((fact: string) => /^[+-] /.test(fact));
  assert.equal(marked.length, 2, JSON.stringify(facts));
  assert.ok(marked.every((fact: string) => fact.includes('"tool"')));
});

Deno.test("pml init --http replaces the entry that PML wrote, and no other", async () => {
  await using ws = await makeWorkspace(IN_PROJECT);
  await runPml(ws, ["init", "--yes"]);
  const http = await runPml(ws, ["init", "--http", "--yes"]);
  assert.doesNotMatch(http.stderr, /does not start PML/);
  const entry = async () =>
    JSON.parse(await Deno.readTextFile(ws.file(".mcp.json"))).mcpServers.pml;
  assert.equal((await entry()).type, "http");
  await runPml(ws, ["init", "--yes"]);
  assert.equal((await entry()).command, "pml");
  const other = { mcpServers: { pml: { command: "else" } } };
  await writeFile(ws.file(".mcp.json"), JSON.stringify(other));
  await runPml(ws, ["init", "--http", "--yes"]);
  assert.deepEqual(await entry(), other.mcpServers.pml);
});

Deno.test("an error about a missing key contains the command that stores it", async () => {
  await using ws = await makeWorkspace({
    pml: { mcpServers: { far: { url: "http://127.0.0.1:9/mcp", headers: { X: "${FAR_KEY}" } } } },
  });
  const result = await runPml(ws, ["tools", "far"]);
  assertError(result, { code: "KEY_MISSING", exit: 1 });
  assert.match(result.stderr, /`pml key set FAR_KEY`.*headers\.X\n/s);
});

/** A server that answers 401, without sign-in data, unless the request has this key. */
function keyedServer(key: string): FullHttp {
  return new FullHttp("modern", {
    guard: ({ headers }) =>
      Promise.resolve(
        headers.get("authorization") === `Bearer ${key}`
          ? undefined
          : new Response("no", { status: 401 }),
      ),
  });
}

const KEY_QUESTION = /it needs a key\. .*none\): $/;

Deno.test("pml add asks for the key of a server that answers 401, stores it and starts the server", async () => {
  await using ws = await makeWorkspace(IN_PROJECT);
  await using server = keyedServer("CANARY-of-depot");
  const result = await runPmlOnTerminal(ws, ["add", "depot", "--url", server.url], {
    typed: [
      [/Add depot.*\[N\] no/, "y"],
      [KEY_QUESTION, "CANARY-of-depot\r"],
      [/Accept.*\[N\] decline/, "y"],
    ],
  });
  assert.doesNotMatch(result.stdout, /You must sign in|CANARY/);
  const file = await Deno.readTextFile(join(ws.home, "config.yaml"));
  assert.match(file, /Authorization: Bearer \$\{DEPOT_TOKEN\}/);
  assert.doesNotMatch(file, /CANARY/);
  assert.match(result.stdout, /depot has \d+ tools/);
  const keys = JSON.parse((await runPml(ws, ["key", "list", "--json"])).stdout).keys;
  assert.deepEqual(
    keys.filter(({ name }: { name: string }) => name === "DEPOT_TOKEN"),
    [{ name: "DEPOT_TOKEN", by: ["depot"], from: "the key file" }],
  );
  assert.equal((await runPml(ws, ["tools", "depot"])).code, 0);
});

Deno.test("pml add does not send the key of another server to a new one of the same variable", async () => {
  await using ws = await makeWorkspace(IN_PROJECT);
  await runPmlOnTerminal(ws, ["key", "set", "DEPOT_TOKEN"], {
    typed: [[/value of DEPOT_TOKEN/, "CANARY-of-another\r"]],
  });
  await using server = keyedServer("CANARY-of-depot");
  const result = await runPmlOnTerminal(ws, ["add", "depot", "--url", server.url], {
    typed: [
      [/Add depot.*\[N\] no/, "y"],
      [KEY_QUESTION, "CANARY-of-depot\r"],
      [/\[O\] .*\[r\]/, "\r"],
      [/Accept.*\[N\] decline/, "y"],
    ],
  });
  assert.match(result.stdout, /depot has \d+ tools/);
  const sent = server.asked.map(({ headers }) => headers.authorization);
  assert.deepEqual([...new Set(sent)], [undefined, "Bearer CANARY-of-depot"]);
});

Deno.test("pml add of a server that answers 401 and gets no key keeps it, and names the next command and the file", async () => {
  await using ws = await makeWorkspace(IN_PROJECT);
  await using server = keyedServer("CANARY-of-depot");
  const result = await runPmlOnTerminal(ws, ["add", "depot", "--url", server.url], {
    typed: [[/Add depot.*\[N\] no/, "y"], [KEY_QUESTION, "\r"]],
  });
  assert.equal(result.code, 1);
  const command = "pml add depot --replace --header 'Bearer ${DEPOT_TOKEN}'";
  assert.match(result.stdout, /error: LOGIN_REQUIRED/);
  assert.ok(result.stdout.includes(`\`${command}\``), result.stdout);
  assert.ok(result.stdout.includes(join(ws.home, "config.yaml;")), result.stdout);
  assert.doesNotMatch(result.stdout, /You must sign in/);
  const listed = JSON.parse((await runPml(ws, ["list", "--json"])).stdout).servers;
  assert.ok(listed.some(({ name }: { name: string }) => name === "depot"));
  const tools = await runPml(ws, ["tools", "depot"]);
  assert.ok(tools.stderr.includes(`\`${command}\``), tools.stderr);
  const args = ["add", "depot", "--replace", "--header", "Bearer ${DEPOT_TOKEN}"];
  const again = await runPmlOnTerminal(ws, args, {
    typed: [
      [/Replace depot.*\[N\] no/, "y"],
      [/DEPOT_TOKEN is not set.*\[N\] no/, "y"],
      [/value of DEPOT_TOKEN/, "CANARY-of-depot\r"],
      [/Accept.*\[N\] decline/, "y"],
    ],
  });
  assert.match(again.stdout, /depot has \d+ tools/);
});

/** Writes a server that ends if one of these variables is missing, and returns its command. */
async function needyServer(ws: Workspace, names: readonly string[]): Promise<readonly string[]> {
  const echo = new URL("kit/echo_server.ts", import.meta.url).href;
  const file = ws.file("needy.ts");
  await writeFile(
    file,
    `for (const name of ${JSON.stringify(names)}) {
      if (Deno.env.get(name)) continue;
      console.error("Error: the environment variable " + name + " is required");
      Deno.exit(1);
    }
    await import(${JSON.stringify(echo)}).then(({ serve }) => serve());\n`,
  );
  const config = new URL("../deno.json", import.meta.url).pathname;
  return [Deno.execPath(), "run", "-A", "--no-check", "-c", config, file];
}

const configOf = async (ws: Workspace) => await Deno.readTextFile(join(ws.home, "config.yaml"));

Deno.test("pml add asks for each variable that the output of a program calls missing, and starts it", async () => {
  await using ws = await makeWorkspace(IN_PROJECT);
  const command = await needyServer(ws, ["DEPOT_URL", "DEPOT_TOKEN"]);
  const result = await runPmlOnTerminal(ws, ["add", "depot", "--", ...command], {
    typed: [
      [/Add depot.*\[N\] no/, "y"],
      [/it needs\s+DEPOT_URL\. .*none\): $/s, "http://depot.example/CANARY\r"],
      [/it needs\s+DEPOT_TOKEN\. .*none\): $/s, "CANARY-of-depot\r"],
      [/Accept.*\[N\] decline/, "y"],
    ],
  });
  assert.match(result.stdout, /depot has 2 tools/);
  assert.doesNotMatch(result.stdout, /CANARY/);
  const file = await configOf(ws);
  assert.match(file, /DEPOT_URL: \$\{DEPOT_URL\}\n +DEPOT_TOKEN: \$\{DEPOT_TOKEN\}\n/);
  assert.doesNotMatch(file, /CANARY/);
});

Deno.test("no server gets a stored key because its output names the key, without a yes", async () => {
  await using ws = await makeWorkspace(IN_PROJECT);
  const command = await needyServer(ws, ["DEPOT_TOKEN"]);
  await writeFile(
    join(ws.home, "config.yaml"),
    "mcpServers:\n  other: { command: 'false', env: { DEPOT_TOKEN: '${DEPOT_TOKEN}' } }\n",
  );
  await runPml(ws, ["key", "set", "DEPOT_TOKEN", "--stdin"], { stdin: "CANARY-of-other" });
  const add = (answers: readonly TerminalInput[]) =>
    runPmlOnTerminal(ws, ["add", "depot", "--", ...command], {
      typed: [[/Add depot.*\[N\] no/, "y"], ...answers],
    });
  const refused = await add([[/used by\s+other\..*\[N\] no/s, "\r"]]);
  assert.equal(refused.code, 1);
  assert.match(refused.stdout.replace(/\s+/g, " "), /add depot --replace --env 'DEPOT_TOKEN=/);
  assert.equal((await configOf(ws)).split("${DEPOT_TOKEN}").length, 2);
  await runPmlOnTerminal(ws, ["remove", "depot"], { typed: [[/\[N\] no/, "y"]] });
  const accepted = await add([
    [/used by\s+other\..*\[N\] no/s, "y"],
    [/Accept.*\[N\] decline/, "y"],
  ]);
  assert.match(accepted.stdout, /depot has 2 tools/);
});

Deno.test("errors of a server that lacks a variable contain the command that adds it, which keeps the definition", async () => {
  await using ws = await makeWorkspace(IN_PROJECT);
  const [program, ...args] = await needyServer(ws, ["DEPOT_TOKEN"]);
  const definition = { command: program, args, env: { A: "1" }, cwd: ws.path, timeout: 60_000 };
  await writeFile(
    join(ws.home, "config.yaml"),
    JSON.stringify({ mcpServers: { depot: definition } }, undefined, 2),
  );
  const command = "pml add depot --replace --env 'DEPOT_TOKEN=${DEPOT_TOKEN}'";
  for (const args of [["tools", "depot"], ["call", "depot:echo"], ["doctor"]]) {
    const { stdout, stderr } = await runPml(ws, args);
    assert.ok(`${stdout}${stderr}`.includes(`\`${command}\``), args.join(" "));
  }
  const call = JSON.parse((await runPml(ws, ["call", "depot:echo", "--json"])).stdout);
  assert.equal(call.error.detail.may_have_run, false, "a start that fails runs no call");
  const set = await runPml(ws, ["key", "set", "DEPOT_TOKEN", "--stdin"], { stdin: "CANARY" });
  assert.match(set.stderr, /--replace --env 'DEPOT_TOKEN=\$\{DEPOT_TOKEN\}'/);
  const change = ["add", "depot", "--replace", "--env", "DEPOT_TOKEN=${DEPOT_TOKEN}"];
  const result = await runPmlOnTerminal(ws, change, {
    typed: [[/Replace depot.*\[N\] no/, "y"], [/Accept.*\[N\] decline/, "y"]],
  });
  assert.match(result.stdout, /depot has 2 tools/);
  const { mcpServers: { depot } } = parse(await configOf(ws));
  const env = { A: "1", DEPOT_TOKEN: "${DEPOT_TOKEN}" };
  assert.deepEqual(depot, { ...definition, env });
  const again = await runPml(ws, ["key", "set", "DEPOT_TOKEN", "--stdin"], { stdin: "CANARY" });
  assert.doesNotMatch(again.stderr, /No server here uses/);
});

Deno.test("pml works where its home is a file, and names the project as the folder for pml init", async () => {
  await using ws = await makeWorkspace(IN_PROJECT);
  await rm(ws.home, { recursive: true });
  await writeFile(ws.home, "");
  const result = await runPml(ws, []);
  assert.equal(result.code, 0, result.stderr);
  await rm(ws.home);
  const top = await runPml(ws, [], { cwd: "/" });
  assert.match(top.stdout, /pml init +# in your project: /);
});

Deno.test({
  name: "an error about a read-only folder does not mention a full disk",
  ignore: !HAS_ACCOUNTS,
  fn: async () => {
    await using ws = await makeWorkspace(IN_PROJECT);
    const mount = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"';
    const own = process.getuid?.() === 0 ? "-m" : "-rm";
    const command = ["unshare", own, "sh", "-c", mount, "sh", ws.path, ...pmlCommand()] as const;
    const result = await runPml(ws, ["init", "--yes"], { command });
    assert.match(result.stderr, /Make its folder writable/);
  },
});

Deno.test("pml outdated ends with 1 where it could not ask", async () => {
  await using ws = await makeWorkspace(IN_PROJECT);
  await writeFile(
    join(ws.home, "config.yaml"),
    "mcpServers:\n  far: { command: npx, args: [-y, some-package] }\n",
  );
  const env = { PATH: dirname(ws.path) };
  const result = await runPml(ws, ["outdated"], { env });
  assert.deepEqual(
    [result.code, /"npm" is not on PATH/.test(result.stdout)],
    [1, true],
    result.stdout,
  );
});
