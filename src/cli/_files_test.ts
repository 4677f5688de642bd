import assert from "node:assert/strict";
import { backUp, diffLines, readInside, type TextFile, writeFile } from "./_files.ts";

async function withFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.realPath(await Deno.makeTempDir());
  try {
    await work(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function namesIn(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).sort();
}

async function found(folder: string, name: string) {
  const file = await readInside(folder, name);
  assert.ok(file !== undefined);
  return file;
}

async function replace({ path, mode, text: expectedText }: TextFile, text: string): Promise<void> {
  await writeFile(path, { text, mode, expectedText });
}

Deno.test("writeFile() creates a file with its mode, and replaces no other file", async () => {
  await withFolder(async (folder) => {
    const path = `${folder}/a`;
    await writeFile(path, { text: "one", mode: 0o600 });
    assert.equal(((await Deno.stat(path)).mode ?? 0) & 0o777, 0o600);
    await assert.rejects(writeFile(path, { text: "two", mode: 0o600 }), {
      code: "CONFIG_INVALID",
    });
    await Deno.symlink(`${folder}/none`, `${folder}/link`);
    const through = writeFile(`${folder}/link`, { text: "two", mode: 0o600 });
    await assert.rejects(through, { code: "CONFIG_INVALID" });
    assert.equal(await Deno.readTextFile(path), "one");
    assert.deepEqual(await namesIn(folder), ["a", "link"]);
  });
});

Deno.test("writeFile() over a file keeps its mode, and leaves a file that changed meanwhile", async () => {
  await withFolder(async (folder) => {
    const path = `${folder}/a`;
    await Deno.writeTextFile(path, "one", { mode: 0o640 });
    await Deno.chmod(path, 0o640);
    const before = await found(folder, "a");
    await replace(before, "two");
    assert.equal(await Deno.readTextFile(path), "two");
    assert.equal(((await Deno.stat(path)).mode ?? 0) & 0o777, 0o640);
    await assert.rejects(replace(before, "three"), /changed meanwhile/);
    assert.equal(await Deno.readTextFile(path), "two");
    assert.deepEqual(await namesIn(folder), ["a"]);
  });
});

Deno.test("writeFile() over a file writes through a link inside the folder, and keeps the link", async () => {
  await withFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/a`, "one");
    await Deno.symlink("a", `${folder}/link`);
    await replace(await found(folder, "link"), "two");
    assert.equal(await Deno.readLink(`${folder}/link`), "a");
    assert.equal(await Deno.readTextFile(`${folder}/a`), "two");
  });
});

Deno.test("backUp() puts the first copy next to the file unless it contains a key, and others elsewhere", async () => {
  await withFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/a`, "one");
    const file = await found(folder, "a");
    const elsewhere = `${folder}/home`;
    const copy = (hasKey = false) => backUp(file, { elsewhere, hasKey });
    const withKey = await copy(true);
    const [first, second, third] = [await copy(), await copy(), await copy()];
    assert.equal(first, `${folder}/a.backup`);
    for (const path of [withKey, second, third]) assert.ok(path.startsWith(`${elsewhere}/`), path);
    assert.equal(new Set([withKey, first, second, third]).size, 4);
    for (const path of [withKey, first, second, third]) {
      assert.equal(await Deno.readTextFile(path), "one");
      assert.equal(((await Deno.stat(path)).mode ?? 0) & 0o777, 0o600);
    }
    assert.deepEqual(await namesIn(folder), ["a", "a.backup", "home"]);
  });
});

Deno.test("backUp() writes to no link in the place of the first copy", async () => {
  await withFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/a`, "one");
    await Deno.symlink(`${folder}/none`, `${folder}/a.backup`);
    const file = await found(folder, "a");
    const path = await backUp(file, { elsewhere: `${folder}/home`, hasKey: false });
    assert.ok(path.startsWith(`${folder}/home/`), path);
  });
});

Deno.test("readInside() refuses links to the outside and paths of other kinds than files, without opening them", async () => {
  await withFolder(async (folder) => {
    const inner = `${folder}/inner`;
    await Deno.mkdir(`${inner}/folder`, { recursive: true });
    await Deno.writeTextFile(`${folder}/outside`, "secret");
    await Deno.symlink("../outside", `${inner}/out`);
    await Deno.symlink("none", `${inner}/nothing`);
    const result = await new Deno.Command("mkfifo", { args: [`${inner}/pipe`] }).output();
    const names = ["out", "nothing", "folder", ...(result.success ? ["pipe"] : [])];
    for (const name of names) {
      await assert.rejects(readInside(inner, name), { code: "CONFIG_INVALID" }, name);
    }
    assert.equal(await readInside(inner, "missing"), undefined);
  });
});

Deno.test("diffLines() shows a line that moves to another list as removed and added", () => {
  for (const indent of ["    ", "  "]) {
    const item = `${indent}- git:log`;
    const before = ["permissions:", "  allow:", `${indent}- a`, "# comment", "  ask:", item, ""];
    const after = ["permissions:", "  allow:", `${indent}- a`, item, "# comment", "  ask: []", ""];
    assert.deepEqual(diffLines(before.join("\n"), after.join("\n")), [
      `+ ${item}`,
      "-   ask:",
      `- ${item}`,
      "+   ask: []",
    ]);
  }
  const text = (allow: string[], ask: string[]) => JSON.stringify({ allow, ask }, null, 2);
  assert.deepEqual(diffLines(text(["a"], ["b", "c"]), text(["a", "b"], ["c"])), [
    '-     "a"',
    '+     "a",',
    '+     "b"',
    '-     "b",',
  ]);
});

Deno.test("diffLines() leaves out lines that did not change between two changes", () => {
  const before = "allow:\n- a\n- b\n- c\ndeny:\n- d\n";
  const after = "allow:\n- a\n- c\ndeny:\n- d\n- b\n";
  assert.deepEqual(diffLines(before, after), ["- - b", "+ - b"]);
  assert.deepEqual(diffLines(before, before), []);
  assert.deepEqual(diffLines("", "a\nb"), ["- ", "+ a", "+ b"]);
  const many = Array.from({ length: 2_000 }, (_, line) => `${line}`);
  const moved = [...many.slice(1), "0"];
  assert.equal(diffLines(many.join("\n"), moved.join("\n")).length, 4_000);
});
