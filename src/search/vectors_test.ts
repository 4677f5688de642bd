import assert from "node:assert/strict";
import { join } from "node:path";
import { toolId } from "../core/tool_id.ts";
import { readVectors, toStoredVector, writeVectors } from "./_vector_file.ts";
import type { CatalogEntry } from "./catalog.ts";
import { meaningText } from "./meaning_text.ts";
import { type TextEmbedder, Vectors, type VectorsOwner } from "./vectors.ts";

const MODEL = "ab".repeat(32);

function entry(name: string, description = `It does ${name}`): CatalogEntry {
  return {
    id: toolId("one", name),
    tool: { name, description, inputSchema: { type: "object" } },
    server: { name: "one", origin: "private" },
  };
}

/** Returns a direction for each letter, so that texts with the same letters are near each other. */
function letters(text: string): Float32Array {
  const vector = new Float32Array(26);
  for (const letter of text.toLowerCase().match(/[a-z]/g) ?? ["a"]) {
    const at = letter.charCodeAt(0) - 97;
    vector[at] = (vector[at] ?? 0) + 1;
  }
  const norm = Math.hypot(...vector);
  return vector.map((one) => one / norm);
}

/**
 * A catalog of vectors with an embedder that records its texts, and can be made to wait or fail.
 */
class Scene implements TextEmbedder, VectorsOwner, AsyncDisposable {
  readonly asked: string[][] = [];
  readonly progress: string[] = [];
  readonly failures: unknown[] = [];
  readonly abort = new AbortController();
  readonly closing = this.abort.signal;
  readonly folder = Deno.makeTempDirSync();
  readonly path = join(this.folder, "vectors", "m.bin");
  held: Promise<void> | undefined;
  broken: Error | undefined;
  breaksAfter = Infinity;
  poison = "none";
  queryMs = 5_000;

  async embed(texts: readonly string[]): ReturnType<TextEmbedder["embed"]> {
    this.asked.push([...texts]);
    await this.held;
    if (this.asked.length > this.breaksAfter) throw this.broken = new Error("it died");
    if (this.broken) throw this.broken;
    if (texts.some((text) => text.includes(this.poison))) throw new Error("it died of it");
    return texts.map((text) => text.includes("void") ? undefined : letters(text));
  }

  onEmbedded(): void {}

  onIndexed(done: number, total: number): void {
    this.progress.push(`${done}/${total}`);
  }

  onFailed(error: unknown): void {
    this.failures.push(error);
  }

  open(model = MODEL): Vectors {
    return new Vectors({ path: this.path, model }, this, this);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }
}

Deno.test("Vectors returns undefined until every tool has a vector, then the cosines in order", async () => {
  await using scene = new Scene();
  const vectors = scene.open();
  const entries = [entry("abc"), entry("xyz"), entry("abd")];
  assert.equal(await vectors.similarities(["abc"], entries), undefined);
  await vectors.whenIdle();
  assert.deepEqual(scene.progress, ["3/3"]);
  const found = await vectors.similarities(["abc", "xyz"], entries);
  assert.equal(found?.length, 2);
  for (const [at, query] of ["abc", "xyz"].entries()) {
    const wanted = entries.map((one) => {
      const text = letters(meaningText(one));
      return letters(query).reduce((sum, each, index) => sum + each * (text[index] ?? 0), 0);
    });
    // One byte for each dimension is exact enough.
    found?.[at]?.forEach((cosine, index) =>
      assert.ok(Math.abs(cosine - (wanted[index] ?? 9)) < 0.01)
    );
  }
  assert.deepEqual(scene.failures, []);
});

Deno.test("Vectors embeds each text and each query once, and no text again after a restart", async () => {
  await using scene = new Scene();
  const vectors = scene.open();
  // Two tools with the same text need one vector.
  const entries = [entry("abc"), { ...entry("abc"), id: toolId("one", "abc") }, entry("xyz")];
  await vectors.similarities(["q"], entries);
  await vectors.whenIdle();
  assert.deepEqual(scene.asked.flat().sort(), [entry("abc"), entry("xyz")].map(meaningText));
  const more = [...entries, entry("new")];
  assert.equal(await vectors.similarities(["q"], more), undefined);
  await vectors.whenIdle();
  assert.deepEqual(scene.asked.at(-1), [meaningText(entry("new"))]);
  const before = scene.asked.length;
  await vectors.similarities(["q"], more);
  await vectors.similarities(["q"], more);
  assert.deepEqual(scene.asked.slice(before), [["q"]]);
  const again = scene.open();
  assert.equal(again.count(more), 4);
  assert.notEqual(await again.similarities(["other"], more), undefined);
  assert.deepEqual(scene.asked.slice(before + 1), [["other"]]);
  assert.equal(Deno.statSync(scene.path).mode! & 0o777, 0o600);
});

