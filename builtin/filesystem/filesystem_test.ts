/**
 * Tests the tools of `filesystem` that read, on real files in a folder of its own.
 *
 * @module
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import * as tools from "./filesystem.ts";
import { __meta__ } from "./meta.ts";
import { Folder, lines, type Result, swap } from "./_folder_test.ts";
import { assertGolden } from "../../tests/kit/golden.ts";

Deno.test("__meta__ describes every exported tool, closed, with the rights that it needs", () => {
  assert.deepEqual(Object.keys(__meta__.tools).sort(), Object.keys(tools).sort());
  const writers = Object.entries(__meta__.tools).filter(([, tool]) => tool?.permissions.write);
  assert.deepEqual(
    writers.map(([name]) => name).sort(),
    "create_directory edit_file move_file remove_directory remove_file write_file".split(" "),
  );
  for (const [name, tool] of Object.entries(__meta__.tools)) {
    const { inputSchema, annotations, permissions } = tool;
    assert.equal(inputSchema.additionalProperties, false, name);
    assert.equal(annotations.readOnlyHint, permissions.write === undefined, name);
    assert.equal(annotations.openWorldHint, false, name);
    assert.ok(annotations.title && tool.description.length < 200, name);
  }
  assert.deepEqual(__meta__.tools.search_files?.inputSchema.required, ["path", "pattern"]);
  assert.ok(JSON.stringify(__meta__).length < 10_000);
});

Deno.test("read_file() returns the whole text unchanged", async () => {
  using folder = new Folder({ "a.txt": "\uFEFFé\r\n\n", "empty": "" });
  assert.equal(await folder.run("read_file", { path: "at:a.txt" }), "\uFEFFé\r\n\n");
  assert.equal(await folder.run("read_text_file", { path: "at:empty" }), "");
});

Deno.test("read_file() returns the first and last lines of any text", async () => {
  using folder = new Folder();
  const line = fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 5 }),
    fc.integer({ min: 1, max: 70_000 }).map((count) => "é€😀x".repeat(count / 4)),
  ).map((text) => text.replace(/[\n\r\0]/g, ""));
  const text = fc.record({
    lines: fc.array(line, { maxLength: 6 }),
    breaks: fc.constantFrom("\n", "\r\n"),
    last: fc.boolean(),
  }).map((it) => it.lines.join(it.breaks) + (it.last ? it.breaks : ""));
  await fc.assert(
    fc.asyncProperty(text, fc.integer({ min: 1, max: 7 }), async (content, count) => {
      folder.put("a", content);
      const [head, tail] = [lines(content).slice(0, count), lines(content).slice(-count)];
      const ended = (part: string[], all: boolean) =>
        all && !content.endsWith("\n") ? part.join("\n") : part.join("\n").replace(/\r$/, "");
      const whole = lines(content).length <= count;
      assert.equal(
        await folder.run("read_file", { path: "at:a", head: count }),
        ended(head, whole),
      );
      assert.equal(await folder.run("read_file", { path: "at:a", tail: count }), ended(tail, true));
    }),
    { numRuns: 80 },
  );
});

Deno.test("read_file() reads the ends of a file that is too large to read", async () => {
  using folder = new Folder({ "log": `first\n${"é\n".repeat(4_000_000)}last` });
  await folder.fails(
    "read_file",
    { path: "at:log" },
    /has 11.44 MB, over 10.00 MB; .*head or tail/,
  );
  assert.equal(await folder.run("read_file", { path: "at:log", head: 2 }), "first\né");
  assert.equal(await folder.run("read_file", { path: "at:log", tail: 2 }), "é\nlast");
  folder.put("line", "x".repeat(11_000_000));
  await folder.fails("read_file", { path: "at:line", tail: 1 }, /lines have more than 10.00 MB/);
  await folder.fails("edit_file", { path: "at:line", edits: [] }, /^Cannot edit .* over 10.00 MB/);
});

Deno.test("read_file() refuses paths that are no text files, without waiting for a pipe", async () => {
  using folder = new Folder({ "nul": "a\0", "latin1": Uint8Array.of(65, 233), "dir/x": "" });
  folder.put("late", new Uint8Array([0, ...Array(9_000).fill(10), 65]));
  await new Deno.Command("mkfifo", { args: [`${folder.path}/pipe`] }).output();
  Deno.symlinkSync("loop", `${folder.path}/loop`);
  const cases: [object, RegExp][] = [
    [{ path: "at:none" }, /^Cannot read "at:none": no such file or folder$/],
    [{ path: "at:dir" }, /: it is a folder$/],
    [{ path: "at:dir", head: 1 }, /: it is a folder$/],
    [{ path: "at:nul/x" }, /path, is not a folder$/],
    [{ path: "at:nul" }, /not UTF-8 text; read_media_file/],
    [{ path: "at:latin1" }, /not UTF-8 text/],
    [{ path: "at:latin1", tail: 1 }, /not UTF-8 text/],
    [{ path: "at:late", tail: 1 }, /not UTF-8 text/],
    [{ path: "at:pipe" }, /not a regular file$/],
    [{ path: "at:pipe", head: 1 }, /not a regular file$/],
    [{ path: "at:loop" }, /go round in a circle$/],
    [{ path: `at:${"x".repeat(5_000)}` }, /…": its name is too long$/],
    [{ path: "at:nul", head: 1, tail: 1 }, /head or tail, not both$/],
  ];
  for (const [args, message] of cases) await folder.fails("read_file", args, message);
});

Deno.test("tools pass a refusal by the sandbox on unchanged", async () => {
  using folder = new Folder({ "a": "a" });
  const errors = [
    Object.assign(new Error("no"), { code: "PATH_OUTSIDE_WORKSPACE" }),
    Object.assign(new Deno.errors.PermissionDenied("no"), { code: "PATH_PROTECTED" }),
    new Deno.errors.NotCapable("no"),
  ];
  for (const refusal of errors) {
    using _ = swap("readFile", () => Promise.reject(refusal));
    await assert.rejects(folder.run("read_file", { path: "at:a" }), (error) => error === refusal);
  }
});

Deno.test("read_media_file() returns images, sounds and other files as base64", async () => {
  using folder = new Folder();
  for (const name of ["a.PNG", "a.mp3", "a #.bin", "png"]) folder.put(name, Uint8Array.of(0, 255));
  const read = async (path: string) =>
    (await folder.run("read_media_file", { path }) as Result).content;
  assert.deepEqual(await read("at:a.PNG"), [{
    type: "image",
    data: "AP8=",
    mimeType: "image/png",
  }]);
  assert.deepEqual(await read("at:a.mp3"), [{
    type: "audio",
    data: "AP8=",
    mimeType: "audio/mpeg",
  }]);
  const resource = { mimeType: "application/octet-stream", blob: "AP8=" };
  const uri = `file://${folder.path}`;
  assert.deepEqual(await read("at:a #.bin"), [
    { type: "resource", resource: { uri: `${uri}/a%20%23.bin`, ...resource } },
  ]);
  assert.deepEqual(await read("at:png"), [
    { type: "resource", resource: { uri: `${uri}/png`, ...resource } },
  ]);
});

Deno.test("read_multiple_files() reports each failure in its place", async () => {
  using folder = new Folder({ "a": "A", "b": "B", "big": "x".repeat(9_000_000) });
  const read = (...paths: string[]) => folder.run("read_multiple_files", { paths });
  assertGolden(
    "filesystem/one of three files does not exist",
    `${await read("at:a", "at:no", "at:b")}`,
  );
  assert.match(String(await read("at:big", "at:big")), /Error - Cannot read .*, over 1\.\d+ MB/);
  folder.signal = AbortSignal.abort(new Error("stop"));
  await assert.rejects(read("at:a"), /stop/);
});

Deno.test("list_directory() shows folders, files and links, one a line", async () => {
  using folder = new Folder({ "b.txt": "", "a/x": "", "two\n[FILE] lines": "" });
  Deno.symlinkSync("a", `${folder.path}/c`);
  Deno.mkdirSync(`${folder.path}/empty`);
  assert.equal(
    await folder.run("list_directory", { path: "at:" }),
    "[DIR] a\n[FILE] b.txt\n[LINK] c\n[DIR] empty\n[FILE] two%0A[FILE] lines",
  );
  assert.equal(await folder.run("list_directory", { path: "at:empty" }), "The folder is empty");
  await folder.fails(
    "list_directory",
    { path: "at:b.txt" },
    /^Cannot list "at:b.txt": .*not a folder/,
  );
});

Deno.test("list_directory_with_sizes() sorts and sums, and counts no size for unreadable entries", async () => {
  using folder = new Folder({ "a": "x", "b": "x".repeat(2_048), "c": "xx", "d/e": "xxx" });
  const list = (sortBy?: string) =>
    folder.run("list_directory_with_sizes", { path: "at:", sortBy });
  const total = "\nTotal: 3 files, 1 directories\nCombined size: 2.00 KB";
  assert.equal(await list(), `[FILE] a 1 B\n[FILE] b 2.00 KB\n[FILE] c 2 B\n[DIR] d\n${total}`);
  assert.match(
    String(await list("size")),
    /^\[FILE\] b .*\n\[FILE\] c .*\n\[FILE\] a .*\n\[DIR\] d\n/,
  );
  using _ = swap("lstat", () => Promise.reject(new Error("hidden")));
  assert.match(String(await list()), /^\[FILE\] a\n\[FILE\] b\n/);
});

Deno.test("directory_tree() leaves out excluded entries and never follows a link", async () => {
  using folder = new Folder({
    "src/a.ts": "",
    "src/deep/b.ts": "",
    "x/node_modules/m": "",
    "n": "",
  });
  Deno.symlinkSync("..", `${folder.path}/src/up`);
  const tree = async (path: string, ...excludePatterns: string[]) =>
    JSON.parse(String(await folder.run("directory_tree", { path, excludePatterns })));
  const [a, b] = ["a.ts", "b.ts"].map((name) => ({ name, type: "file" }));
  const deep = { name: "deep", type: "directory", children: [b] };
  const up = { name: "up", type: "link" };
  assert.deepEqual(await tree("at:src"), [a, deep, up]);
  assert.deepEqual(await tree("at:src", "*.ts", "up"), [deep]);
  assert.deepEqual(await tree("at:src", "**/*.ts"), [{ ...deep, children: [] }, up]);
  assert.deepEqual(await tree("at:", "node_modules", "src", "n"), [
    { name: "x", type: "directory", children: [] },
  ]);
});

