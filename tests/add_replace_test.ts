/**
 * `pml add --replace`, and the keys that `pml add` needs, on a terminal.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse as yaml } from "yaml";
import { toolId } from "../src/core/tool_id.ts";
import { MultiToolRules } from "../src/policy/multi_tool_rules.ts";
import { Scripted } from "../src/servers/http/_stage_test.ts";
import { assertError } from "./cli_greeter.ts";
import { AuthorizationServer } from "./kit/authorization_server.ts";
import { connect } from "./kit/client.ts";
import { denoCommand } from "./kit/pml_command.ts";
import { ProtectedHttp } from "./kit/protected_http.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { signIn } from "./kit/sign_in.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const [COMMAND = "", ...ARGS] = denoCommand("tests/kit/echo_server.ts");
const ENV = ["--env", "DENO_DIR=${DENO_DIR}"];
const ACCEPT = ["[y] accept", "y"] as const;
const CONFIG = `# mine
mcpServers:
  git-hub: { command: "true" } # another one
  echo:
    command: ${COMMAND}
    args: ${JSON.stringify(ARGS)}
    env: { DENO_DIR: "\${DENO_DIR}" }
    timeout: 5000
permissions:
  allow:
    - echo:echo # the tool
    - git:log
grants:
  echo: { net: [example.com] }
`;

async function withEcho(): Promise<Workspace> {
  const ws = await makeWorkspace();
  await writeFile(join(ws.home, "config.yaml"), CONFIG);
  return ws;
}

const configOf = (ws: Workspace) => Deno.readTextFile(join(ws.home, "config.yaml"));

Deno.test("pml add --replace shows the difference, removes the rules and grants after a yes, and undoes it", async () => {
  await using ws = await withEcho();
  // The earlier server is pinned by its first call.
  assert.equal((await runPml(ws, ["call", "echo:echo", "text=hi"])).code, 0);
  const replaced = await runPmlOnTerminal(ws, [
    ...["add", "echo", "--replace", ...ENV, "--", COMMAND, ...ARGS, "other"],
  ], {
    typed: [
      [/\+ +- other[^]*does not have: timeout[^]*Replace echo and start/, "y"],
      [/- .*echo:echo[^]*Remove the rules and grants/, "y"],
      ACCEPT,
    ],
  });
  assert.equal(replaced.code, 0, replaced.stdout);
  const text = await configOf(ws);
  assert.match(text, /# mine\n/);
  assert.match(text, /# another one/);
  assert.match(text, /- other/);
  assert.doesNotMatch(text, /echo:echo|grants|timeout|example\.com/);
  // Its pins ended with it, so the new server is no changed one.
  const call = await runPml(ws, ["call", "echo:echo", "text=hi"]);
  assertError(call, { code: "APPROVAL_REQUIRED", exit: 1 });
  const undone = await runPmlOnTerminal(ws, ["add", "--undo"], { typed: [["Continue?", "y"]] });
  assert.equal(undone.code, 0, undone.stdout);
  assert.equal(await configOf(ws), CONFIG);
  assertError(await runPml(ws, ["add", "--undo"]), { code: "USAGE", exit: 2 });
});

Deno.test("pml add --undo brings the rules of both files back", async () => {
  const pml = {
    version: 1,
    permissions: { ask: ["echo:echo"] },
    grants: { echo: { read: ["a"] } },
  };
  await using ws = await makeWorkspace({ pml: JSON.stringify(pml), trusted: true });
  await writeFile(join(ws.home, "config.yaml"), CONFIG);
  const replaced = await runPmlOnTerminal(ws, [
    ...["add", "echo", "--replace", ...ENV, "--", COMMAND, ...ARGS, "other"],
  ], {
    typed: [[/Replace echo and start/, "y"], [/rules and grants/, "y"], ACCEPT],
  });
  assert.equal(replaced.code, 0, replaced.stdout);
  const own = async () => JSON.parse(await Deno.readTextFile(ws.file(".pml.json")));
  assert.doesNotMatch(JSON.stringify(await own()), /echo/);
  const undone = await runPmlOnTerminal(ws, ["add", "--undo"], {
    typed: [[/come back:[^]*ask echo:echo[^]*\.pml\.json[^]*grants of echo[^]*Continue\?/, "y"]],
  });
  assert.equal(undone.code, 0, undone.stdout);
  assert.equal(await configOf(ws), CONFIG);
  assert.deepEqual(await own(), pml);
  const trust = JSON.parse((await runPml(ws, ["trust", "--json"])).stdout);
  assert.equal(trust.trusted, true);
});

/** Adds a server whose tool has the text of a file as its description, and allows its tools. */
async function withDescribed(): Promise<
  { readonly ws: Workspace; readonly line: readonly string[] }