Deno.test("Vectors ignores a file that is damaged or belongs to another model", async () => {
  await using scene = new Scene();
  const entries = [entry("abc")];
  await scene.open().compute(entries, () => {});
  const whole = Deno.readFileSync(scene.path);
  assert.equal(scene.open().count(entries), 1);
  assert.equal(scene.open("cd".repeat(32)).count(entries), 0);
  for (let at = 0; at < whole.length; at++) {
    const bytes = whole.slice();
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    Deno.writeFileSync(scene.path, bytes);
    assert.equal(scene.open().count(entries), 0, `byte ${at}`);
  }
  for (const length of [0, 10, whole.length - 1]) {
    Deno.writeFileSync(scene.path, whole.slice(0, length));
    assert.equal(scene.open().count(entries), 0, `${length} bytes`);
  }
  const anew = scene.open();
  await anew.compute(entries, () => {});
  assert.deepEqual(
    Deno.readFileSync(scene.path),
    whole,
    "the file is written again with the same bytes",
  );
});

Deno.test("Vectors keeps the vectors of other processes, up to a limit", async () => {
  await using scene = new Scene();
  const [one, other] = [scene.open(), scene.open()];
  one.count([]);
  other.count([]);
  await one.compute([entry("abc")], () => {});
  await other.compute([entry("xyz")], () => {});
  assert.equal(scene.open().count([entry("abc"), entry("xyz")]), 2);
  const others = Array.from({ length: 10_050 }, (_, at) => {
    return [at.toString(16).padStart(32, "0"), toStoredVector(letters("a"))] as const;
  });
  writeVectors(scene.path, MODEL, new Map([...readVectors(scene.path, MODEL), ...others]));
  const full = scene.open();
  await full.compute([entry("abc"), entry("new")], () => {});
  assert.equal(scene.open().count([entry("abc"), entry("new"), entry("xyz")]), 2);
  const kept = readVectors(scene.path, MODEL);
  assert.equal(kept.size, 10_002);
  assert.deepEqual(["0", "31", "32", "2741"].map((key) => kept.has(key.padStart(32, "0"))), [
    ...[false, false, true, true],
  ]);
  // The vectors used last are kept longest, so a catalog that comes back finds its own.
  const again = scene.open();
  await again.compute([entry("xyz")], () => {});
  assert.equal(again.count([entry("abc"), entry("xyz")]), 2);
  assert.equal(scene.open().count([entry("abc")]), 1);
});

Deno.test("Vectors reports progress, and stores the vectors that are computed when it is aborted", async () => {
  await using scene = new Scene();
  const entries = Array.from({ length: 650 }, (_, at) => entry(`tool_${at}`));
  const vectors = scene.open();
  await vectors.similarities([], entries);
  await vectors.whenIdle();
  assert.deepEqual(scene.progress, ["200/650", "400/650", "600/650", "650/650"]);
  assert.ok(scene.asked.every((batch) => batch.length <= 8), "batches have at most 8 texts");
  await Deno.remove(scene.path);
  const given = scene.open();
  scene.asked.length = 0;
  scene.breaksAfter = 2;
  await given.similarities([], entries);
  await given.whenIdle();
  assert.deepEqual(scene.failures, [scene.broken]);
  assert.equal(readVectors(scene.path, MODEL).size, 16);
  scene.breaksAfter = Infinity;
  scene.broken = undefined;
  assert.equal(await given.similarities([], entries), undefined);
  await given.whenIdle();
  assert.equal(given.count(entries), 650);
});

