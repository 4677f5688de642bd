import assert from "node:assert/strict";
import { join } from "node:path";
import fc from "fast-check";
import { PmlError } from "../core/errors.ts";
import { isObject, type JsonObject } from "../core/json.ts";
import { Journal, type JournalConfig, type StartRecord } from "./journal.ts";
import { Redactor } from "./redact.ts";
import { verifyJournal } from "./verify.ts";

const LIMITS: JournalConfig["limits"] = { journalBytes: 16_000_000, journalFiles: 8 };

const IGNORED = { onFailedWrite() {} };

interface Opened extends Disposable {
  readonly home: string;
  readonly journal: Journal;
  readonly failures: PmlError[];
  /** The files of the journal, in order. */
  files(): string[];
  records(): Record<string, unknown>[];
}

function open(limits = LIMITS, redactor = new Redactor()): Opened {
  const home = Deno.makeTempDirSync();
  const failures: PmlError[] = [];
  const owner = { onFailedWrite: (error: PmlError) => failures.push(error) };
  const journal = Journal.open({ home, limits }, redactor, owner);
  return {
    home,
    journal,
    failures,
    files: () => filesIn(home),
    records: () => filesIn(home).flatMap(recordsIn),
    [Symbol.dispose]: () => {
      journal[Symbol.dispose]();
      Deno.removeSync(home, { recursive: true });
    },
  };
}

function filesIn(home: string): string[] {
  const folder = join(home, "journal");
  return [...Deno.readDirSync(folder)].map((entry) => join(folder, entry.name)).sort();
}

function recordsIn(file: string): Record<string, unknown>[] {
  return Deno.readTextFileSync(file).trimEnd().split("\n").map((line) => {
    const record: unknown = JSON.parse(line);
    assert.ok(isObject(record));
    return record;
  });
}

function start(callId: string, more: Partial<StartRecord> = {}): StartRecord {
  return {
    kind: "start",
    callId,
    actor: "local",
    via: "call",
    tool: "filesystem:read_file",
    arguments: { path: "string(3)" },
    ...more,
  };
}

Deno.test("write() resolves when the record is in the file", async () => {
  using opened = open();
  await opened.journal.write(start("c1"));
  const [, record] = opened.records();
  assert.equal(record?.callId, "c1");
  assert.equal(record?.tool, "filesystem:read_file");
});

Deno.test("write() combines the records of one turn into one write, in their order", async () => {
  using opened = open();
  const writes = Array.from({ length: 50 }, (_, i) => opened.journal.write(start(`c${i}`)));
  assert.equal(opened.records().length, 1);
  await writes[0];
  assert.deepEqual(
    opened.records().slice(1).map((record) => record.callId),
    Array.from({ length: 50 }, (_, i) => `c${i}`),
  );
});

Deno.test("append() writes before the turn ends if many records wait, so that memory stays bounded", () => {
  using opened = open();
  for (let i = 0; i < 2_000; i++) opened.journal.append(start(`c${i}`));
  assert.ok(opened.records().length > 1_000);
});

Deno.test({
  name: "Journal makes its folder and files readable by their owner only",
  ignore: Deno.build.os === "windows",
  fn: () => {
    using opened = open();
    const [file = ""] = opened.files();
    assert.equal((Deno.statSync(file).mode ?? 0) & 0o777, 0o600);
    assert.equal((Deno.statSync(join(opened.home, "journal")).mode ?? 0) & 0o777, 0o700);
    assert.match(file, new RegExp(`\\d{4}-\\d\\d-\\d\\dT[\\d.-]+Z-${Deno.pid}-[0-9a-f]{8}\\.0001`));
  },
});

Deno.test("open() makes a folder private that others could read", () => {
  const home = Deno.makeTempDirSync();
  Deno.mkdirSync(join(home, "journal"), { mode: 0o755 });
  Journal.open({ home, limits: LIMITS }, new Redactor(), IGNORED)[Symbol.dispose]();
  assert.equal((Deno.statSync(join(home, "journal")).mode ?? 0) & 0o777, 0o700);
  Deno.removeSync(home, { recursive: true });
});