> {
  const ws = await makeWorkspace({ files: { words: "as it was" } });
  const definition = '{ name: "tell",';
  const words = JSON.stringify(ws.file("words"));
  const code = tinyServer("params.name").replace(
    definition,
    `${definition} description: process.getBuiltinModule("fs").readFileSync(${words}, "utf8"),`,
  );
  const file = ws.file("server.cjs");
  await writeFile(file, code);
  const line = [COMMAND, "run", "-A", file];
  const [command, ...args] = line;
  const value = { permissions: { allow: ["x:*"] }, mcpServers: { x: { command, args } } };
  await writeFile(join(ws.home, "config.yaml"), JSON.stringify(value));
  return { ws, line };
}

Deno.test("a tool that changed during a replacement of its server needs an approval after it", async () => {
  for (const isAccepted of [true, false]) {
    const { ws } = await withDescribed();
    await using _ = ws;
    assert.equal((await runPml(ws, ["call", "x:tell"])).code, 0);
    const replaced = await runPmlOnTerminal(ws, [
      // It has no tool of the same name.
      ...["add", "x", "--replace", ...ENV, "--", COMMAND, ...ARGS],
    ], {
      typed: [
        ["Replace x", "y"],
        ["Remove the rules", "n"],
        isAccepted ? ACCEPT : [/\[N\] decline/, "n"],
      ],
    });
    assert.match(replaced.stdout, isAccepted ? /x has \d+ tools?/ : /not added/);
    await writeFile(ws.file("words"), "changed");
    if (isAccepted) {
      const undone = await runPmlOnTerminal(ws, ["add", "--undo"], { typed: [["Continue?", "y"]] });
      assert.equal(undone.code, 0, undone.stdout);
    }
    await runPml(ws, ["doctor"]);
    assertError(await runPml(ws, ["call", "x:tell"]), { code: "APPROVAL_STALE", exit: 1 });
  }
});

Deno.test("pml add --undo in another workspace writes no rules there", async () => {
  const { ws, line } = await withDescribed();
  await using _ = ws;
  const [command, ...args] = line;
  const other = ws.file("other");
  await mkdir(other);
  const ask = { ask: ["*"] };
  const pmls = [
    [ws.path, {
      version: 1,
      permissions: { allow: ["x:tell"], ...ask },
      grants: { x: { run: ["git"] } },
    }],
    [other, { version: 1, permissions: ask, mcpServers: { x: { command, args } } }],
  ] as const;
  for (const [cwd, value] of pmls) {
    await writeFile(join(cwd, ".pml.json"), JSON.stringify(value));
    const trusted = await runPmlOnTerminal(ws, ["trust"], {
      cwd,
      typed: [["exactly this", "trust\r"]],
    });
    assert.equal(trusted.code, 0, trusted.stdout);
  }
  const before = await Deno.readTextFile(join(other, ".pml.json"));
  const replaced = await runPmlOnTerminal(ws, [
    ...["add", "x", "--no-workspace", "--replace", "--", ...line, "other"],
  ], { typed: [["Replace x", "y"], ["Remove the rules", "y"], ACCEPT] });
  assert.equal(replaced.code, 0, replaced.stdout);
  const undone = await runPmlOnTerminal(ws, ["add", "--undo"], {
    cwd: other,
    typed: [[
      /do not come back,[^]*allow x:tell[^]*grants of x \{"run":\["git"\]\}[^]*Continue\?/,
      "y",
    ]],
  });
  assert.equal(undone.code, 0, undone.stdout);
  assert.equal(await Deno.readTextFile(join(other, ".pml.json")), before);
});

