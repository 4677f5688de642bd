/**
 * `pml audit` and `pml audit verify`, with journals written by a spawned PML and by this process.
 *
 * @module
 */

import assert from "node:assert/strict";
import { appendFile, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Journal } from "../src/audit/journal.ts";
import { Redactor } from "../src/audit/redact.ts";
import { sha256 } from "../src/core/hash.ts";
import { pause } from "../src/io/waiting.ts";
import { followOutput } from "./kit/followed_output.ts";
import { pmlCommand } from "./kit/pml_command.ts";
import { runPml } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const SECRET = "hunter2-correct-horse";
const CRM = `params.arguments.fail ? (() => { throw new Error("no") })() : "fine"`;

function makeScene(): Promise<Workspace> {
  return makeWorkspace({
    files: { "crm.mjs": tinyServer(CRM), "good.txt": "good\n" },
    pml: {
      version: 1,
      permissions: { allow: ["crm:*", "filesystem:*"] },
      mcpServers: { crm: { command: "node", args: ["crm.mjs"] } },
    },
  });
}

function journalIn(home: string, journalBytes = 900): Journal {
  const limits = { journalBytes, journalFiles: 1 };
  return Journal.open({ home, limits }, new Redactor(), { onFailedWrite: assert.fail });
}

async function filesIn(ws: Workspace): Promise<readonly string[]> {
  const folder = join(ws.home, "journal");
  return (await readdir(folder)).sort().map((name) => join(folder, name));
}

Deno.test("pml audit shows and filters calls, the newest last, without arguments", async () => {
  await using ws = await makeScene();
  const none = await runPml(ws, ["audit"]);
  assert.deepEqual([none.code, none.stdout], [0, ""]);
  assert.match(none.stderr, /contains no matching call/);
  await runPml(ws, ["call", "filesystem:read_file", "path=good.txt"]);
  await runPml(ws, ["call", "filesystem:read_file", `path=${SECRET}`]);
  const all = await runPml(ws, ["audit"]);
  assert.equal(all.code, 0, all.stderr);
  const lines = all.stdout.trim().split("\n");
  assert.deepEqual(lines, lines.toSorted());
  assert.equal(lines.length, 2, "each call is one line");
  assert.match(all.stdout, /^\S+Z +filesystem:read_file +allow +result +\d+ ms$/m);
  const events = await runPml(ws, ["audit", "--kind", "event"]);
  assert.match(events.stdout, /^\S+Z +event +journal opened +\{"run":/m);
  assert.ok(!all.stdout.includes(SECRET));
  const failed = await runPml(ws, ["audit", "--failed", "--tool", "filesystem:read_file"]);
  assert.match(failed.stdout, /^\S+ +filesystem:read_file .*(failed|tool error).*\n$/);
  const json = await runPml(ws, ["audit", "--json", "--kind", "start", "--limit", "1"]);
  const record = JSON.parse(json.stdout);
  assert.deepEqual([record.kind, record.tool], ["start", "filesystem:read_file"]);
  for (const args of [["--server", "crm"], ["--tool", "crm"], ["--since", "2999-01-01"]]) {
    const { code, stdout } = await runPml(ws, ["audit", ...args]);
    assert.deepEqual([code, stdout], [0, ""], args.join(" "));
  }
});

Deno.test("pml audit shows the calls of this workspace, and of all with their folders", async () => {
  await using ws = await makeScene();
  await runPml(ws, ["call", "filesystem:read_file", "path=good.txt"]);
  const folder = join(ws.path, "other");
  await mkdir(folder);
  await writeFile(join(folder, ".pml.json"), `{"version":1}`);
  const other = { ...ws, path: folder };
  const none = await runPml(other, ["audit"]);
  assert.deepEqual([none.code, none.stdout], [0, ""]);
  assert.match(none.stderr, /1 other workspace.*--all/);
  await runPml(other, ["call", "filesystem:list_directory", "path=."]);
  const own = await runPml(other, ["audit"]);
  assert.match(own.stdout, /^\S+ +filesystem:list_directory .* ms\n$/);
  const all = (await runPml(other, ["audit", "--all"])).stdout.trim().split("\n");
  assert.deepEqual(all.map((line) => line.split("  ").at(-1)), [ws.path, folder]);
  const json = await runPml(other, ["audit", "--json", "--kind", "start"]);
  assert.equal(JSON.parse(json.stdout).workspace, folder);
  const both = await runPml(other, ["audit", "--all", "--json", "--kind", "start"]);
  const records = both.stdout.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(records.map(({ workspace }) => workspace), [ws.path, folder]);
  assert.equal(both.stderr, "");
});

Deno.test("pml audit refuses invalid options and subcommands", async () => {
  await using ws = await makeWorkspace();
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [["--kind", "strat"], /Unknown kind "strat"\n.*one of start, end, event/],
    [["--since", "soon"], /Cannot read the time "soon"\n.*2h/],
    [["--limit", "0"], /Cannot use "0" as a limit/],
    [["--tool", "git:log(path=x)"], /values of arguments/],
    [["--tool", "git:@reads"], /only reads/],
    [["verfy"], /unknown subcommand "verfy"\n.*Did you mean "verify"\?/],
  ];
  for (const [args, said] of cases) {
    const { code, stderr } = await runPml(ws, ["audit", ...args]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, said);
  }
});