Deno.test("open() refuses a folder that is a link or a file", () => {
  const home = Deno.makeTempDirSync();
  const elsewhere = Deno.makeTempDirSync();
  const folder = join(home, "journal");
  Deno.symlinkSync(elsewhere, folder);
  assert.throws(() => Journal.open({ home, limits: LIMITS }, new Redactor(), IGNORED), unavailable);
  Deno.removeSync(folder);
  Deno.writeTextFileSync(folder, "");
  assert.throws(() => Journal.open({ home, limits: LIMITS }, new Redactor(), IGNORED), unavailable);
  assert.deepEqual([...Deno.readDirSync(elsewhere)], []);
  Deno.removeSync(home, { recursive: true });
  Deno.removeSync(elsewhere);
});

Deno.test("write() fails when the file is replaced by a link, and continues in a new file", async () => {
  using opened = open();
  const target = join(opened.home, "target");
  Deno.writeTextFileSync(target, "");
  const [file = ""] = opened.files();
  Deno.removeSync(file);
  Deno.symlinkSync(target, file);
  await assert.rejects(opened.journal.write(start("c1")), unavailable);
  assert.equal(opened.failures.length, 1);
  await opened.journal.write(start("c2"));
  assert.equal(Deno.readTextFileSync(target), "");
  const [, second = ""] = opened.files();
  const [, record] = recordsIn(second);
  assert.equal(record?.callId, "c2");
});

Deno.test("write() fails when the folder is gone, and works again when it can be created", async () => {
  using opened = open();
  Deno.renameSync(join(opened.home, "journal"), join(opened.home, "away"));
  Deno.writeTextFileSync(join(opened.home, "journal"), "");
  await assert.rejects(opened.journal.write(start("c1")), unavailable);
  await assert.rejects(opened.journal.write(start("c2")), unavailable);
  Deno.removeSync(join(opened.home, "journal"));
  await opened.journal.write(start("c3"));
  assert.equal(opened.records().at(-1)?.callId, "c3");
  const away = [...Deno.readDirSync(join(opened.home, "away"))]
    .map(({ name }) => join(opened.home, "away", name));
  assert.equal((await verifyJournal([...away, ...opened.files()])).bad, undefined);
});

Deno.test({
  name: "write() fails when the disk is full, and removes the incomplete record",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const home = Deno.makeTempDirSync();
    const code = `import { Journal } from ${JSON.stringify(import.meta.resolve("./journal.ts"))};
      import { Redactor } from ${JSON.stringify(import.meta.resolve("./redact.ts"))};
      const journal = Journal.open(${
      JSON.stringify({ home, limits: LIMITS })
    }, new Redactor(), { onFailedWrite() {} });
      const codes = [];
      for (let i = 0; i < 300; i++) {
        const about = { text: "x".repeat(450) };
        try { await journal.write({ kind: "event", event: "e" + i, about }); codes.push("ok"); }
        catch (error) { codes.push(error.code); }
      }
      console.log(JSON.stringify(codes));`;
    // A limit on the size of files, with its signal ignored, simulates a full disk.
    const command = `trap '' XFSZ; ulimit -f 128; exec "$0" eval --no-config --no-lock "$1"`;
    const child = new Deno.Command("sh", { args: ["-c", command, Deno.execPath(), code] });
    const { stdout, stderr } = await child.output();
    const codes: unknown = JSON.parse(new TextDecoder().decode(stdout) || "null");
    assert.ok(Array.isArray(codes), new TextDecoder().decode(stderr));
    assert.equal(codes[0], "ok");
    assert.equal(codes.at(-1), "AUDIT_UNAVAILABLE");
    const check = await verifyJournal(filesIn(home));
    assert.equal(check.bad, undefined);
    assert.equal(check.records, 1 + codes.filter((code) => code === "ok").length);
    Deno.removeSync(home, { recursive: true });
  },
});