Deno.test("pml add --undo restores the effects that the user saw for the rules of one answer", async () => {
  const { ws, line } = await withDescribed();
  await using _ = ws;
  const source = join(ws.home, "config.yaml");
  const rules = new MultiToolRules(ws.home);
  const config = await configOf(ws);
  await writeFile(source, config.replace(`["x:*"]`, `["x:tell","x:own"]`));
  const shown = { reads: true, destroys: false };
  await rules.add(source, [{ id: toolId("x", "tell"), effect: shown }]);
  const replaced = await runPmlOnTerminal(ws, ["add", "x", "--replace", "--", ...line, "other"], {
    typed: [["Replace x", "y"], ["Remove the rules", "y"], ACCEPT],
  });
  assert.equal(replaced.code, 0, replaced.stdout);
  for (const tool of ["tell", "own"]) {
    await rules.add(source, [{ id: toolId("x", tool), effect: { reads: false, destroys: true } }]);
  }
  const undone = await runPmlOnTerminal(ws, ["add", "--undo"], { typed: [["Continue?", "y"]] });
  assert.equal(undone.code, 0, undone.stdout);
  assert.deepEqual(rules.recordOf({ rule: "x:tell", source }), shown);
  assert.equal(rules.has({ rule: "x:own", source }), false);
});

Deno.test("pml add --undo removes the allow rules and grants that were written for the replacement", async () => {
  const pml = { version: 1, permissions: { allow: ["git:log"] } };
  for (const keeps of [true, false]) {
    await using ws = await makeWorkspace({ pml: JSON.stringify(pml), trusted: true });
    const config = CONFIG.replace("permissions:", "permissions:\n  deny: [ 'echo:late' ]");
    await writeFile(join(ws.home, "config.yaml"), config);
    const replaced = await runPmlOnTerminal(ws, [
      ...["add", "echo", "--replace", ...ENV, "--", COMMAND, ...ARGS, "other"],
    ], {
      typed: [["Replace echo", "y"], ["rules and grants", keeps ? "n" : "y"], ACCEPT],
    });
    assert.equal(replaced.code, 0, replaced.stdout);
    // The user allows more of the replacement, in both files, and takes back a deny rule.
    const grants = await configOf(ws);
    if (keeps) {
      const more = grants.replace("[example.com]", "[example.com, evil.example]");
      assert.notEqual(more, grants);
      await writeFile(join(ws.home, "config.yaml"), more);
    }
    for (const words of [["echo:late"], ["echo:*", "--workspace"]]) {
      const { code, stdout } = await runPmlOnTerminal(ws, ["allow", ...words], {
        typed: [["write exactly", "write\r"]],
      });
      assert.equal(code, 0, stdout);
    }
    const undone = await runPmlOnTerminal(ws, ["add", "--undo"], {
      typed: [
        [/are removed:[^]*allow echo:late[^]*allow echo:\*[^]*come back:[^]*deny echo:late/, "y"],
      ],
    });
    assert.equal(undone.code, 0, undone.stdout);
    const text = await configOf(ws);
    const { allow, deny } = yaml(text).permissions;
    assert.deepEqual([allow.toSorted(), deny], [["echo:echo", "git:log"], ["echo:late"]]);
    assert.deepEqual(yaml(text).grants, { echo: { net: ["example.com"] } });
    assert.deepEqual(JSON.parse(await Deno.readTextFile(ws.file(".pml.json"))), pml);
    const trust = JSON.parse((await runPml(ws, ["trust", "--json"])).stdout);
    assert.equal(trust.trusted, true);
  }
});

