/**
 * Output for a new user in the second hour: it is correct, names the next step, and fits the
 * screen.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Scripted } from "../src/servers/http/_stage_test.ts";
import { assertError } from "./cli_greeter.ts";
import { freePort } from "./kit/free_port.ts";
import { pmlCommand } from "./kit/pml_command.ts";
import { connectHttp } from "./kit/pml_serve.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const NARROW = ["sh", "-c", 'stty cols 60; exec "$@"', "sh", ...pmlCommand()] as const;
const BOX = `export const __meta__ = {
  name: "box", description: "Keeps things",
  tools: {
    put: {
      description: "Put things into the box that has the name, and tell how many things are in it",
      inputSchema: {
        type: "object",
        properties: {
          name: { type: "string", description: "The name of the box, as it was when it was made" },
          things: { type: "array", items: { type: "object", properties: {
            title: { type: "string" }, weight: { type: "number" }, colour: { type: "string" },
            lastOne: { type: "boolean" },
          }, required: ["title", "weight", "colour", "lastOne"] } },
        },
        required: ["name"],
      },
    },
  },
};
export function put({ name }) { return name; }
`;
const WITH_BOX = {
  files: { "box.js": BOX, "code.ts": 'return "Paris"\n', "README.md": "hello\n" },
  pml: {
    permissions: { allow: ["box:put", "filesystem:write_file"] },
    private_mcps: { box: { type: "deno", path: "./box.js" } },
  },
};

Deno.test("pml doctor contacts a server that worked before, and reports the next step if it fails", async () => {
  const far = new Scripted();
  await using ws = await makeWorkspace({
    pml: { mcpServers: { far: { url: far.url } }, permissions: { allow: ["far:*"] } },
  });
  assert.equal((await runPml(ws, ["tools", "far"])).code, 0);
  const well = await runPml(ws, ["doctor"]);
  assert.match(well.stdout, /^ok {3}server far: private, ready: \d+ tools?$/m);
  assert.match(well.stdout, /^ok {3}lock: there is none yet:/m);
  await far[Symbol.asyncDispose]();
  const states = async () => {
    const outputs = [await runPml(ws, ["list", "--json"]), await runPml(ws, ["tools", "--json"])];
    return outputs.map(({ stdout }) => {
      const { servers } = JSON.parse(stdout);
      return servers.find(({ name }: { name: string }) => name === "far");
    });
  };
  assert.deepEqual((await states()).map(({ state }) => state), ["ready", "ready"]);
  assertError(await runPml(ws, ["call", "far:t"]), { code: "UPSTREAM_DOWN", exit: 1 });
  const failed = await states();
  assert.deepEqual(failed.map(({ state }) => state), ["failed", "failed"]);
  assert.ok(failed.every(({ why }) => why.includes("ago")), JSON.stringify(failed));
  const { code, stdout } = await runPml(ws, ["doctor"]);
  assert.equal(code, 1, stdout);
  // Only the operator of a remote server has its log.
  assert.match(stdout, /^FAIL server far: private, failed: .+\n {5}.*`pml remove far`$/m);
  assert.doesNotMatch(stdout, /`pml logs far`/);
});

Deno.test("pml add takes a name with a package of npm, and suggests the command for other forms", async () => {
  await using ws = await makeWorkspace();
  const { stdout } = await runPml(ws, ["add", "notes", "npm:some-package@1", "--json"]);
  const { definition } = JSON.parse(stdout);
  assert.deepEqual(definition, { command: "npx", args: ["-y", "some-package@1"] });
  const table: readonly (readonly [line: string, says: RegExp])[] = [
    ["notes @a/b", /not a name\n.*Write `pml add npm:@a\/b`/],
    ["notes https://x.example/mcp", /Write `pml add notes --url https:\/\/x\.example\/mcp`/],
    ["npm:", /not a package\n.*Write npm:NAME/],
  ];
  for (const [line, says] of table) {
    const result = await runPml(ws, ["add", ...line.split(" ")]);
    assertError(result, { code: "USAGE", exit: 2 });
    assert.match(result.stderr, says);
  }
});

Deno.test("a hint refers to the typed command: no tool without a name, and no unrelated file", async () => {
  await using ws = await makeWorkspace(WITH_BOX);
  await writeFile(
    join(ws.home, "config.yaml"),
    "mcpServers: { lost: { command: no-such-thing } }\n",
  );
  const table: readonly (readonly [line: string, says: RegExp])[] = [
    [
      "capability save my:a --code code.ts --parameter city=Rome",
      /not a literal .*\n {2}Name each value/,
    ],
    [
      "capability import README.md",
      /JSON object\n {2}Give the file/,
    ],
    ["capability show my:none", /\n {2}List the saved capabilities with `pml capability list`/],
    ["capability show", /"pml capability show": too few /],
    ["key from A", /"pml key from A": too few /],
    ["tools lost", /Install it, .*absolute path\. .*`pml logs lost`/],
  ];
  for (const [line, says] of table) {
    const result = await runPml(ws, line.split(" "));
    assert.notEqual(result.code, 0, line);
    assert.match(result.stderr, says, line);
  }
});

Deno.test("the error of a mistyped capability names the nearest saved one", async () => {
  await using ws = await makeWorkspace(WITH_BOX);
  const saved = await runPmlOnTerminal(ws, ["capability", "save", "my:city", "--code", "code.ts"], {
    typed: [["Save exactly this?", "y"]],
  });
  assert.equal(saved.code, 0, saved.stdout);
  for (const words of ["show my:cty", "rename my:cty my:town"]) {
    const result = await (words.startsWith("show") ? runPml : runPmlOnTerminal)(ws, [
      "capability",
      ...words.split(" "),
    ]);
    assert.match(result.stdout + result.stderr, /Did you mean "my:city"\?/, words);
  }
});

Deno.test("pml --help keeps its two columns on a terminal of 80", async () => {
  await using ws = await makeWorkspace();
  const command = ["sh", "-c", 'stty cols 80; exec "$@"', "sh", ...pmlCommand()] as const;
  const { stdout } = await runPmlOnTerminal(ws, ["--help"], { command });
  const column = stdout.split(/\r?\n/).find((line) => line.includes("--help  "))
    ?.indexOf("show this help") ?? 0;
  assert.ok(column > 20, stdout);
  const broken = stdout.split(/\r?\n/).filter((line) => /^ {3}/.test(line));
  assert.ok(broken.length > 5);
  for (const line of broken) assert.equal(line.search(/[^ ]/), column, line);
});

Deno.test("numbers of one have a singular noun: call, byte, tool", async () => {
  await using ws = await makeWorkspace(WITH_BOX);
  const wrote = await runPml(ws, ["call", "filesystem:write_file", "path=a", "content=x"]);
  assert.match(wrote.stdout, / a \(new file\)\n$/);
  const { stdout } = await runPml(ws, ["memory", "show"]);
  assert.match(stdout, /^filesystem:write_file +1 call, /m);
});

Deno.test("pml tools SERVER:TOOL shows types in full, and like all help fits a narrow screen", async () => {
  await using ws = await makeWorkspace(WITH_BOX);
  const result = await runPml(ws, ["tools", "box:put"]);
  assert.match(result.stdout, /things\? +Array<\{ .*colour: string; lastOne: boolean \}>$/m);
  for (const words of ["tools box:put", "help", "--help", "check box.js"]) {
    const output = await runPmlOnTerminal(ws, words.split(" "), { command: NARROW });
    assert.equal(output.code, 0, output.stdout);
    // deno-lint-ignore no-control-regex
    const lines = output.stdout.replace(/\x1b\[[\d;]*[a-zA-Z]/g, "").split(/\r?\n/);
    // The path of a file cannot be broken, and is as long as the folder of the tests.
    const long = lines.filter((line) => line.length > 60 && !/^\s*\/\S+$/.test(line));
    assert.deepEqual(long, [], words);
  }
});

Deno.test("pml dev lists the arguments of a tool", async () => {
  await using ws = await makeWorkspace(WITH_BOX);
  const result = await runPml(ws, ["dev", "box.js"], { stdin: "put nam=x\n" });
  assert.equal(result.code, 1);
  assert.match(
    result.stdout,
    /BAD_ARGUMENTS: .*Missing argument: name.*\n {2}It takes name, things\n/,
  );
});

Deno.test("a rule whose condition names an unknown argument is reported, with the nearest one", async () => {
  await using ws = await makeWorkspace(WITH_BOX);
  const result = await runPmlOnTerminal(ws, ["deny", "box:put(nam=a)"], {
    typed: [[/names no argument of "box:put"\. Did you mean "name"\?[^]*Type "write"/, ""]],
  });
  assert.equal(result.code, 1, result.stdout);
  const fits = await runPmlOnTerminal(ws, ["deny", "box:put(name=a)"], {
    typed: [['Type "write"', ""]],
  });
  assert.doesNotMatch(fits.stdout, /names no/);
});

Deno.test("doctor accepts rules for a renamed tool and for a fixed argument", async () => {
  const put = { rename: "lay", arguments: { name: "a" } };
  const box = { type: "deno", path: "./box.js", tools: { put } };
  const permissions = { ask: ["box:put(things=a*)"], deny: ["box:put(name=b)"] };
  await using ws = await makeWorkspace({
    files: WITH_BOX.files,
    pml: { permissions, private_mcps: { box } },
  });
  assert.match((await runPml(ws, ["tools", "box"])).stdout, /box:lay/);
  assert.doesNotMatch((await runPml(ws, ["doctor"])).stdout, /^warn rule/m);
});

Deno.test("pml init shows all of an entry that replaces another", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  assert.equal((await runPml(ws, ["init", "--http", "--yes"])).code, 0);
  const { stdout, stderr } = await runPml(ws, ["init", "--dry-run"]);
  assert.match(stdout + stderr, /"pml": \{\n *\+ *"type": "stdio",\n *\+ *"command": "pml",/);
});

Deno.test("the error of a port in use is a sentence, and not the system's error name", async () => {
  await using ws = await makeWorkspace();
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  try {
    const { port } = server.address() as AddressInfo;
    const result = await runPml(ws, ["serve", "--port", `${port}`]);
    assertError(result, { code: "USAGE", exit: 2 });
    assert.match(result.stderr, /another program listens there\n {2}Give another --port/);
  } finally {
    server.close();
  }
});

Deno.test("pml serve sends nothing to an address that another machine may have", async () => {
  await using ws = await makeWorkspace();
  const urls: string[] = [];
  const { fetch } = globalThis;
  globalThis.fetch = (input) => {
    urls.push(String(input));
    return Promise.reject(new TypeError("offline"));
  };
  try {
    const elsewhere = ["--host", "192.0.2.1", "--behind-proxy", "--allow-host", "pml.example.com"];
    const ran = await runPml(ws, ["serve", ...elsewhere]);
    assertError(ran, { code: "USAGE", exit: 2 });
    assert.deepEqual(urls, []);
  } finally {
    globalThis.fetch = fetch;
  }
});

Deno.test("pml serve shows its calls on a terminal, and a second one says that PML serves there", async () => {
  await using ws = await makeWorkspace({ files: { "a.txt": "text" } });
  const port = `${freePort()}`;
  const second = async () => {
    const result = await runPml(ws, ["serve", "--port", port]);
    assertError(result, { code: "USAGE", exit: 2 });
    assert.ok(result.stderr.includes("serves there already"), result.stderr);
  };
  const call = async () => {
    const token = (await Deno.readTextFile(join(ws.home, "serve_token"))).trim();
    await using connected = await connectHttp({ url: `http://127.0.0.1:${port}/mcp`, token });
    const wanted = { tool: "filesystem:read_file", arguments: { path: "a.txt" } };
    await connected.client.callTool({ name: "call", arguments: wanted });
    const secret = { tool: `filesystem:${token}`, arguments: {} };
    await connected.client.callTool({ name: "call", arguments: secret });
  };
  const { code, stdout } = await runPmlOnTerminal(ws, ["serve", "--port", port], {
    typed: [
      [/Serving MCP at /, second],
      ["", call],
      [/Z {2}filesystem:read_file +allow +result +\d+ ms[^]*Z {2}filesystem:/, "\x03"],
    ],
  });
  assert.equal(code, 130);
  const token = (await Deno.readTextFile(join(ws.home, "serve_token"))).trim();
  assert.ok(!stdout.includes(token), "a secret is redacted as in the journal");
});

Deno.test("pml uninstall prints the size of small files in kilobytes, after their description", async () => {
  await using ws = await makeWorkspace();
  await writeFile(join(ws.home, "config.yaml"), "limits: { call_ms: 5000 }\n");
  const result = await runPmlOnTerminal(ws, ["uninstall"], {
    typed: [["Remove all of this", "n"]],
  });
  assert.match(result.stdout, /config\.yaml: your settings, servers and rules,\s+1 KB/);
});

Deno.test("a whole line as the program of shell:exec is refused before anybody is asked", async () => {
  await using ws = await makeWorkspace();
  const line = await runPml(ws, ["call", "shell:exec", "command=ls -la"]);
  assertError(line, { code: "BAD_ARGUMENTS", exit: 1 });
  assert.ok(line.stderr.includes("Arguments go into args"), line.stderr);
  for (const program of ["ls", "/opt/My Program/run", "./a"]) {
    const ran = await runPml(ws, ["call", "shell:exec", `command=${program}`]);
    assertError(ran, { code: "APPROVAL_REQUIRED", exit: 1 });
  }
});

Deno.test("no client sees the name of a server that a rule denies", async () => {
  const mcpServers = { quiet: { command: "quiet" }, notes: { command: "notes" } };
  await using ws = await makeWorkspace({
    pml: { version: 1, permissions: { deny: ["quiet:*"] }, mcpServers },
  });
  await using pml = new RawStdio(ws, { era: "2025-11-25" });
  const { result: hello } = await pml.open();
  const { result: tools } = await pml.request("tools/list", {});
  const { result: state } = await pml.request("resources/read", { uri: "pml://servers" });
  for (const shown of [hello, state].map((part) => JSON.stringify(part))) {
    assert.ok(shown.includes("notes") && !shown.includes("quiet"), shown);
  }
  assert.ok(!JSON.stringify(tools).includes("quiet"));
  assert.ok((await runPml(ws, ["list"])).stdout.includes("quiet"), "the user sees it");
});

Deno.test("a rule that has no effect is reported when it is written, also as JSON", async () => {
  await using ws = await makeWorkspace({
    pml: { version: 1, permissions: { deny: ["git:*"] } },
    trusted: true,
  });
  const warnings = async (rule: string) => {
    const { stdout } = await runPml(ws, ["allow", rule, "--json"]);
    return JSON.parse(stdout).warnings?.length ?? 0;
  };
  assert.equal(await warnings("git:log"), 1, "a deny rule wins");
  assert.equal(await warnings("shell:exec(command=git, args=log)"), 1, "a list matches no pattern");
  assert.equal(await warnings("filesystem:write_fle"), 1, "there is no such tool");
  assert.equal(await warnings("shell:exec(command=git)"), 0);
  assert.equal(await warnings("filesystem:write_file"), 0);
});