Deno.test("Journal continues in new chained files, and keeps a limited number", async () => {
  using opened = open({ journalBytes: 2_000, journalFiles: 3 });
  for (let i = 0; i < 60; i++) await opened.journal.write(start(`c${i}`));
  opened.journal[Symbol.dispose]();
  const files = opened.files();
  assert.equal(files.length, 3);
  const check = await verifyJournal(files);
  assert.deepEqual([check.bad, check.closed, check.complete], [undefined, true, false]);
  const [first = "", , last = ""] = files;
  assert.match((await verifyJournal([first, last])).bad?.reason ?? "", /does not follow/);
});

Deno.test("Journal keeps a limited number of files even if some could not be created", async () => {
  using opened = open({ journalBytes: 2_000, journalFiles: 3 });
  const { journal, files } = opened;
  const fill = async () => {
    for (let at = 0; at < 40; at++) await journal.write(start(`call ${at}`));
  };
  await fill();
  assert.equal(files().length, 3);
  const { openSync } = Deno;
  const full = () => {
    throw new Error("No space left on device (os error 28)");
  };
  Object.defineProperty(Deno, "openSync", { value: full, writable: true, configurable: true });
  try {
    for (let at = 0; at < 40; at++) await journal.write(start("lost")).catch(() => {});
  } finally {
    Object.defineProperty(Deno, "openSync", { value: openSync, writable: true });
  }
  await fill();
  assert.equal(files().length, 3);
});

Deno.test("two journals of one home write to separate files", async () => {
  const home = Deno.makeTempDirSync();
  const journals = [1, 2, 3].map(() =>
    Journal.open({ home, limits: LIMITS }, new Redactor(), IGNORED)
  );
  for (let i = 0; i < 20; i++) {
    await Promise.all(journals.map((journal) => journal.write(start(`c${i}`))));
  }
  for (const journal of journals) journal[Symbol.dispose]();
  assert.equal(filesIn(home).length, 3);
  for (const file of filesIn(home)) {
    const check = await verifyJournal(file);
    assert.deepEqual([check.records, check.bad, check.closed], [22, undefined, true]);
  }
  Deno.removeSync(home, { recursive: true });
});

Deno.test("Journal removes old files beyond the limit, but none of a living process", () => {
  using opened = open();
  const folder = join(opened.home, "journal");
  const name = (pid: number, n: number) =>
    join(folder, `2020-01-01T00-00-00.${String(n).padStart(3, "0")}Z-${pid}-00000000.0001.jsonl`);
  // No process has this number, because no system uses numbers this high.
  for (let n = 0; n < 600; n++) Deno.writeTextFileSync(name(2 ** 30, n), "");
  Deno.writeTextFileSync(name(Deno.pid, 0), "");
  Deno.writeTextFileSync(join(folder, "notes.txt"), "");
  opened.journal[Symbol.dispose]();
  const left = opened.files().map((file) => file.slice(folder.length + 1));
  assert.ok(left.length <= 515 && left.length > 400);
  assert.ok(left.includes("notes.txt"));
  assert.ok(left.some((file) => file.includes(`-${Deno.pid}-00000000`)));
  assert.ok(!left.some((file) => file.includes(`.000Z-${2 ** 30}`)));
});

Deno.test("Journal writes nothing after it is closed", async () => {
  using opened = open();
  opened.journal.append(start("c1"));
  opened.journal[Symbol.dispose]();
  await assert.rejects(opened.journal.write(start("c2")), unavailable);
  // A lost record is reported even if no caller waits for it.
  opened.journal.append(start("c3"));
  assert.equal(opened.failures.length, 2);
  assert.deepEqual(opened.records().map((record) => record.callId ?? record.event), [
    "journal opened",
    "c1",
    "journal closed",
  ]);
});

