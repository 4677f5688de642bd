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

const APPROVE = /Approve exactly this call\?.*\[N\] no/s;

function clockCode(now: string): string {
  const meta = { name: "clock", tools: { now: {} } };
  return `export const __meta__ = ${JSON.stringify(meta)};\nexport const now = () => "${now}";\n`;
}

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

Deno.test("a rule that denies or allows a waiting call settles it, also from another folder", async () => {
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
    assert.equal(
      await waiting(ws, { cwd: elsewhere }),
      0,
      "its workspace decides, from any folder",
    );
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

Deno.test("a yes counts although the user added an unrelated rule since the call", async () => {
  await using ws = await makeWorkspace();
  await runPml(ws, ["call", "filesystem:remove_file", "path=b.txt"]);
  await runPml(ws, write("a.txt"));
  const ran = await runPmlOnTerminal(ws, ["approve"], {
    typed: [[/remove_file.*Approve exactly this call\?.*\[N\] no/s, "a"], [
      /a\.txt.*\[a\] always.*\[N\] no/s,
      "y",
    ]],
  });
  assert.equal(ran.code, 0, ran.stdout);
  assert.equal((await runPml(ws, write("a.txt"))).code, 0);
  assert.equal(await Deno.readTextFile(ws.file("a.txt")), "text");
  assert.equal(await waiting(ws), 0);
  assert.equal((await runPml(ws, write("a.txt"))).code, 1, "the yes was for one call");
});

Deno.test("a deny rule that comes while the user answers wins, and pml approve approves nothing", async () => {
  await using ws = await makeWorkspace();
  await runPml(ws, write("a.txt"));
  const ran = await runPmlOnTerminal(ws, ["approve"], {
    typed: [
      [APPROVE, async () => await setRules(ws, "{ deny: ['filesystem:write_file'] }")],
      ["", "y"],
    ],
  });
  assert.equal(ran.code, 1, ran.stdout);
  assert.match(ran.stdout, /Not approved/);
  assert.match((await runPml(ws, write("a.txt"))).stderr, /PERMISSION_DENIED/);
  assert.equal(await waiting(ws), 0);
  // A yes from before the rule does not count either.
  await setRules(ws, "{}");
  await runPml(ws, write("a.txt"));
  await runPmlOnTerminal(ws, ["approve"], { typed: [[APPROVE, "y"]] });
  await setRules(ws, "{ deny: ['filesystem:write_file'] }");
  assert.match((await runPml(ws, write("a.txt"))).stderr, /PERMISSION_DENIED/);
  await assert.rejects(Deno.readTextFile(ws.file("a.txt")), Deno.errors.NotFound);
});

Deno.test("a yes is void after a change of the code, and pml approve asks about the change", async () => {
  await using ws = await makeWorkspace({
    files: { "clock.js": clockCode("1") },
    pml: { version: 1, private_mcps: { clock: { type: "deno", path: "clock.js" } } },
  });
  const call = ["call", "clock:now"];
  await runPml(ws, call);
  assert.equal(await waiting(ws), 1);
  const ran = await runPmlOnTerminal(ws, ["approve"], {
    typed: [
      [APPROVE, async () => await writeFiles(ws.path, { "clock.js": clockCode("2") })],
      ["", "y"],
      [/Not approved.*"clock" in .* has changed.*\[N\] no/s, "y"],
    ],
  });
  assert.equal(ran.code, 0, ran.stdout);
  assert.match((await runPml(ws, call)).stdout, /2/);
  // Without an answer, the question about the changed code replaces the one about the call.
  await runPml(ws, call);
  await writeFiles(ws.path, { "clock.js": clockCode("3") });
  assert.match((await runPml(ws, call)).stderr, /APPROVAL_STALE/);
  assert.equal(await waiting(ws), 1);
  await runPmlOnTerminal(ws, ["trust"], { typed: [["to trust exactly this", "trust"]] });
  assert.equal(await waiting(ws), 0, "trust settles the question about the code");
});