Deno.test("lists stop at 5,000 entries and say how many more there are", async () => {
  using folder = new Folder();
  const entries = (count: number) =>
    async function* () {
      const [isFile, isDirectory, isSymlink] = [true, false, false];
      for (let at = 0; at < count; at++) yield { name: `f${at}`, isFile, isDirectory, isSymlink };
    };
  const rows = (text: unknown) => [...String(text).matchAll(/^(\[FILE\] |at:)f\d+$/gm)].length;
  const { content } = await (async () => {
    using _ = swap("readDir", entries(5_010));
    for (const name of ["list_directory", "list_directory_with_sizes", "search_files"] as const) {
      const found = await folder.run(name, { path: "at:", pattern: "*" });
      assert.deepEqual([rows(found), /\n(.*) more not/.exec(String(found))?.[1]], [5_000, "10"]);
    }
    return await folder.run("directory_tree", { path: "at:" }) as Result;
  })();
  assert.equal(JSON.parse(String(content[0]?.text)).length, 5_000);
  assert.equal(content[1]?.text, "10 more not shown");
  assert.ok(folder.steps.includes(4_999));
  using _ = swap("readDir", entries(200_000));
  const large = await folder.run("directory_tree", { path: "at:" }) as Result;
  assert.equal(large.content[1]?.text, "95000+ more not shown");
  folder.signal = AbortSignal.abort(new Error("stop"));
  await folder.fails("search_files", { path: "at:", pattern: "*" }, /stop/);
});