Deno.test("every record is one line of ASCII that parses to the same record", async () => {
  using opened = open();
  const text = fc.string({ unit: "binary", maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(text, fc.dictionary(text, text), async (tool, about) => {
      await opened.journal.write(start("c", { tool: `a:${tool}\n\u2028"}` }));
      await opened.journal.write({ kind: "event", event: tool, about });
      const lines = Deno.readTextFileSync(opened.files()[0] ?? "").trimEnd().split("\n");
      assert.match(lines.at(-1) ?? "", /^[\x20-\x7e]+$/);
      const [first, second] = lines.slice(-2).map((line) => JSON.parse(line));
      assert.equal(first.tool, `a:${tool}\n\u2028"}`);
      assert.deepEqual(second.about, JSON.parse(JSON.stringify(about)));
    }),
    { numRuns: 60 },
  );
  assert.equal((await verifyJournal(opened.files()[0] ?? "")).bad, undefined);
});

Deno.test("a record contains no secret, even where a text is cut", async () => {
  const redactor = new Redactor();
  redactor.register("hunter2hunter2");
  redactor.register('say "hunter2\\" twice');
  using opened = open(LIMITS, redactor);
  const abouts: readonly JsonObject[] = [
    { note: `${"x".repeat(493)}hunter2hunter2` },
    { hunter2hunter2: ["hunter2hunter2"] },
    { note: 'so say "hunter2\\" twice' },
    // In JSON the `n` of the escape comes directly before the secret, as in the middle of a word.
    { note: `\nsk-${"hunter".repeat(4)}2` },
  ];
  for (const about of abouts) await opened.journal.write({ kind: "event", event: "e", about });
  assert.doesNotMatch(Deno.readTextFileSync(opened.files()[0] ?? ""), /hunter2/);
});

Deno.test("a record is bounded, and marks omitted parts", async () => {
  using opened = open();
  const about = Object.fromEntries(Array.from({ length: 9_000 }, (_, i) => [`k${i}`, "v"]));
  await opened.journal.write({ kind: "event", event: "e".repeat(1e6), about });
  const [, record] = opened.records();
  assert.match(String(record?.event), /^e{500}… \(1000000 characters\)$/);
  assert.deepEqual(record?.about, { omitted: true });
});

function unavailable(error: unknown): boolean {
  return error instanceof PmlError && error.code === "AUDIT_UNAVAILABLE" && !!error.hint;
}

Deno.test("Journal writes a start before it reports it, and the end of the call soon", async () => {
  using opened = open();
  const { journal, records } = opened;
  const kinds = () => records().slice(1).map(({ kind }) => kind);
  const begun = Promise.withResolvers<unknown>();
  journal.append(start("1"), begun.resolve);
  assert.deepEqual(kinds(), [], "all starts of a turn are written together");
  assert.equal(await begun.promise, undefined);
  assert.deepEqual(kinds(), ["start"]);
  journal.end({ kind: "end", callId: "1", outcome: "result", ms: 1 });
  assert.deepEqual(kinds(), ["start"], "it waits for the next start");
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.deepEqual(kinds(), ["start", "end"]);
  journal.end({ kind: "end", callId: "2", outcome: "result", ms: 1 });
  const next = Promise.withResolvers<unknown>();
  journal.append(start("1"), next.resolve);
  await next.promise;
  assert.deepEqual(kinds(), ["start", "end", "end", "start"]);
  journal.end({ kind: "end", callId: "3", outcome: "result", ms: 1 });
  journal[Symbol.dispose]();
  assert.deepEqual(kinds().slice(-2), ["end", "event"], "waiting records are written on dispose");
  let lost: unknown;
  journal.append(start("1"), (error) => lost = error);
  assert.ok(lost instanceof PmlError && lost.code === "AUDIT_UNAVAILABLE");
});