Deno.test("Vectors embeds the other texts if the model fails on one text", async () => {
  await using scene = new Scene();
  scene.poison = "evil";
  const vectors = scene.open();
  const entries = [entry("abc"), entry("evil"), entry("void"), entry("cab")];
  await vectors.compute(entries, () => {});
  const [found] = await vectors.similarities(["abc"], entries) ?? [];
  assert.deepEqual(found && [...found].map(Number.isNaN), [false, true, true, false]);
  const asked = scene.asked.length;
  await vectors.similarities(["abc"], entries);
  assert.equal(scene.asked.length, asked, "later searches do not retry it");
  assert.equal(vectors.count(entries), 4);
  assert.equal(scene.open().count(entries), 2, "the next process retries it");
  assert.deepEqual(scene.failures, []);
});

Deno.test("Vectors embeds no blank query, and reports no failure for a query on which the model fails", async () => {
  await using scene = new Scene();
  scene.poison = "evil";
  const vectors = scene.open();
  const entries = [entry("abc")];
  await vectors.compute(entries, () => {});
  scene.asked.length = 0;
  const known = async (queries: readonly string[]) =>
    (await vectors.similarities(queries, entries))?.map(([one = NaN]) => !Number.isNaN(one));
  assert.deepEqual(await known([""]), [false]);
  assert.deepEqual(await known([" \n", "abc"]), [false, true]);
  assert.deepEqual(scene.asked, [["abc"]]);
  for (let times = 0; times < 2; times++) {
    assert.deepEqual(await known(["evil", "void", "a c"]), [false, false, true]);
  }
  const sent = scene.asked.flat().filter((text) => text === "evil");
  assert.equal(sent.length, 2, "once with the others and once alone");
  assert.deepEqual(await known(["evil too"]), [false]);
  assert.deepEqual(scene.failures, []);
  // If the model does not work at all, that is a failure.
  scene.broken = new Error("it died");
  assert.equal(await known(["new", "newer"]), undefined);
  assert.deepEqual(scene.failures, [scene.broken]);
});

Deno.test("Vectors shares the vectors of concurrent queries, and caches the last queries", async () => {
  await using scene = new Scene();
  const vectors = scene.open();
  const entries = [entry("abc")];
  await vectors.compute(entries, () => {});
  const queries = Array.from(
    { length: 60 },
    (_, at) => [1, 2, 3, 4, 5].map((one) => `${at} ${one}`),
  );
  const found = await Promise.all(queries.map((each) => vectors.similarities(each, entries)));
  assert.ok(found.flatMap((each) => each ?? []).every(([one = NaN]) => one > 0));
  const sent = async (query: string) => {
    scene.asked.length = 0;
    const [[cosine = NaN] = []] = await vectors.similarities([query], entries) ?? [];
    assert.ok(cosine > 0);
    return scene.asked.length > 0;
  };
  assert.deepEqual([await sent("59 5"), await sent("20 1")], [false, false]);
  assert.equal(await sent("0 1"), true, "the oldest query is removed");
  // It is new now and replaced the oldest query; the one that was asked again stays.
  assert.deepEqual([await sent("20 2"), await sent("20 1")], [true, false]);
});

Deno.test("Vectors waits only once for a query that hangs", async () => {
  await using scene = new Scene();
  scene.queryMs = 20;
  const vectors = scene.open();
  const entries = [entry("abc")];
  await vectors.compute(entries, () => {});
  const { promise, resolve } = Promise.withResolvers<void>();
  scene.held = promise;
  assert.equal(await vectors.similarities(["slow"], entries), undefined);
  assert.equal(await vectors.similarities(["another"], entries), undefined);
  assert.deepEqual(scene.asked.slice(1), [["slow"]], "no other text is sent meanwhile");
  resolve();
  await vectors.whenIdle();
  assert.notEqual(await vectors.similarities(["slow"], entries), undefined);
  assert.equal(scene.asked.length, 2, "the late vector is cached");
  scene.broken = new Error("it died");
  assert.equal(await vectors.similarities(["bad"], entries), undefined);
  assert.deepEqual(scene.failures, [scene.broken]);
});

Deno.test("meaningText() returns one bounded line, and splits camel-case names", () => {
  const long = entry("createIssueOfHTTPServer", `First\n  line ${"x".repeat(10_000)}`);
  assert.match(meaningText(long), /^one create_Issue_Of_HTTPServer: First line x+$/);
  assert.ok(meaningText(long).length < 400);
  // Definitions come from outside.
  const odd = { ...entry("x"), tool: { name: "x", description: 7, inputSchema: {} } } as unknown;
  assert.equal(meaningText(odd as CatalogEntry), "one x: ");
});
