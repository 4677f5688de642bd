import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { assertError } from "./cli_greeter.ts";
import { FakeNpm } from "./kit/fake_npm.ts";
import { assertGolden } from "./kit/golden.ts";
import { KeptPackages } from "./kit/kept_packages.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const MS = 60_000;
/** A server whose tool does what its arguments request. */
const MAIN = tinyServer(`(async ({ read, keep, without }) => {
  const { readFileSync, writeFileSync } = require("node:fs");
  try {
    if (without !== undefined) readFileSync(without);
  } catch {
    return "well without";
  }
  const text = read === undefined ? "nothing" : readFileSync(read, "utf8");
  if (keep !== undefined) writeFileSync(keep, text);
  return text;
})(params.arguments)`);

const kept = new KeptPackages();

interface House extends AsyncDisposable {
  readonly ws: Workspace;
  readonly secret: string;
}

async function house({ trusted = true, deny = [] as string[], main = MAIN } = {}): Promise<House> {
  const npm = new FakeNpm({
    tiny: { "1.0.0": { "package.json": '{"bin":"main.js"}', "main.js": main } },
  });
  const ws = await makeWorkspace({
    pml: `{
  "version": 1,
  "permissions": { "allow": ["tiny:*"], "deny": ${JSON.stringify(deny)} },
  // mine
  "mcpServers": {
    "tiny": { "command": "npx", "args": ["-y", "tiny"] }
  }
}
`,
    trusted,
    env: { NPM_CONFIG_USERCONFIG: npm.settings },
  });
  const isKept = trusted && main === MAIN;
  if (isKept) await kept.give(ws);
  const folder = await Deno.makeTempDir();
  const secret = join(await Deno.realPath(folder), "known.txt");
  await writeFile(secret, "what lies outside");
  return {
    ws,
    secret,
    [Symbol.asyncDispose]: async () => {
      if (isKept) await kept.keep(ws);
      await ws[Symbol.asyncDispose]();
      await npm[Symbol.asyncDispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

function reading(path: string, more = {}): readonly string[] {
  return ["tiny:tell", JSON.stringify({ read: path, ...more })];
}

Deno.test("pml learn tries a server with its grants, shows the denied access, and changes nothing", async () => {
  await using at = await house();
  const { ws, secret } = at;
  const before = await Deno.readTextFile(ws.file(".pml.json"));
  const plain = await runPml(ws, ["learn", "tiny"], { ms: MS });
  assert.equal(plain.code, 0, plain.stderr);
  // Nothing is proposed before a tool worked, and the text has a call to try.
  assert.match(
    plain.stdout,
    /^It starts\. No tool was tried\.[^]*\n {2}pml learn tiny tiny:tell '\{\}'/,
  );
  assert.doesNotMatch(plain.stdout, /"confine"/);
  const json = JSON.parse((await runPml(ws, ["learn", "tiny", "--json"], { ms: MS })).stdout);
  assert.deepEqual([json.diff, json.tried, json.example], [
    "",
    [],
    "pml learn tiny tiny:tell '{}'",
  ]);
  const kept = ws.file("kept.txt");
  const result = await runPml(ws, ["learn", "--json", "tiny", ...reading(secret, { keep: kept })], {
    ms: MS,
  });
  assert.equal(result.code, 1);
  const { tried, missing, grants, failures } = JSON.parse(result.stdout);
  assert.deepEqual([tried, missing, grants], [[], { read: [secret] }, {}]);
  assert.match(failures[0], /Requires read access/);
  assert.doesNotMatch(failures[0], /\\u\{a\}/);
  await assert.rejects(Deno.stat(kept), "what was denied was not read");
  assert.equal(await Deno.readTextFile(ws.file(".pml.json")), before);
  const left = await Array.fromAsync(Deno.readDir(join(ws.home, "servers")));
  assert.deepEqual(left.filter(({ name }) => name.startsWith("trial")), []);
});

Deno.test("the question about a call of a trial names its confinement, not the command that runs", async () => {
  await using at = await house();
  const { ws } = at;
  await writeFile(join(ws.home, "config.yaml"), "permissions: { ask: ['tiny:*'] }\n");
  const { stdout } = await runPmlOnTerminal(ws, ["learn", "tiny", "tiny:tell"], {
    typed: [["May it run?", "n"]],
    ms: MS,
  });
  const [line = ""] = /runs the command[^]*?(?=Arguments)/.exec(stdout) ?? [];
  assertGolden("question/a call of a trial", line.replace(/\s+/g, " "));
});

Deno.test("pml learn on a terminal asks before it tries more, and before it writes", async () => {
  await using at = await house();
  const { ws, secret } = at;
  const typed = [[/denied.*\?.*\[y\]/s, "yes"], [/Write this into .*\[y\]/s, "yes"]] as const;
  const args = ["learn", "tiny", ...reading(secret), "tiny:tell", '{"keep": "made.txt"}'];
  const result = await runPmlOnTerminal(ws, args, { typed, ms: MS });
  assert.equal(result.code, 0, result.stdout);
  assert.match(result.stdout, /Trying "tiny", confined to .*with no grant/);
  assert.match(result.stdout, /Trying "tiny", confined to .*with the grants: read .*known\.txt/);
  const text = await Deno.readTextFile(ws.file(".pml.json"));
  assert.match(text, /\/\/ mine/);
  const said = JSON.parse(text.replace("// mine", ""));
  assert.equal(said.mcpServers.tiny.confine, true);
  assert.deepEqual(said.grants, { tiny: { read: [secret] } });
  const called = await runPml(ws, ["call", "tiny:tell", "--args", reading(secret)[1] ?? ""], {
    ms: MS,
  });
  assert.match(called.stdout, /what lies outside/);
  const denied = JSON.stringify({ read: join(secret, "../other.txt") });
  const other = await runPml(ws, ["call", "tiny:tell", "--args", denied], { ms: MS });
  assert.match(other.stderr, /Requires read access/);
  const left = await Array.fromAsync(Deno.readDir(join(ws.home, "servers")));
  assert.deepEqual(left.filter(({ name }) => name.startsWith("trial")), []);
});

Deno.test("pml learn grants no more after a no, and writes nothing", async () => {
  await using at = await house();
  const { ws, secret } = at;
  const before = await Deno.readTextFile(ws.file(".pml.json"));
  const kept = ws.file("kept.txt");
  const args = ["learn", "tiny", ...reading(secret, { keep: kept })];
  const result = await runPmlOnTerminal(ws, args, {
    typed: [[/denied accesses\?.*\[y\]/s, "no"]],
    ms: MS,
  });
  assert.equal(result.code, 1, result.stdout);
  await assert.rejects(Deno.stat(kept));
  const off = await runPmlOnTerminal(ws, ["learn", "tiny", "tiny:tell"], {
    typed: [[/Write this into .*\[y\]/s, "no"]],
    ms: MS,
  });
  assert.equal(off.code, 1, off.stdout);
  assert.equal(await Deno.readTextFile(ws.file(".pml.json")), before);
});

Deno.test("pml learn starts nothing that is untrusted, no module, and no tool of another server", async () => {
  await using at = await house({ trusted: false });
  const { ws } = at;
  assertError(await runPml(ws, ["learn", "tiny"]), { code: "WORKSPACE_UNTRUSTED", exit: 1 });
  await assert.rejects(Deno.stat(join(ws.home, "servers")), "nothing was installed");
  assertError(await runPml(ws, ["learn", "filesystem"]), { code: "USAGE", exit: 2 });
  assertError(await runPml(ws, ["learn", "tiny", "shell:exec"]), { code: "USAGE", exit: 2 });
  assertError(await runPml(ws, ["learn"]), { code: "USAGE", exit: 2 });
});

Deno.test("pml learn shows denied access without which a server works, and does not propose it", async () => {
  await using at = await house();
  const call = ["tiny:tell", JSON.stringify({ without: at.secret })];
  const result = await runPml(at.ws, ["learn", "tiny", ...call], { ms: MS });
  assert.equal(result.code, 0, result.stderr);
  assert.match(result.stdout, /It worked without:\n {2}read .*known\.txt/);
  assert.doesNotMatch(result.stdout, /\+.*grants/);
});

Deno.test("pml learn calls no tool that the rules deny", async () => {
  await using at = await house({ deny: ["tiny:tell"] });
  const result = await runPml(at.ws, ["learn", "tiny", "tiny:tell"], { ms: MS });
  assertError(result, { code: "PERMISSION_DENIED", exit: 1 });
});

Deno.test("pml learn writes grants for a server of config.yaml into that file, and for no other server of that name", async () => {
  await using at = await house();
  const { ws, secret } = at;
  const path = join(ws.home, "config.yaml");
  const server = "mcpServers:\n  mine: { command: npx, args: [-y, tiny] } # mine\n";
  await writeFile(path, `permissions:\n  allow: [ "mine:*" ]\n${server}`);
  const [tool = "", args = ""] = reading(secret);
  const learned = ["learn", "mine", tool.replace("tiny", "mine"), args];
  const result = await runPmlOnTerminal(ws, learned, {
    typed: [[/denied.*\?.*\[y\]/s, "yes"], [/Write this into .*config\.yaml\?.*\[N\] no/s, "yes"]],
    ms: MS,
  });
  assert.equal(result.code, 0, result.stdout);
  const text = await Deno.readTextFile(path);
  assert.match(text, /# mine/);
  assert.match(text, /confine: true/);
  assert.match(text, /grants:\n +mine:\n +read:/);
  const read = () => runPml(ws, ["call", "mine:tell", "--args", args], { ms: MS });
  const called = await read();
  assert.match(called.stdout, /what lies outside/, called.stderr);
  // A server with that name in a workspace gets none of these grants.
  const other = { command: "npx", args: ["-y", "tiny"], confine: true };
  await writeFile(
    ws.file(".pml.json"),
    JSON.stringify({ version: 1, permissions: { allow: ["mine:*"] }, mcpServers: { mine: other } }),
  );
  const denied = await read();
  assert.match(denied.stderr, /Requires read access/, denied.stdout);
});

Deno.test("pml learn without a call offers one to a tool that reads, and names it in the question", async () => {
  const main = MAIN.replace(
    '{ name: "tell",',
    '{ name: "write" }, { name: "tell", annotations: { readOnlyHint: true },',
  )
    .replace(
      '{ name: "write" }',
      '{ name: "write", inputSchema: { type: "object", required: ["text"] } }',
    );
  await using at = await house({ main });
  const before = await Deno.readTextFile(at.ws.file(".pml.json"));
  const no = await runPmlOnTerminal(at.ws, ["learn", "tiny"], {
    typed: [[/Try tiny:tell \{\} now\?/, "n"]],
    ms: MS,
  });
  assert.equal(no.code, 0, no.stdout);
  assert.match(no.stdout, /^ {2}pml learn tiny tiny:write '[^']+'\r?\n {2}tiny:write writes/m);
  const yes = await runPmlOnTerminal(at.ws, ["learn", "tiny"], {
    typed: [
      [/Try tiny:tell \{\} now\?/, "y"],
      [
        /tiny:tell \{\}\r?\n.*: tiny:write\. .*\r?\n {2}pml learn tiny tiny:tell '\{\}' tiny:write[^]*Write this/,
        "n",
      ],
    ],
    ms: MS,
  });
  assert.equal(yes.code, 1, yes.stdout);
  assert.equal(await Deno.readTextFile(at.ws.file(".pml.json")), before);
});

Deno.test("pml learn offers no call whose arguments are too long to show", async () => {
  const schema =
    `{ type: "object", required: ["text"], properties: { text: { default: "x".repeat(600) } } }`;
  const main = MAIN.replace(
    'inputSchema: { type: "object" }',
    `annotations: { readOnlyHint: true }, inputSchema: ${schema}`,
  );
  await using at = await house({ main });
  const result = await runPmlOnTerminal(at.ws, ["learn", "tiny"], { ms: MS });
  assert.equal(result.code, 0, result.stdout);
  assert.doesNotMatch(result.stdout, /now\?/);
});

Deno.test("pml learn names no destructive tool in its example, and no existing file for a tool that writes", async () => {
  const path =
    `inputSchema: { type: "object", required: ["path"], properties: { path: { type: "string" } } }`;
  const main = MAIN.replace(
    '{ name: "tell",',
    `{ name: "erase", ${path} }, { name: "save_file", ${path} }, { name: "tell",`,
  );
  await using at = await house({ main });
  await writeFile(at.ws.file("own.txt"), "mine");
  const { example } = JSON.parse(
    (await runPml(at.ws, ["learn", "tiny", "--json", "tiny:tell"], { ms: MS })).stdout,
  );
  assert.doesNotMatch(example, /erase|own\.txt/);
  assert.match(example, /tiny:save_file '\{"path":"[^"]*\/example\.txt"\}'$/);
});

Deno.test("pml learn offers the data of the user's home without which a server works", async () => {
  await using at = await house();
  const { ws } = at;
  const notes = join(ws.env.HOME ?? "", "notes.db");
  await writeFile(notes, "old data");
  const call = ["tiny:tell", JSON.stringify({ without: notes })];
  const json = JSON.parse(
    (await runPml(ws, ["learn", "tiny", "--json", ...call], { ms: MS })).stdout,
  );
  assert.deepEqual(json.unseen, [await Deno.realPath(notes)]);
  const result = await runPmlOnTerminal(ws, ["learn", "tiny", ...call], {
    typed: [[/notes\.db[^]*did not see\?/, "y"], [/Write this into/, "y"]],
    ms: MS,
  });
  assert.equal(result.code, 0, result.stdout);
  const { grants } = JSON.parse(
    (await Deno.readTextFile(ws.file(".pml.json"))).replace("// mine", ""),
  );
  assert.deepEqual(Object.keys(grants.tiny), ["read"]);
  assert.match(grants.tiny.read[0], /notes\.db$/);
});

/** A server that appends to a file in its package, or to that of its variable. */
const KEEPING = tinyServer(`(() => {
  const { appendFileSync, readFileSync } = require("node:fs");
  const file = process.env.MEMORY_FILE_PATH ?? require("node:path").join(__dirname, "memory.jsonl");
  appendFileSync(file, params.arguments.text ?? "more");
  return readFileSync(file, "utf8");
})()`);

Deno.test("pml learn names old data before a server gets a data folder, and copies it after a yes", async () => {
  await using at = await house({ main: KEEPING });
  const { ws } = at;
  const textOf = (result: { readonly stdout: string }) => result.stdout.trim();
  // The server kept data in its package before, and so did npx of a client.
  const old = await runPml(ws, ["call", "tiny:tell", "text=old"], { ms: MS });
  assert.equal(textOf(old), '"old"');
  const npx = join(ws.env.HOME ?? "", ".npm/_npx/0a/node_modules/tiny");
  await Deno.mkdir(npx, { recursive: true });
  await writeFile(join(npx, "memory.jsonl"), "older");
  await Deno.utime(join(npx, "memory.jsonl"), 1, 1);
  const args = ["learn", "tiny", "tiny:tell"];
  const retry = [/its own folder\?/, "y"] as const;
  const copy =
    /servers[^]*memory\.jsonl[^]*_npx[^]*memory\.jsonl[^]*Copy .*servers.*memory\.jsonl there first\?/;
  const declined = await runPmlOnTerminal(ws, args, {
    typed: [retry, [copy, "y"], [/Write this into/, "n"]],
    ms: MS,
  });
  assert.equal(declined.code, 1, declined.stdout);
  const data = async () => {
    const files = await Array.fromAsync(walk(join(ws.home, "data")));
    return files.filter((path) => path.endsWith("memory.jsonl"));
  };
  assert.deepEqual(await data(), [], "a copy stayed");
  const written = await runPmlOnTerminal(ws, args, {
    typed: [retry, [copy, "y"], [/Write this into/, "y"]],
    ms: MS,
  });
  assert.equal(written.code, 0, written.stdout);
  assert.match(written.stdout, /memory\.jsonl: copied/);
  const called = await runPml(ws, ["call", "tiny:tell", "text=new"], { ms: MS });
  assert.equal(textOf(called), '"oldmorenew"');
});

/** A server that looks for a file in its package, or at the path of its variable, and saves there. */
const LOOKING = tinyServer(`(() => {
  const { existsSync, readFileSync, writeFileSync } = require("node:fs");
  const own = require("node:path").join(__dirname, "memory.jsonl");
  const file = process.env.MEMORY_FILE_PATH ?? own;
  if (params.arguments.text !== undefined) writeFileSync(file, params.arguments.text);
  return existsSync(file) ? readFileSync(file, "utf8") : "nothing";
})()`);

Deno.test("pml learn proposes a data folder for a server that only read, so that its tools can write", async () => {
  await using at = await house({ main: LOOKING });
  const { ws } = at;
  const { data_env } = JSON.parse(
    (await runPml(ws, ["learn", "tiny", "tiny:tell", "--json"], { ms: MS })).stdout,
  );
  assert.deepEqual(data_env, { MEMORY_FILE_PATH: "${dataFolder}/memory.jsonl" });
  const result = await runPmlOnTerminal(ws, ["learn", "tiny", "tiny:tell"], {
    typed: [
      [/MEMORY_FILE_PATH[^]*own data folder\?/, "y"],
      [/MEMORY_FILE_PATH[^]*Write this into/, "y"],
    ],
    ms: MS,
  });
  assert.equal(result.code, 0, result.stdout);
  const written = await runPml(ws, ["call", "tiny:tell", "text=kept"], { ms: MS });
  assert.equal(written.stdout.trim(), '"kept"', written.stderr);
});

Deno.test("pml learn repeats the data that was not copied in its last question", async () => {
  await using at = await house({ main: KEEPING });
  const { ws } = at;
  assert.equal((await runPml(ws, ["call", "tiny:tell", "text=old"], { ms: MS })).code, 0);
  const result = await runPmlOnTerminal(ws, ["learn", "tiny", "tiny:tell"], {
    typed: [
      [/its own folder\?/, "y"],
      [/there first\?/, "n"],
      [/node_modules\/tiny\/memory\.jsonl \(3 bytes[^]*Write this into/, "y"],
    ],
    ms: MS,
  });
  assert.equal(result.code, 0, result.stdout);
  const called = await runPml(ws, ["call", "tiny:tell", "text=new"], { ms: MS });
  assert.equal(called.stdout.trim(), '"morenew"');
});

async function* walk(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) yield* walk(join(folder, name));
    else yield join(folder, name);
  }
}

Deno.test("pml learn tries a data folder by its variable, and writes it after a yes", async () => {
  const main = tinyServer(`(() => {
    const { appendFileSync, readFileSync } = require("node:fs");
    const file = process.env.MEMORY_FILE_PATH ?? require("node:path").join(__dirname, "memory.jsonl");
    appendFileSync(file, "kept");
    return readFileSync(file, "utf8");
  })()`);
  await using at = await house({ main });
  const typed = [[/and its own folder\?.*\[y\]/s, "yes"], [
    /Write this into .*\[y\]/s,
    "yes",
  ]] as const;
  const result = await runPmlOnTerminal(at.ws, ["learn", "tiny", "tiny:tell"], { typed, ms: MS });
  assert.equal(result.code, 0, result.stdout);
  const said = JSON.parse(
    (await Deno.readTextFile(at.ws.file(".pml.json"))).replace("// mine", ""),
  );
  assert.deepEqual(said.mcpServers.tiny.env, { MEMORY_FILE_PATH: "\${dataFolder}/memory.jsonl" });
  const called = await runPml(at.ws, ["call", "tiny:tell"], { ms: MS });
  assert.match(called.stdout, /kept/);
});