Deno.test("pml add asks about the rules and grants of an earlier server of its name before it starts", async () => {
  await using ws = await makeWorkspace();
  const config = "permissions: { allow: [echo:echo, git:log] }\ngrants: { echo: { read: [a] } }\n";
  const args = ["add", "echo", ...ENV, "--", COMMAND, ...ARGS];
  for (const key of ["n", "y"]) {
    await writeFile(join(ws.home, "config.yaml"), config);
    const { code, stdout } = await runPmlOnTerminal(ws, args, {
      typed: [
        ["Add echo and start", "y"],
        [/- .*echo:echo[^]*rules and grants for.*echo/, key],
        ACCEPT,
      ],
    });
    assert.equal(code, 0, stdout);
    assert.equal(/echo:echo/.test(await configOf(ws)), key === "n");
    assert.equal(/read:/.test(await configOf(ws)), key === "n");
    assert.match(await configOf(ws), /git:log/);
    const call = await runPml(ws, ["call", "echo:echo", "text=hi"]);
    assert.equal(call.code, key === "n" ? 0 : 1, call.stderr);
  }
});

Deno.test("pml add --replace brings the earlier server back if the table is declined, and after other changes", async () => {
  await using ws = await withEcho();
  const args = ["add", "echo", "--replace", ...ENV, "--", COMMAND, ...ARGS, "other"];
  const yes = [/Replace echo and start/, "y"] as const;
  const rules = [/grants of echo/, "n"] as const;
  const declined = await runPmlOnTerminal(ws, args, {
    typed: [yes, rules, ["[N] decline", "n"]],
  });
  assert.equal(declined.code, 1, declined.stdout);
  assert.equal(await configOf(ws), CONFIG);
  const no = await runPmlOnTerminal(ws, args, { typed: [[yes[0], "n"]] });
  assert.equal(no.code, 1, no.stdout);
  assert.equal(await configOf(ws), CONFIG);
  const failing = await runPmlOnTerminal(ws, ["add", "echo", "--replace", "--", "false"], {
    typed: [yes, rules],
  });
  assert.equal(failing.code, 1);
  assert.match(failing.stdout, /stays configured, in .*; .*`pml add --undo`/);
  await writeFile(join(ws.home, "config.yaml"), `${await configOf(ws)}limits: { call_ms: 5000 }\n`);
  const imports = await runPml(ws, ["import", "--undo"]);
  assertError(imports, { code: "USAGE", exit: 2 });
  const undone = await runPmlOnTerminal(ws, ["add", "--undo"], {
    typed: [[/the replacement of echo[^]*Continue\?/, "y"]],
  });
  assert.equal(undone.code, 0, undone.stdout);
  const text = await configOf(ws);
  assert.match(text, /call_ms: 5000/);
  assert.match(text, /timeout: 5000/);
  assert.doesNotMatch(text, /false/);
});

Deno.test("pml add --replace needs a terminal, a new definition and one place, and adds a new name", async () => {
  await using ws = await withEcho();
  const piped = await runPml(ws, ["add", "echo", "--replace", "--", "true"]);
  assertError(piped, { code: "APPROVAL_REQUIRED", exit: 1 });
  assertError(await runPml(ws, ["add", "echo", "--replace"]), { code: "USAGE", exit: 2 });
  const json = await runPml(ws, ["add", "echo", "--replace", "--json", "--", "true"]);
  assert.match(JSON.parse(json.stdout).diff, /^- +command/m);
  await writeFile(
    ws.file(".pml.json"),
    '{ "version": 1, "mcpServers": { "echo": { "command": "true" } } }',
  );
  const both = await runPml(ws, ["add", "echo", "--replace", "--json", "--", "true"]);
  assert.match(both.stderr, /--no-workspace/);
  const own = ["add", "echo", "--replace", "--no-workspace", "--json", "--", "true"];
  assert.equal(JSON.parse((await runPml(ws, own)).stdout).path, join(ws.home, "config.yaml"));
  const fresh = await runPml(ws, ["add", "fresh", "--replace", "--json", "--", "true"]);
  assert.deepEqual(JSON.parse(fresh.stdout).definition, { command: "true", args: [] });
  assert.equal(await configOf(ws), CONFIG);
});