Deno.test("walks pass over folders that do not open, or lie more than 100 deep", async () => {
  using folder = new Folder({ [`${"d/".repeat(102)}x`]: "", "a/x": "" });
  const find = () => folder.run("search_files", { path: "at:", pattern: "**/x" });
  assertGolden("filesystem/a folder cannot be opened", `${await find()}`);
  const { readDir } = Deno;
  using _ = swap("readDir", (path) => {
    if (String(path).endsWith("/a")) throw new Deno.errors.PermissionDenied("no");
    return readDir(path);
  });
  assertGolden("filesystem/no matches and folders that cannot be opened", `${await find()}`);
});

Deno.test("search_files() returns paths for other tools, shallow ones first", async () => {
  using folder = new Folder({ "a.ts": "", "b/c.ts": "", "b/.d/e.tsx": "", "m/n/o.ts": "" });
  Deno.symlinkSync(".", `${folder.path}/b/loop`);
  const find = (pattern: string, ...excludePatterns: string[]) =>
    folder.run("search_files", { path: "at:", pattern, excludePatterns });
  assert.equal(await find("*.ts"), "at:a.ts");
  assert.equal(await find("**/*.{ts,tsx}"), "at:a.ts\nat:b/c.ts\nat:b/.d/e.tsx\nat:m/n/o.ts");
  assert.equal(await find("**/*.ts", "n", "b/**"), "at:a.ts");
  assert.equal(await find("c.ts"), "No matches found; try **/c.ts");
  assert.equal(await find("**/x"), "No matches found");
  await folder.fails(
    "search_files",
    { path: "at:no", pattern: "*" },
    /^Cannot list "at:no": no such/,
  );
  await folder.fails(
    "search_files",
    { path: "at:", pattern: "{a,b}".repeat(20) },
    /too many braces/,
  );
});

