import assert from "node:assert/strict";
import { join } from "node:path";
import fc from "fast-check";
import { sha256 } from "../core/hash.ts";
import { Journal } from "./journal.ts";
import { JournalReader } from "./journal_lines.ts";
import { Redactor } from "./redact.ts";
import { verifyJournal } from "./verify.ts";
import { assertGolden } from "../../tests/kit/golden.ts";

const FAILS = { onFailedWrite: assert.fail };
const LIMITS = { journalBytes: 16_000_000, journalFiles: 8 };

async function written(calls: number): Promise<{ readonly home: string; readonly text: string }> {
  const home = Deno.makeTempDirSync();
  const journal = Journal.open({ home, limits: LIMITS }, new Redactor(), FAILS);
  for (let i = 0; i < calls; i++) {
    const callId = `c${i}`;
    await journal.write({
      kind: "start",
      callId,
      actor: "a",
      via: "v",
      tool: "s:t",
      arguments: {},
    });
    if (i !== 1) journal.append({ kind: "end", callId, outcome: "result", ms: 1 });
  }
  journal[Symbol.dispose]();
  const [file] = [...Deno.readDirSync(join(home, "journal"))];
  return { home, text: Deno.readTextFileSync(join(home, "journal", file?.name ?? "")) };
}

Deno.test("verifyJournal() accepts an unchanged journal", async () => {
  const { home, text } = await written(3);
  const file = join(home, "copy.jsonl");
  Deno.writeTextFileSync(file, text);
  assert.deepEqual(await verifyJournal(file), {
    records: 7,
    closed: true,
    complete: true,
  });
  Deno.removeSync(home, { recursive: true });
});

/** Returns the number of the flush that each line belongs to. */
function flushesOf(text: string): readonly number[] {
  let flush = 1;
  return text.trimEnd().split("\n").map((line) => line.includes('"hash":') ? flush++ : flush);
}

Deno.test("verifyJournal() names the flush of any changed byte (AU2, GX13)", async () => {
  const { home, text } = await written(3);
  const file = join(home, "copy.jsonl");
  const bytes = new TextEncoder().encode(text);
  const flushes = flushesOf(text);
  await fc.assert(
    fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 0, max: 255 }), async (at, to) => {
      fc.pre(bytes[at] !== to);
      Deno.writeFileSync(file, bytes.with(at, to));
      const line = text.slice(0, at).split("\n").length;
      assert.equal((await verifyJournal(file)).bad?.flush, flushes[line - 1]);
    }),
    { numRuns: 400 },
  );
  Deno.removeSync(home, { recursive: true });
});

Deno.test("verifyJournal() names the first flush after a deletion, a swap, a copy and a cut (AU2, GX13)", async () => {
  const { home, text } = await written(4);
  const file = join(home, "copy.jsonl");
  const lines = text.trimEnd().split("\n");
  const flushes = flushesOf(text);
  const [a = "", b = "", c = "", ...rest] = lines;
  const last = lines.at(-1) ?? "";
  const cases: readonly (readonly [readonly string[], number | undefined])[] = [
    [[b, c, ...rest], 1],
    [[a, c, ...rest], flushes[1]],
    [[a, c, b, ...rest], flushes[1]],
    [[a, b, b, c, ...rest], flushes[2]],
    [[...lines, last], (flushes.at(-1) ?? 0) + 1],
    [["", ...lines], 1],
  ];
  for (const [tampered, flush] of cases) {
    Deno.writeTextFileSync(file, `${tampered.join("\n")}\n`);
    assert.equal((await verifyJournal(file)).bad?.flush, flush);
  }
  Deno.writeTextFileSync(file, text.slice(0, -20));
  assert.equal((await verifyJournal(file)).bad?.flush, flushes.at(-1));
  Deno.writeTextFileSync(file, `\ufeff${text}`);
  assert.equal((await verifyJournal(file)).bad?.flush, 1);
  Deno.writeTextFileSync(file, "");
  assert.equal((await verifyJournal(file)).closed, false);
  Deno.removeSync(home, { recursive: true });
});