Deno.test("pml add drops neither a header for a program, nor a variable for a server at an address", async () => {
  await using ws = await withEcho();
  const [url, env] = [["--url", "https://far.example.com/mcp"], ["--env", "A=b"]];
  for (
    const args of [["far", ...url, ...env], ["echo", "--replace", "--header", "A: b"], [
      "near",
      "--header",
      "A: b",
      "--",
      "true",
    ]]
  ) {
    assertError(await runPml(ws, ["add", ...args]), { code: "USAGE", exit: 2 });
  }
  assert.equal(await configOf(ws), CONFIG);
});

Deno.test("pml add says whether the variable of a header is set, and where", async () => {
  await using ws = await makeWorkspace({ env: { TIX_ENV: "env-0a1b2c3d4e5f" } });
  await writeFile(join(ws.home, "keys.env"), 'TIX_FILE="file-0a1b2c3d4e5f"\n', { mode: 0o600 });
  const added = async (header: string) => {
    const args = [
      "add",
      "far",
      "--url",
      "https://far.example.com/mcp",
      "--header",
      header,
      "--json",
    ];
    const { stdout, stderr } = await runPml(ws, args);
    return stdout.startsWith("{") ? JSON.parse(stdout) : { stderr };
  };
  const table = [
    ["Authorization: Bearer ${TIX_ENV}", { name: "TIX_ENV", set: true, from: "the environment" }],
    ["Bearer ${TIX_FILE}", { name: "TIX_FILE", set: true, from: "the key file" }],
    ["Authorization: Bearer ${TIX_NONE}", { name: "TIX_NONE", set: false }],
  ] as const;
  for (const [header, key] of table) {
    const { keys, definition } = await added(header);
    assert.deepEqual(keys, [key]);
    assert.deepEqual(definition.headers, { Authorization: `Bearer \${${key.name}}` });
  }
  // A shell replaced the variable in double quotes.
  assert.match((await added("Authorization: Bearer ")).error.hint, /single quotes/);
  const shown = await runPmlOnTerminal(ws, [
    ...["add", "far", "--url", "https://far.example.com/mcp"],
    ...["--header", "Authorization: Bearer ${TIX_NONE}", "--header", "X-Own: ${tix}"],
  ], { typed: [["start it?", "n"]] });
  assert.match(shown.stdout, /needs TIX_NONE, which is not set: `pml key set TIX_NONE`/);
  assert.match(shown.stdout, /^\$\{tix\} /m);
});

Deno.test("pml add --replace offers to keep a new key in place of the stored one", async () => {
  await using far = new Scripted();
  await using ws = await makeWorkspace();
  const [old, now] = ["fc-0a1b2c3d4e5f60718293a4b5c6d7e8f9", "fc-99887766554433221100aabbccddeeff"];
  const add = async (
    key: string,
    more: readonly string[],
    typed: readonly (readonly [string | RegExp, string])[],
  ) => {
    const args = ["add", "far", ...more, "--url", new URL("/mcp", far.url).href];
    return await runPmlOnTerminal(ws, [...args, "--header", `Authorization: Bearer ${key}`], {
      typed,
    });
  };
  const keep = [/Store FAR_TOKEN in PML, as you typed it\?/, "y"] as const;
  const first = await add(old, [], [["start it?", "y"], keep, ACCEPT]);
  assert.equal(first.code, 0, first.stdout);
  const second = await add(now, ["--replace"], [
    // Only this server uses the key, so Enter replaces it.
    [/FAR_TOKEN .*used by far\)[^]*\[R\]/, "\r"],
    [/stays as it is[^]*Replace far/, "y"],
    ACCEPT,
  ]);
  assert.equal(second.code, 0, second.stdout);
  // The definition is the same, so nothing else of the server ends.
  assert.doesNotMatch(second.stdout, /Remove the rules/);
  const keys = await Deno.readTextFile(join(ws.home, "keys.env"));
  assert.ok(keys.includes(now) && !keys.includes(old), keys);
  assert.doesNotMatch(await configOf(ws), /fc-/);
});

