/**
 * Calls wait for `pml approve` only as long as they need an answer: not after an answer elsewhere,
 * other rules or trust.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { journalOf } from "./attacks/oracles.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { makeWorkspace, type Workspace, writeFiles } from "./kit/workspace.ts";

const MAY_RUN = /May it run\?.*\[N\] no/s;

function write(path: string): readonly string[] {
  return ["call", "filesystem:write_file", `path=${path}`, "content=text"];
}

/** Returns how many calls wait, by `pml approve` and by `pml`, which must agree. */
async function waiting(ws: Workspace, args: { readonly cwd?: string } = {}): Promise<number> {
  const { calls } = JSON.parse((await runPml(ws, ["approve", "--json"], args)).stdout);
  const [, shown] = /^ +waiting +(.*)$/m.exec((await runPml(ws, [], args)).stdout) ?? [];
  assert.equal(shown, ["nothing", "1 call"][calls.length] ?? `${calls.length} calls`);
  return calls.length;
}

async function reasons(ws: Workspace): Promise<readonly unknown[]> {
  return (await journalOf(ws)).filter(({ event }) => event === "settled")
    .map(({ about }) => Object(about).why);
}

async function setRules(ws: Workspace, rules: string): Promise<void> {
  await writeFiles(ws.home, { "config.yaml": `permissions: ${rules}\n` });
}

Deno.test("an answer on another terminal settles the waiting call, also under other rules", async () => {
  await using ws = await makeWorkspace();
  await runPml(ws, write("a.txt"));
  await runPml(ws, write("b.txt"));
  assert.equal(await waiting(ws), 2);
  await runPmlOnTerminal(ws, write("a.txt"), { typed: [[MAY_RUN, "y"]] });
  assert.equal(await Deno.readTextFile(ws.file("a.txt")), "text");
  assert.equal(await waiting(ws), 1);
  await setRules(ws, "{ ask: ['other:*'] }");
  await runPmlOnTerminal(ws, write("b.txt"), { typed: [[MAY_RUN, "n"]] });
  assert.equal(await waiting(ws), 0);
  await runPml(ws, write("c.txt"));
  await runPmlOnTerminal(ws, write("c.txt"), { typed: [[MAY_RUN, "\x03"]] });
  assert.equal(await waiting(ws), 1, "nobody answered");
});

Deno.test("a rule that denies or allows a waiting call settles it, in its workspace", async () => {
  await using ws = await makeWorkspace();
  const elsewhere = join(ws.root, "other");
  await Deno.mkdir(elsewhere);
  const rules = [["denied", "deny"], ["allowed", "allow"]] as const;
  for (const [why, list] of rules) {
    await setRules(ws, "{}");
    await runPml(ws, write("a.txt"));
    await setRules(ws, `{ ${list}: ['filesystem:write_file(path=b*)'] }`);
    assert.equal(await waiting(ws), 1, "the rule is about other arguments");
    await setRules(ws, `{ ${list}: ['filesystem:write_file(path=a*)'] }`);
    assert.equal(await waiting(ws, { cwd: elsewhere }), 1, "its own workspace judges it");
    assert.equal(await waiting(ws), 0, why);
    assert.equal((await reasons(ws)).at(-1), why);
  }
  assert.deepEqual(await reasons(ws), ["denied", "allowed"]);
  await assert.rejects(Deno.readTextFile(ws.file("a.txt")), Deno.errors.NotFound);
});

Deno.test("trust settles a waiting question about the workspace file, and only that", async () => {
  const own = { mcpServers: { crm: { command: "node", args: ["crm.mjs"] } } };
  const files = { "crm.mjs": tinyServer('"fine"') };
  await using ws = await makeWorkspace({ files, pml: { version: 1, ...own }, trusted: false });
  const names = ["crm:greet", "crm:lookup"];
  for (const name of names) await runPml(ws, ["call", name]);
  await runPml(ws, write("a.txt"));
  assert.equal(await waiting(ws), 3);
  await runPmlOnTerminal(ws, ["trust"], { typed: [["to trust exactly this", "trust"]] });
  assert.equal(await waiting(ws), 1);
  assert.deepEqual(await reasons(ws), ["trusted", "trusted"]);
});

Deno.test("pml approve does not ask about a call that an earlier answer allowed", async () => {
  await using ws = await makeWorkspace();
  await runPml(ws, write("a.txt"));
  await runPml(ws, write("b.txt"));
  const ran = await runPmlOnTerminal(ws, ["approve"], {
    typed: [[/Approve exactly this call\?.*\[N\] no/s, "a"]],
  });
  assert.equal(ran.code, 0, ran.stdout);
  assert.doesNotMatch(ran.stdout, /b\.txt/);
  assert.deepEqual(await reasons(ws), ["allowed"]);
  assert.equal((await runPml(ws, write("b.txt"))).code, 0);
});

Deno.test("pml approve --watch shows no call that a rule denied before it began", async () => {
  await using ws = await makeWorkspace();
  await runPml(ws, write("a.txt"));
  await setRules(ws, "{ deny: ['filesystem:write_file(path=a*)'] }");
  const ran = await runPmlOnTerminal(ws, ["approve", "--watch"], {
    typed: [
      ["Ctrl-C", async () => await runPml(ws, write("b.txt"))],
      [/b\.txt.*Approve exactly/s, "\x03"],
      ["Still pending", "\x03"],
    ],
  });
  assert.equal(ran.code, 130, ran.stdout);
  assert.doesNotMatch(ran.stdout, /a\.txt/);
});
