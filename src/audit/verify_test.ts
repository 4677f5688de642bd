import assert from "node:assert/strict";
import { join } from "node:path";
import fc from "fast-check";
import { Journal } from "./journal.ts";
import { Redactor } from "./redact.ts";
import { verifyJournal } from "./verify.ts";

async function written(calls: number): Promise<{ readonly home: string; readonly text: string }> {
  const home = Deno.makeTempDirSync();
  const journal = Journal.open(home, {
    redactor: new Redactor(),
    onFailure: assert.fail,
    fileBytes: 16_000_000,
    filesKept: 8,
  });
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

Deno.test("verifyJournal() passes what was written", async () => {
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

Deno.test("verifyJournal() names the record of any changed byte", async () => {
  const { home, text } = await written(3);
  const file = join(home, "copy.jsonl");
  const bytes = new TextEncoder().encode(text);
  await fc.assert(
    fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 0, max: 255 }), async (at, to) => {
      fc.pre(bytes[at] !== to);
      Deno.writeFileSync(file, bytes.with(at, to));
      const line = text.slice(0, at).split("\n").length;
      assert.equal((await verifyJournal(file)).bad?.line, line);
    }),
    { numRuns: 400 },
  );
  Deno.removeSync(home, { recursive: true });
});

Deno.test("verifyJournal() names the first record after a deletion, a swap, a copy and a cut", async () => {
  const { home, text } = await written(4);
  const file = join(home, "copy.jsonl");
  const lines = text.trimEnd().split("\n");
  const [a = "", b = "", c = "", ...rest] = lines;
  const last = lines.at(-1) ?? "";
  const cases: readonly (readonly [readonly string[], number])[] = [
    [[b, c, ...rest], 1],
    [[a, c, ...rest], 2],
    [[a, c, b, ...rest], 2],
    [[a, b, b, c, ...rest], 3],
    [[...lines, last], lines.length + 1],
    [["", ...lines], 1],
  ];
  for (const [tampered, line] of cases) {
    Deno.writeTextFileSync(file, `${tampered.join("\n")}\n`);
    assert.equal((await verifyJournal(file)).bad?.line, line);
  }
  Deno.writeTextFileSync(file, text.slice(0, -20));
  assert.equal((await verifyJournal(file)).bad?.line, lines.length);
  Deno.writeTextFileSync(file, `\ufeff${text}`);
  assert.equal((await verifyJournal(file)).bad?.line, 1);
  Deno.writeTextFileSync(file, "");
  assert.equal((await verifyJournal(file)).closed, false);
  Deno.removeSync(home, { recursive: true });
});

Deno.test("verifyJournal() tells that an end may have been cut off whole", async () => {
  const { home, text } = await written(3);
  const file = join(home, "copy.jsonl");
  Deno.writeTextFileSync(file, `${text.trimEnd().split("\n").slice(0, -2).join("\n")}\n`);
  const check = await verifyJournal(file);
  assert.deepEqual([check.bad, check.closed], [undefined, false]);
  Deno.removeSync(home, { recursive: true });
});

Deno.test("The start of a call is in the file when its process is killed in the call", async () => {
  const home = Deno.makeTempDirSync();
  const code = `import { Journal } from ${JSON.stringify(import.meta.resolve("./journal.ts"))};
    import { auditGate } from ${JSON.stringify(import.meta.resolve("./gate.ts"))};
    import { Redactor } from ${JSON.stringify(import.meta.resolve("./redact.ts"))};
    const journal = Journal.open(${JSON.stringify(home)}, {
      redactor: new Redactor(), fileBytes: 1e7, filesKept: 8 });
    const call = auditGate(journal)(() => Deno.kill(Deno.pid, "SIGKILL"));
    await call({ id: "s:t", arguments: {}, via: "call", actor: "local", callId: "killed" });`;
  await new Deno.Command(Deno.execPath(), { args: ["eval", "--no-config", code] }).output();
  const [entry] = [...Deno.readDirSync(join(home, "journal"))];
  const path = join(home, "journal", entry?.name ?? "");
  const check = await verifyJournal(path);
  assert.deepEqual([check.bad, check.closed], [undefined, false]);
  const records = Deno.readTextFileSync(path).trim().split("\n").map((line) => JSON.parse(line));
  const kinds = records.filter(({ callId }) => callId === "killed").map(({ kind }) => kind);
  assert.deepEqual(kinds, ["start"]);
  Deno.removeSync(home, { recursive: true });
});