Deno.test("pml add of a second server with the key of another account keeps both keys, or replaces one after an answer", async () => {
  const [old, now] = ["wk_live_1111aaaa1111aaaa1111", "wk_live_6666bbbb6666bbbb6666"];
  const config = "mcpServers:\n  wiki: { command: wiki, env: { WIKI_TOKEN: '${WIKI_TOKEN}' } }\n";
  for (const answer of ["\r", "r", "\x03"]) {
    await using ws = await makeWorkspace();
    await writeFile(join(ws.home, "config.yaml"), config);
    await runPml(ws, ["key", "set", "WIKI_TOKEN", "--stdin"], { stdin: `${old}\n` });
    const args = ["add", "notes", "--env", `WIKI_TOKEN=${now}`, "--", "no-such-notes"];
    const { keys, definition } = JSON.parse(
      (await runPml(ws, ["add", "--json", ...args.slice(1)])).stdout,
    );
    assert.equal(definition.env.WIKI_TOKEN, "${NOTES_WIKI_TOKEN}");
    assert.deepEqual(keys, [{ name: "NOTES_WIKI_TOKEN", set: false, otherValueOf: "WIKI_TOKEN" }]);
    const rest = answer === "\r"
      ? [["start it?", "y"], [/Store NOTES_WIKI_TOKEN/, "y"]] as const
      : answer === "r"
      ? [[/It replaces another[^]*start it\?/, "y"]] as const
      : [];
    const ran = await runPmlOnTerminal(ws, args, {
      typed: [[/WIKI_TOKEN .*used by wiki\)[^]*\[O\] notes[^]*\[r\]/, answer], ...rest],
    });
    assert.ok(!ran.stdout.replaceAll(args.join(" "), "").includes(now), ran.stdout);
    const written = await configOf(ws);
    const stored = (await Deno.readTextFile(join(ws.home, "keys.env"))).match(/^\w+=.*$/gm)?.sort();
    if (answer === "\r") {
      assert.match(written, /WIKI_TOKEN: \$\{NOTES_WIKI_TOKEN\}/);
      assert.deepEqual(stored, [`NOTES_WIKI_TOKEN="${now}"`, `WIKI_TOKEN="${old}"`]);
    } else if (answer === "r") {
      assert.match(written, /notes:[^]*WIKI_TOKEN: \$\{WIKI_TOKEN\}/);
      assert.deepEqual(stored, [`WIKI_TOKEN="${now}"`]);
    } else {
      assert.equal(written, config);
      assert.deepEqual(stored, [`WIKI_TOKEN="${old}"`]);
    }
  }
});

Deno.test("pml add uses another name for a typed key without a question if the environment has another value", async () => {
  await using ws = await makeWorkspace({ env: { WIKI_TOKEN: "wk_live_1111aaaa1111aaaa1111" } });
  const now = "wk_live_6666bbbb6666bbbb6666";
  const args = ["add", "notes", "--env", `WIKI_TOKEN=${now}`, "--", "no-such-notes"];
  const ran = await runPmlOnTerminal(ws, args, {
    typed: [[/in the environment\)[^]*start it\?/, "y"], [/Store NOTES_WIKI_TOKEN/, "y"]],
  });
  assert.match(await configOf(ws), /WIKI_TOKEN: \$\{NOTES_WIKI_TOKEN\}/, ran.stdout);
  assert.match(await Deno.readTextFile(join(ws.home, "keys.env")), /^NOTES_WIKI_TOKEN=/m);
});

