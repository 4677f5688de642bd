import assert from "node:assert/strict";
import { join } from "node:path";
import { Folder, hash, here } from "./_scripted_test.ts";
import { Cache } from "./cache.ts";

const CODE = new TextEncoder().encode("export const x = 1;");
const HASH = hash("export const x = 1;");

function open(home: string, bytes?: number): { cache: Cache; warned: string[] } {
  const warned: string[] = [];
  const warn = (message: string) => warned.push(message);
  return { cache: new Cache(home, { warn }, bytes), warned };
}

function files(home: string): string[] {
  return [...Deno.readDirSync(join(home, "cache"))].map(({ name }) => name).sort();
}

Deno.test("Cache stores code by hash and entries by name, readable only by this user", () => {
  using home = new Folder();
  const { cache, warned } = open(home.path);
  assert.equal(cache.code(HASH), undefined);
  cache.keepCode(CODE);
  cache.keep("entry", ["https://a.example", "x"], { a: 1 });
  assert.deepEqual(cache.code(HASH), CODE);
  assert.deepEqual(cache.read("entry", ["https://a.example", "x"]), { a: 1 });
  assert.equal(cache.read("entry", ["https://b.example", "x"]), undefined);
  assert.equal(cache.read("catalog", ["https://a.example", "x"]), undefined);
  assert.deepEqual(open(home.path).cache.code(HASH), CODE);
  const folder = join(home.path, "cache");
  assert.equal((Deno.statSync(folder).mode ?? 0) & 0o777, 0o700);
  for (const name of files(home.path)) {
    assert.match(name, /^(sha256-)?[0-9a-f]{64}\.(code|entry)$/);
    assert.equal((Deno.statSync(join(folder, name)).mode ?? 0) & 0o777, 0o600);
  }
  assert.deepEqual(warned, []);
});

Deno.test("Cache treats changed, truncated, replaced, linked and unreadable files as missing", () => {
  using home = new Folder();
  const { cache } = open(home.path);
  const key = ["https://a.example", "x"];
  const folder = join(home.path, "cache");
  const outside = join(home.path, "outside");
  const spoiled: ((path: string, bytes: Uint8Array) => void)[] = [
    (path, bytes) => Deno.writeFileSync(path, bytes.subarray(0, bytes.length - 1)),
    (path) => Deno.writeTextFileSync(path, ""),
    (path, bytes) => Deno.writeFileSync(path, bytes.with(bytes.length - 1, 1)),
    (path, bytes) => Deno.writeFileSync(path, new Uint8Array([...bytes, 32])),
    (path, bytes) => {
      Deno.removeSync(path);
      Deno.writeFileSync(outside, bytes);
      Deno.symlinkSync(outside, path);
    },
    (path) => {
      Deno.removeSync(path);
      Deno.symlinkSync(join(home.path, "nowhere"), path);
    },
  ];
  for (const spoil of spoiled) {
    cache.keepCode(CODE);
    cache.keep("entry", key, { a: 1 });
    for (const name of files(home.path)) {
      spoil(join(folder, name), Deno.readFileSync(join(folder, name)));
    }
    assert.equal(cache.code(HASH), undefined, String(spoil));
    assert.equal(cache.read("entry", key), undefined, String(spoil));
  }
  // A new file replaces the link, and the link's target stays unchanged.
  cache.keepCode(CODE);
  assert.deepEqual(cache.code(HASH), CODE);
  assert.equal(Deno.lstatSync(join(folder, `${HASH}.code`)).isFile, true);
  Deno.removeSync(join(folder, `${HASH}.code`));
  // Opening it would wait for a writer that never comes.
  new Deno.Command("mkfifo", { args: [join(folder, `${HASH}.code`)] }).outputSync();
  assert.equal(Deno.lstatSync(join(folder, `${HASH}.code`)).isFifo, true);
  assert.equal(cache.code(HASH), undefined);
  Deno.removeSync(join(folder, `${HASH}.code`));
  Deno.mkdirSync(join(folder, `${HASH}.code`));
  assert.equal(cache.code(HASH), undefined);
});

Deno.test("Cache checks code again after its file changed", () => {
  using home = new Folder();
  const { cache } = open(home.path);
  cache.keepCode(CODE);
  assert.equal(cache.hasCode(HASH), true);
  assert.equal(cache.hasCode(HASH), true);
  Deno.writeTextFileSync(cache.codePath(HASH), "export const x = 22;");
  assert.equal(cache.hasCode(HASH), false);
});