/** Tries everything, to check the glob of `search_files`, which scans. */
function fits(pattern: readonly string[], path: readonly string[]): boolean {
  const [first, ...rest] = pattern;
  if (first === undefined) return path.length === 0;
  if (first !== "**") {
    return path[0] !== undefined && fitsName(first, path[0]) && fits(rest, path.slice(1));
  }
  const from = rest.length === 0 ? 1 : 0;
  return [...Array(path.length + 1).keys()].slice(from).some((skip) =>
    fits(rest, path.slice(skip))
  );
}

function fitsName(pattern: string, name: string): boolean {
  if (pattern === "") return name === "";
  const rest = pattern.slice(1);
  if (pattern.startsWith("*")) {
    return fitsName(rest, name) || (name !== "" && fitsName(pattern, name.slice(1)));
  }
  return name !== "" && (pattern[0] === "?" || pattern[0] === name[0]) &&
    fitsName(rest, name.slice(1));
}

Deno.test("search_files() matches as a glob does, in time that does not explode", async () => {
  using folder = new Folder({
    "a/b/ab": "",
    "a/ab/b/a": "",
    "b/a/a": "",
    "ab/abab/bb": "",
    "bb": "",
  });
  const all = String(await folder.run("search_files", { path: "at:", pattern: "**" })).split("\n");
  const none = (pattern: string) =>
    pattern.includes("**") ? "No matches found" : `No matches found; try **/${pattern}`;
  const part = fc.oneof(fc.constant("**"), fc.stringMatching(/^[ab*?]{1,4}$/));
  await fc.assert(
    fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 5 }), async (parts) => {
      const pattern = parts.join("/");
      const model = all.filter((path) => fits(parts, path.slice(3).split("/")));
      const found = await folder.run("search_files", { path: "at:", pattern });
      assert.equal(found, model.join("\n") || none(pattern), pattern);
    }),
    { numRuns: 300 },
  );
  folder.put("a".repeat(250), "");
  const slow = `${"**/".repeat(100)}${"*a".repeat(200)}b`;
  assert.equal(
    await folder.run("search_files", { path: "at:", pattern: slow }),
    "No matches found",
  );
});
