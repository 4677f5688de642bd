/**
 * Several processes of one PML: the answer to a question of PML counts once, at any of them, for
 * exactly the request of the question.
 *
 * @module
 */

import assert from "node:assert/strict";
import { link, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { journalOf, ofKind } from "./attacks/oracles.ts";
import { repoFile } from "./kit/pml_command.ts";
import { servePml } from "./kit/pml_serve.ts";
import { read } from "./attacks/questions.ts";
import { runPml } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import {
  callAt,
  CI,
  configure,
  KEY,
  openIn,
  ranIn,
  RULES,
  sceneryOf,
  stateOf,
  twoOf,
  YES,
} from "./replicas_scene.ts";

const args = { text: "a" };
const inputResponses = YES;

Deno.test("an answer goes to another process than the question, and counts once", async () => {
  await using ws = await sceneryOf();
  await using both = await twoOf(ws);
  const { one, two } = both;
  const requestState = await stateOf(one, "note:add", args);
  assert.match(
    (await callAt(two, "note:add", { args, requestState, inputResponses })).text,
    /added a/,
  );
  const here = await callAt(two, "note:add", { args, requestState, inputResponses });
  assert.match(here.text, /BAD_REQUEST[^]*used already|used already[^]*BAD_REQUEST/);
  const there = await callAt(one, "note:add", { args, requestState, inputResponses });
  assert.match(there.text, /UPSTREAM_DOWN[^]*used already[^]*"may_have_run":true/);
  assert.deepEqual(await ranIn(ws), ["a"]);
  // The sealed state is unreadable for the client.
  assert.doesNotMatch(atob(requestState.slice(2).replace(/[-_]/g, "+")), /digest|nonce/);
  const used = await readdir(`${ws.home}/answered`);
  assert.equal(used.length, 1, `${used}`);
});

Deno.test("of two processes with the same answer at the same instant, one runs the call", async () => {
  await using ws = await sceneryOf();
  await using both = await twoOf(ws);
  const all = [both.one, both.two, both.one, both.two];
  for (let round = 0; round < 5; round++) {
    const args = { text: `round ${round}` };
    const requestState = await stateOf(both.one, "note:add", args);
    const said = await Promise.all(
      all.map((at) => callAt(at, "note:add", { args, requestState, inputResponses })),
    );
    const texts = said.map(({ text }) => text);
    assert.equal(texts.filter((text) => /added round/.test(text)).length, 1, texts.join("\n"));
    assert.equal(texts.filter((text) => /used already/.test(text)).length, 3, texts.join("\n"));
  }
  assert.deepEqual(await ranIn(ws), [0, 1, 2, 3, 4].map((round) => `round ${round}`));
});

Deno.test("a state of another request, identity or key, or a changed one, runs nothing", async () => {
  await using ws = await sceneryOf();
  await using both = await twoOf(ws);
  const { one, two } = both;
  const requestState = await stateOf(one, "note:add", args);
  const refused = /"code":-32602[^]*another request than before/;
  const at = 2 + Math.floor((requestState.length - 2) / 2);
  const flipped = requestState[at] === "A" ? "B" : "A";
  const states = [
    requestState.slice(0, at) + flipped + requestState.slice(at + 1),
    requestState.slice(0, -4),
    "q.",
    "q.AAAA",
    crypto.randomUUID(),
    "",
    "__proto__",
  ];
  for (const other of states) {
    const said = await callAt(two, "note:add", { args, requestState: other, inputResponses });
    assert.match(said.text, refused, other);
  }
  const moved = [
    callAt(two, "note:add_other", { args, requestState, inputResponses }),
    callAt(two, "note:add", { args: { text: "b" }, requestState, inputResponses }),
    callAt(two, "note:add", { args: { text: "a", more: 1 }, requestState, inputResponses }),
    callAt({ ...two, token: CI }, "note:add", { args, requestState, inputResponses }),
  ];
  for (const said of await Promise.all(moved)) assert.match(said.text, refused);
  assert.deepEqual(await ranIn(ws), []);
  // None of these used up the answer.
  assert.match(
    (await callAt(two, "note:add", { args, requestState, inputResponses })).text,
    /added a/,
  );

  await using other = await sceneryOf({ key: `${KEY}-other` });
  // Other processes read its address.
  await using foreign = await servePml(other, [], { ownProcess: true });
  const own = await stateOf(foreign, "note:add", args);
  assert.match(
    (await callAt(two, "note:add", { args, requestState: own, inputResponses })).text,
    refused,
  );
  assert.deepEqual(await ranIn(ws), ["a"]);
});

Deno.test("a late answer asks again, and so does one after the tool changed", async () => {
  const limits = { approval_ms: 1_000 };
  await using ws = await sceneryOf({ config: { limits } });
  await using both = await twoOf(ws);
  const { one, two } = both;
  const late = await stateOf(one, "note:add", args);
  const asked = performance.now();
  await until(() => performance.now() - asked > 1_100);
  const again = await callAt(two, "note:add", { args, requestState: late, inputResponses });
  assert.match(again.text, /"requestState":"q\./, "it asks again");
  assert.deepEqual(await ranIn(ws), []);
});

Deno.test("a clock that jumps neither extends a question nor allows a second use of an answer", async () => {
  await using ws = await sceneryOf();
  const preload = repoFile("tests/kit/jumping_clock.ts");
  await using served = await servePml(ws, [], { preload });
  const clock = (hours: number) => writeFile(`${ws.home}/clock`, `${hours * 3_600_000}`);
  const answer = (requestState: string, args: { readonly text: string }) =>
    callAt(served, "note:add", { args, requestState, inputResponses });
  const answered = await stateOf(served, "note:add", args);
  assert.match((await answer(answered, args)).text, /added a/);
  const kept = await stateOf(served, "note:add", { text: "kept" });
  await clock(5);
  const ahead = await stateOf(served, "note:add", { text: "ahead" });
  const other = { text: "b" };
  assert.match((await answer(await stateOf(served, "note:add", other), other)).text, /added b/);
  await clock(0);
  assert.match((await answer(answered, args)).text, /used already/);
  const early = await answer(ahead, { text: "ahead" });
  assert.match(early.text, /"requestState":"q\./, "it asks again");
  await clock(-5);
  const late = await answer(kept, { text: "kept" });
  assert.match(late.text, /"requestState":"q\./, "it asks again");
  assert.deepEqual(await ranIn(ws), ["a", "b"]);
});

Deno.test("an answer about another definition or code of a tool asks again", async () => {
  await using ws = await sceneryOf();
  await using both = await twoOf(ws);
  const { one, two } = both;
  const requestState = await stateOf(one, "note:add", args);
  const code = await readFile(ws.file("note.js"), "utf8");
  await writeFile(ws.file("note.js"), code.replace("add: {}", 'add: { description: "other" }'));
  const said = await callAt(two, "note:add", { args, requestState, inputResponses });
  assert.match(said.text, /"requestState":"q\./);
  assert.deepEqual(await ranIn(ws), []);
});

Deno.test("the rules are evaluated again when the answer comes", async () => {
  await using ws = await sceneryOf();
  await using both = await twoOf(ws);
  const { one, two } = both;
  const requestState = await stateOf(one, "note:add", args);
  const call = () => callAt(two, "note:add", { args, requestState, inputResponses });
  const write = (rules: object) => configure(ws, { permissions: rules });
  const answers = async (pattern: RegExp) => {
    await until(async () => pattern.test((await callAt(two, "note:add", { args })).text));
  };
  await write({ deny: ["note:add"] });
  await answers(/PERMISSION_DENIED/);
  assert.match((await call()).text, /PERMISSION_DENIED/);
  assert.deepEqual(await ranIn(ws), []);
  // Other rules that ask about this call as well: the answer counts.
  await write({ ask: ["filesystem:*"] });
  await answers(/requestState/);
  await until(async () => /added a/.test((await call()).text));
  assert.deepEqual(await ranIn(ws), ["a"]);
});

Deno.test("a first use and its file are approved across processes", async () => {
  await using ws = await sceneryOf({ trusted: false });
  await using both = await twoOf(ws);
  const { one, two } = both;
  let state: string | undefined;
  const seen: string[] = [];
  const places = [one, two, one, two];
  let said = await callAt(one, "note:add", { args });
  for (let round = 0; said.result?.requestState !== undefined && round < places.length; round++) {
    state = said.result.requestState;
    seen.push(said.result.inputRequests?.approval?.params.message ?? "");
    said = await callAt(places[(round + 1) % 4] ?? one, "note:add", {
      args,
      requestState: state,
      inputResponses,
    });
  }
  assert.match(said.text, /added a/, seen.join("\n"));
  assert.match(seen[0] ?? "", /trusts the workspace file/);
  assert.deepEqual(await ranIn(ws), ["a"]);
  // Trust that one process recorded applies in the other one.
  await until(async () =>
    /"requestState":"q/.test((await callAt(one, "note:add", { args: { text: "b" } })).text)
  );
  const { result } = await callAt(one, "note:add", { args: { text: "b" } });
  assert.doesNotMatch(result?.inputRequests?.approval?.params.message ?? "", /trusts/);
});

Deno.test("changes at one process apply in the other: Always, new identities and revoked ones", async () => {
  await using ws = await sceneryOf({ rules: { ...RULES, ask: [] } });
  await using both = await twoOf(ws);
  const { one, two } = both;
  const requestState = await stateOf(one, "note:add", args);
  const always = { approval: { action: "accept", content: { answer: "Always" } } };
  await read();
  const said = await callAt(two, "note:add", { args, requestState, inputResponses: always });
  assert.match(said.text, /added a/);
  await until(async () =>
    /added b/.test((await callAt(one, "note:add", { args: { text: "b" } })).text)
  );
  const ci = [one, two].map((at) => ({ ...at, url: at.url, token: CI }));
  for (const at of ci) assert.match((await callAt(at, "note:add", { args })).text, /added a/);
  const { code, stderr } = await runPml(ws, ["token", "revoke", "ci"]);
  assert.equal(code, 0, stderr);
  for (const at of ci) {
    await until(async () => (await callAt(at, "note:add", { args })).status === 401);
  }
  // Both write one journal, and every call has a start and an end.
  await until(async () => (await openIn(ws)).length === 0);
  const lines = await journalOf(ws);
  const ids = (kind: "start" | "end") => ofKind(lines, kind).map(({ callId }) => callId).sort();
  assert.deepEqual(ids("start"), ids("end"));
  assert.equal(new Set(ids("start")).size, ids("start").length);
});

Deno.test("a change without a file event is noticed, too", async () => {
  await using ws = await sceneryOf();
  await using both = await twoOf(ws);
  const ci = { url: both.two.url, token: CI };
  assert.equal((await callAt(ci, "note:add", { args })).status, 200);
  // A write through another hard link causes no event in the folder, like a write of another
  // machine.
  await mkdir(`${ws.root}/elsewhere`);
  await link(`${ws.home}/config.yaml`, `${ws.root}/elsewhere/config.yaml`);
  const file = await readFile(`${ws.home}/config.yaml`, "utf8");
  const without = JSON.stringify({ ...JSON.parse(file), identities: {} });
  await writeFile(`${ws.root}/elsewhere/config.yaml`, without);
  await until(async () => (await callAt(ci, "note:add", { args })).status === 401);
});

Deno.test("a sealing key that is missing, short, open to others or from a workspace is refused", async () => {
  await using ws = await sceneryOf();
  const failing = async (serve: object, env: Record<string, string> = {}) => {
    await configure(ws, { serve });
    const spawned = { ...ws, env: { ...ws.env, ...env } };
    const { code, stderr } = await runPml(spawned, ["serve", "--port", "0"]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /CONFIG_INVALID: Cannot use serve.sealing_key[^]*32 random bytes/);
    return stderr;
  };
  const literal = "literal-secret-0123456789abcdef0123456789";
  assert.doesNotMatch(await failing({ sealing_key: literal }), new RegExp(literal));
  assert.match(await failing({ replica_address: "127.0.0.1:4001" }), /it is missing/);
  await writeFile(`${ws.home}/short`, "x".repeat(31), { mode: 0o600 });
  assert.match(await failing({ sealing_key: "short" }), /has 31 bytes/);
  await writeFile(`${ws.home}/open`, "x".repeat(32), { mode: 0o644 });
  assert.match(await failing({ sealing_key: "open" }), /users can read/);
  assert.match(await failing({ sealing_key: "${SEAL}" }), /SEAL is not set/);
  await writeFile(ws.file(".env"), `SEAL=${KEY}\n`);
  assert.match(await failing({ sealing_key: "${SEAL}" }), /SEAL is not set/);
  assert.match(await failing({ sealing_key: "${SEAL}" }, { SEAL: "short" }), /has 5 bytes/);
  const file = JSON.parse(await readFile(ws.file(".pml.json"), "utf8"));
  await configure(ws);
  await writeFile(ws.file(".pml.json"), JSON.stringify({ ...file, serve: { sealing_key: "x" } }));
  assert.match((await runPml(ws, ["config"])).stderr, /serve/);
});