Deno.test("pml add offers to set the key that a header names, and starts the server with it", async () => {
  await using far = new Scripted();
  await using ws = await makeWorkspace();
  const args = ["add", "far", "--url", new URL("/mcp", far.url).href, "--header", "Bearer ${TIX}"];
  const stopped = await runPmlOnTerminal(ws, args, {
    typed: [["start it?", "y"], [/TIX is not set\./, "\x03"]],
  });
  assert.equal(stopped.code, 130);
  assert.match(stopped.stdout, /CANCELLED/);
  assert.doesNotMatch(stopped.stdout, /The value of TIX/);
  await assert.rejects(Deno.stat(join(ws.home, "config.yaml")), Deno.errors.NotFound);
  const result = await runPmlOnTerminal(ws, args, {
    typed: [
      ["start it?", "y"],
      [/TIX is not set\./, "y"],
      ["The value of TIX", "tix-0a1b2c3d4e5f"],
      ACCEPT,
    ],
  });
  assert.equal(result.code, 0, result.stdout);
  assert.doesNotMatch(result.stdout, /tix-0a1b/);
  assert.match(await Deno.readTextFile(join(ws.home, "keys.env")), /TIX="tix-0a1b2c3d4e5f"/);
});

Deno.test("pml add --replace with another address offers to sign out at the earlier one, and sends its token nowhere", async () => {
  await using server = new AuthorizationServer({ scopes: ["read"] });
  await using mcp = new ProtectedHttp("modern", { server, scope: "read" });
  await using far = new Scripted();
  await using ws = await makeWorkspace();
  const config = `mcpServers:\n  far: { url: "${mcp.url}" }\n`;
  await writeFile(join(ws.home, "config.yaml"), config);
  const signedIn = await signIn(ws, "far");
  assert.equal(signedIn.code, 0, signedIn.stderr);
  const args = ["add", "far", "--replace", "--url", new URL("/mcp", far.url).href];
  const replaced = await runPmlOnTerminal(ws, args, {
    typed: [["Replace far", "y"], [/Sign out there\?/, "y"], ACCEPT],
  });
  assert.equal(replaced.code, 0, replaced.stdout);
  assert.ok(replaced.stdout.includes(`Signed out at ${mcp.url}`), replaced.stdout);
  assert.ok(far.came.length > 0);
  assert.ok(far.came.every(({ headers }) => !headers.has("authorization")));
  const again = await runPml(ws, ["logout", "far"]);
  assert.match(again.stdout, /not signed in/);
});

Deno.test("a client that is connected while its server is replaced never runs the new one by the old rules", async () => {
  await using ws = await withEcho();
  await using connection = await connect(ws);
  const { client } = connection;
  const call = async () => {
    const args = { tool: "echo:echo", arguments: { text: "hi" } };
    return JSON.stringify(await client.callTool({ name: "call", arguments: args }));
  };
  assert.doesNotMatch(await call(), /APPROVAL/);
  let isReplaced = false;
  const answers: string[] = [];
  const calling = (async () => {
    while (!isReplaced) answers.push(await call());
    answers.push(await call());
  })();
  const args = ["add", "echo", "--replace", ...ENV, "--env", "NEW=1", "--", COMMAND, ...ARGS];
  const replaced = await runPmlOnTerminal(ws, args, {
    typed: [["Replace echo", "y"], [/grants of echo/, "y"], ACCEPT],
  });
  isReplaced = true;
  await calling;
  assert.equal(replaced.code, 0, replaced.stdout);
  assert.match(answers.at(-1) ?? "", /APPROVAL_REQUIRED/);
  // Once a call asked, no later one ran.
  const first = answers.findIndex((answer) => answer.includes("APPROVAL_"));
  assert.ok(answers.slice(first).every((answer) => answer.includes("APPROVAL_")));
});