Deno.test("the hash of a flush covers each of its records (GX13)", async () => {
  const home = Deno.makeTempDirSync();
  {
    using journal = Journal.open({ home, limits: LIMITS }, new Redactor(), FAILS);
    for (let at = 0; at < 5; at++) journal.append({ kind: "event", event: `e${at}` });
    await journal.write({ kind: "event", event: "e5" });
  }
  const [entry] = [...Deno.readDirSync(join(home, "journal"))];
  const file = join(home, "journal", entry?.name ?? "");
  const text = Deno.readTextFileSync(file);
  assert.equal(text.match(/"hash":/g)?.length, 3); // opened, the events, closed
  const lines = text.split("\n");
  for (let at = 1; at < 7; at++) {
    Deno.writeTextFileSync(file, lines.toSpliced(at, 1).join("\n"));
    const { bad } = await verifyJournal(file);
    assert.equal(bad?.flush, 2, `without line ${at + 1}`);
  }
  Deno.removeSync(home, { recursive: true });
});

Deno.test("verifyJournal() names a flush of another process with the same numbers (GX13)", async () => {
  const [one, other] = [await written(3), await written(3)];
  const file = join(one.home, "copy.jsonl");
  const lines = one.text.split("\n");
  assert.equal(flushesOf(one.text)[1], 2);
  Deno.writeTextFileSync(file, lines.with(1, other.text.split("\n")[1] ?? "").join("\n"));
  const { bad } = await verifyJournal(file);
  assert.match(`${bad?.flush} ${bad?.reason}`, /^2 it does not follow/);
  for (const { home } of [one, other]) Deno.removeSync(home, { recursive: true });
});