Deno.test("Cache reads nothing if its folder is a link", () => {
  using home = new Folder();
  open(home.path).cache.keepCode(CODE);
  const folder = join(home.path, "cache");
  Deno.renameSync(folder, join(home.path, "elsewhere"));
  Deno.symlinkSync(join(home.path, "elsewhere"), folder);
  assert.equal(open(home.path).cache.code(HASH), undefined);
});

Deno.test("Cache works without files if it cannot write, and logs one warning", () => {
  using home = new Folder();
  using other = new Folder();
  Deno.symlinkSync(other.path, join(home.path, "cache"));
  const { cache, warned } = open(home.path);
  cache.keepCode(CODE);
  cache.keepCode(CODE);
  assert.equal(cache.code(HASH), undefined);
  assert.deepEqual([...Deno.readDirSync(other.path)], []);
  assert.equal(warned.length, 1);
  assert.match(warned[0] ?? "", /^Cannot cache/);
  Deno.removeSync(join(home.path, "cache"));
  Deno.writeTextFileSync(join(home.path, "cache"), "a file");
  const again = open(home.path);
  again.cache.keepCode(CODE);
  assert.equal(again.warned.length, 1);
});

Deno.test("Cache stays below its quota by removing the least recently used files", () => {
  using home = new Folder();
  const { cache } = open(home.path, 3 << 20);
  const folder = join(home.path, "cache");
  const old = new Date(Date.now() - 48 * 3_600_000);
  const piece = (index: number) => new Uint8Array(1 << 20).fill(index);
  for (let index = 1; index <= 3; index++) {
    cache.keepCode(piece(index));
    const path = join(
      folder,
      files(home.path).find((name) => statTime(join(folder, name)) > +old) ?? "",
    );
    Deno.utimeSync(path, old, old);
  }
  Deno.writeTextFileSync(join(folder, "left.code.x.tmp"), "half");
  Deno.utimeSync(join(folder, "left.code.x.tmp"), old, old);
  const used = hash(new TextDecoder().decode(piece(2)));
  assert.equal(cache.code(used)?.length, 1 << 20);
  for (let index = 4; index <= 9; index++) {
    cache.keepCode(piece(index));
    const now = new Date(Date.now() - 1000 + index);
    const path = join(folder, `${hash(new TextDecoder().decode(piece(index)))}.code`);
    Deno.utimeSync(path, now, now);
    Deno.utimeSync(join(folder, `${used}.code`), new Date(), new Date());
  }
  assert.ok(files(home.path).length <= 5, `${files(home.path)}`);
  assert.ok(!files(home.path).includes("left.code.x.tmp"));
  assert.equal(cache.code(used)?.length, 1 << 20, "recently used code stays");
});

Deno.test("Cache contains only complete files after its writer is killed", async () => {
  using home = new Folder();
  const script = `
    import { Cache } from ${JSON.stringify(`file://${here("cache.ts")}`)};
    const cache = new Cache(Deno.args[0], { warn: () => {} });
    console.log("writing");
    for (let n = 0;; n++) cache.keep("entry", [String(n % 5)], { text: "x".repeat(200_000) + n % 5 });
  `;
  const path = join(home.path, "writer.ts");
  await Deno.writeTextFile(path, script);
  for (let round = 0; round < 3; round++) {
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", "--config", here("../../deno.json"), path, home.path],
      stdout: "piped",
      stderr: "null",
    }).spawn();
    const reader = child.stdout.getReader();
    await reader.read();
    const { cache } = open(home.path);
    // Kills the process while it writes: when its last file has appeared.
    while (cache.read("entry", ["4"]) === undefined) await new Promise((go) => setTimeout(go, 1));
    child.kill("SIGKILL");
    await child.status;
    await reader.cancel();
    for (const name of ["0", "1", "2", "3", "4"]) {
      const kept = cache.read("entry", [name]);
      assert.deepEqual(kept, { text: "x".repeat(200_000) + name });
      cache.keep("entry", [name], null);
    }
    Deno.removeSync(join(home.path, "cache"), { recursive: true });
  }
});

function statTime(path: string): number {
  return Deno.statSync(path).mtime?.getTime() ?? 0;
}