Deno.test("pml audit --follow begins with new records, unless --limit or --since names older ones", async () => {
  await using ws = await makeWorkspace();
  using journal = journalIn(ws.home, 1_000_000);
  await journal.write({ kind: "event", event: "made-before" });
  for (const more of ["", "--limit 9999", "--since 1h --limit 9999"]) {
    const args = ["audit", "--follow", "--kind", "event", ...more.split(" ").filter(Boolean)];
    await using pml = followOutput(ws, args);
    // The command may still be starting.
    await until(async () => {
      await journal.write({ kind: "event", event: "made-later" });
      return pml.text.includes("made-later");
    });
    assert.equal(pml.text.includes("made-before"), more !== "", more);
  }
});

Deno.test("pml audit --follow shows new records, across files, until it is stopped", async () => {
  await using ws = await makeWorkspace();
  const [program = "", ...args] = [...pmlCommand(), "audit", "--follow", "--json", "--limit", "20"];
  const child = new Deno.Command(program, {
    args,
    cwd: ws.path,
    env: ws.env,
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  let text = "";
  const reading = (async () => {
    for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) text += part;
  })();
  try {
    using journal = journalIn(ws.home);
    for (let at = 0; at < 12; at++) {
      await journal.write({ kind: "event", event: `made-${at}-here` });
      await until(() => text.includes(`made-${at}-here`));
    }
    assert.equal((await filesIn(ws)).length, 1, "older files were removed");
  } finally {
    child.kill("SIGINT");
  }
  const { code } = await child.status;
  await reading;
  assert.equal(code, 130);
  const seen = text.trim().split("\n").map((line) => JSON.parse(line).seq);
  assert.deepEqual(seen.slice(0, 12), [...Array(12).keys()]);
});

Deno.test("pml audit verify names the changed line, removed files, and links (AU2, GX13)", async () => {
  await using ws = await makeScene();
  await runPml(ws, ["call", "filesystem:read_file", "path=good.txt"]);
  const good = await runPml(ws, ["audit", "verify", "--json"]);
  assert.equal(good.code, 0, good.stderr);
  const { ok, files, cut, open } = JSON.parse(good.stdout);
  assert.deepEqual([ok, files, cut, open], [true, 1, [], []]);
  const [file = ""] = await filesIn(ws);
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replace('"kind":"start"', '"kind":"stirt"'));
  const bad = await runPml(ws, ["audit", "verify"]);
  assert.equal(bad.code, 1);
  assert.ok(
    bad.stdout.includes(`${file}:2: its content `),
    bad.stdout,
  );
  await writeFile(file, text);
  await appendFile(file, "no record\n");
  const result = await runPml(ws, ["audit"]);
  assert.match(result.stderr, /without a record: 1/);
  await writeFile(file, text);
  {
    using journal = journalIn(ws.home);
    for (let at = 0; at < 12; at++) await journal.write({ kind: "event", event: "more" });
  }
  const rotated = await runPml(ws, ["audit", "verify"]);
  assert.equal(rotated.code, 0, rotated.stdout);
  assert.match(rotated.stdout, /older records .*removed/);
  if (Deno.build.os === "windows") return;
  await symlink(file, file.replace("0001.jsonl", "0002.jsonl"));
  const linked = await runPml(ws, ["audit", "verify"]);
  assert.notEqual(linked.code, 0);
  assert.match(linked.stderr, /0002\.jsonl": .*regular file/);
});

Deno.test("pml audit verify detects a rewritten journal by a checkpoint (GX13)", async () => {
  await using ws = await makeScene();
  await runPml(ws, ["call", "filesystem:read_file", "path=good.txt"]);
  await pause(1_100, new AbortController().signal); // records count for a checkpoint after 1 s
  const first = await runPml(ws, ["audit", "verify"]);
  const [, checkpoint = ""] = /^Checkpoint: (.*)$/m.exec(first.stdout) ?? [];
  assert.match(checkpoint, /^2\d{3}-.*Z\/[0-9a-f]{64}$/, first.stdout);
  const age = Date.now() - Date.parse(checkpoint.split("/")[0] ?? "");
  assert.ok(age >= 1_000, "a record of the same time may still be written");
  await runPml(ws, ["call", "filesystem:read_file", "path=good.txt"]);
  const grown = await runPml(ws, ["audit", "verify", "--checkpoint", checkpoint]);
  assert.equal(grown.code, 0, grown.stdout);
  const [file = ""] = await filesIn(ws);
  await forge(file);
  assert.equal((await runPml(ws, ["audit", "verify"])).code, 0, "the forged chain is whole");
  const forged = await runPml(ws, ["audit", "verify", "--checkpoint", checkpoint]);
  assert.equal(forged.code, 1);
  assert.match(forged.stdout, /the checkpoint: .*changed or removed/);
  await rm(file);
  const removed = await runPml(ws, ["audit", "verify", "--checkpoint", checkpoint, "--json"]);
  assert.equal(JSON.parse(removed.stdout).matches, false);
  const wrong = await runPml(ws, ["audit", "verify", "--checkpoint", "x"]);
  assert.equal(wrong.code, 2);
});

/** Removes the start of a call, and hashes the rest anew. */
async function forge(file: string): Promise<void> {
  const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
  const records = lines.map((line) => JSON.parse(line)).filter(({ kind }) => kind !== "start");
  let prev = "0".repeat(64);
  const forged = records.map(({ flush: _, prev: __, hash: ___, seq: ____, ...record }, at) => {
    const body = JSON.stringify({ seq: at, ...record }).slice(0, -1);
    const text = `${body},"flush":${at + 1},"prev":"${prev}"`;
    prev = sha256(text);
    return `${text},"hash":"${prev}"}\n`;
  });
  await writeFile(file, forged.join(""));
}