Deno.test("verifyJournal() reads version 1, in which each record has a hash (GX13)", async () => {
  const home = Deno.makeTempDirSync();
  const file = join(home, "old.jsonl");
  let prev = "0".repeat(64);
  const lines = ["journal opened", "one", "two", "journal closed"].map((event, seq) => {
    const at = `2026-01-01T00:00:0${seq}.000Z`;
    const text = `{"seq":${seq},"at":"${at}","prev":"${prev}","kind":"event","event":"${event}"`;
    prev = sha256(text);
    return `${text},"hash":"${prev}"}\n`;
  });
  Deno.writeTextFileSync(file, lines.join(""));
  const check = await verifyJournal(file, "2027");
  assert.deepEqual(check, { records: 4, closed: true, complete: true, head: prev });
  const changes: readonly (readonly string[])[] = [
    lines.toSpliced(1, 1),
    lines.with(1, lines[1]?.replace('"one"', '"two"') ?? ""),
    // With a recomputed hash, but a wrong `prev` or a wrong number.
    lines.with(1, rehashed(lines[1], /(?<="prev":")[0-9a-f]{64}/, "0".repeat(64))),
    lines.with(1, rehashed(lines[1], /(?<="seq":)1/, "7")),
  ];
  for (const changed of changes) {
    Deno.writeTextFileSync(file, changed.join(""));
    const { bad } = await verifyJournal(file);
    assert.deepEqual([bad?.flush, bad?.line], [2, 2], changed[1]);
  }
  Deno.removeSync(home, { recursive: true });
});

/** Returns a line with a change, and a hash that fits it. */
function rehashed(line = "", from: RegExp, to: string): string {
  const [, text = ""] = /^(.*),"hash":"[0-9a-f]{64}"\}\n?$/.exec(line) ?? [];
  const changed = text.replace(from, to);
  assert.notEqual(changed, text);
  return `${changed},"hash":"${sha256(changed)}"}\n`;
}

Deno.test("verifyJournal() names a flush with a wrong number and a recomputed hash (GX13)", async () => {
  const { home, text } = await written(3);
  const file = join(home, "copy.jsonl");
  const lines = text.trimEnd().split("\n").map((line) => `${line}\n`);
  assert.deepEqual(flushesOf(text).slice(0, 3), [1, 2, 3], "flushes of one line");
  for (const number of [/(?<="seq":)\d+/, /(?<="flush":)\d+/]) {
    const changed = lines.slice(0, 2).with(1, rehashed(lines[1], number, "99"));
    Deno.writeTextFileSync(file, changed.join(""));
    const { bad } = await verifyJournal(file);
    assert.match(`${bad?.flush} ${bad?.reason}`, /^2 it does not follow/);
  }
  Deno.writeTextFileSync(file, `${text}{"seq":`);
  const { bad } = await verifyJournal(file);
  assertGolden("audit/an incomplete record", bad?.reason);
  Deno.removeSync(home, { recursive: true });
});

Deno.test("verifyJournal() reports that the end may be cut off", async () => {
  const { home, text } = await written(3);
  const file = join(home, "copy.jsonl");
  const cut = text.slice(0, text.lastIndexOf("\n", text.lastIndexOf('"hash":') - 400) + 1);
  const whole = cut.slice(0, cut.indexOf("\n", cut.lastIndexOf('"hash":')) + 1);
  Deno.writeTextFileSync(file, whole);
  const check = await verifyJournal(file);
  assert.deepEqual([check.bad, check.closed], [undefined, false]);
  Deno.removeSync(home, { recursive: true });
});

Deno.test("a write that was cut off at any byte loses no complete record, and only its flush is bad", async () => {
  const home = Deno.makeTempDirSync();
  {
    using journal = Journal.open({ home, limits: LIMITS }, new Redactor(), FAILS);
    for (const flush of [1, 2]) {
      for (let at = 0; at < 3; at++) journal.append({ kind: "event", event: `e${flush}${at}` });
      await journal.write({ kind: "event", event: `e${flush}` });
    }
  }
  const [entry] = [...Deno.readDirSync(join(home, "journal"))];
  const path = join(home, "journal", entry?.name ?? "");
  const text = Deno.readTextFileSync(path);
  const flushes = flushesOf(text);
  for (let cut = text.indexOf("\n") + 1; cut < text.length; cut++) {
    Deno.writeTextFileSync(path, text.slice(0, cut));
    const whole = text.slice(0, cut).split("\n").length - 1;
    using reader = new JournalReader(home);
    const read = await Array.fromAsync(reader.read());
    assert.equal(read.filter(({ record }) => record !== undefined).length, whole, `at ${cut}`);
    // The flush that contains the byte before the cut is complete only if that byte is its last.
    const last = flushes[whole] ?? 0;
    const before = flushes.filter((flush) => flush < last).length;
    const isWhole = whole === before && text[cut - 1] === "\n";
    const check = await verifyJournal(path);
    assert.deepEqual(
      [check.records, check.bad?.flush, check.closed],
      [before, isWhole ? undefined : last, false],
      `at ${cut}`,
    );
  }
  Deno.removeSync(home, { recursive: true });
});

Deno.test("the start of a call is in the file when its process is killed during the call", async () => {
  const home = Deno.makeTempDirSync();
  const code = `import { Journal } from ${JSON.stringify(import.meta.resolve("./journal.ts"))};
    import { newCall, newPipeline } from ${
    JSON.stringify(import.meta.resolve("../calls/_context_test.ts"))
  };
    import { Redactor } from ${JSON.stringify(import.meta.resolve("./redact.ts"))};
    const journal = Journal.open(${
    JSON.stringify({ home, limits: LIMITS })
  }, new Redactor(), { onFailedWrite() {} });
    const { callTool } = newPipeline({ journal, run: () => Deno.kill(Deno.pid, "SIGKILL") });
    await callTool(newCall({ callId: "killed" }));`;
  await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--config", new URL("../../deno.json", import.meta.url).pathname, code],
  }).output();
  const [entry] = [...Deno.readDirSync(join(home, "journal"))];
  const path = join(home, "journal", entry?.name ?? "");
  const check = await verifyJournal(path);
  assert.deepEqual([check.bad, check.closed], [undefined, false]);
  const records = Deno.readTextFileSync(path).trim().split("\n").map((line) => JSON.parse(line));
  const kinds = records.filter(({ callId }) => callId === "killed").map(({ kind }) => kind);
  assert.deepEqual(kinds, ["start"]);
  Deno.removeSync(home, { recursive: true });
});
