/**
 * Tests the tools of `filesystem` that change files, in a folder of its own.
 *
 * @module
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { Folder, type Name, swap } from "./_folder_test.ts";

Deno.test("write_file() creates and replaces, and keeps the mode and links of a file", async () => {
  using folder = new Folder({ "old": "long old text" });
  Deno.chmodSync(`${folder.path}/old`, 0o751);
  Deno.symlinkSync("old", `${folder.path}/link`);
  const write = (path: string) => folder.run("write_file", { path, content: "é\n" });
  assert.equal(await write("at:new"), "Wrote 3 bytes to at:new (new file)");
  assert.equal(await write("at:link"), "Wrote 3 bytes to at:link (replaced)");
  assert.deepEqual([folder.get("new"), folder.get("old")], ["é\n", "é\n"]);
  assert.equal(Deno.statSync(`${folder.path}/old`).mode, 0o100751);
  assert.ok(Deno.lstatSync(`${folder.path}/link`).isSymlink);
  assert.deepEqual(folder.names(), ["link", "new", "old"]);
  await write(`at:${"n".repeat(255)}`);
});

Deno.test("write_file() leaves everything as it was when it cannot write", async () => {
  using folder = new Folder({ "a": "old", "dir/x": "" });
  Deno.symlinkSync("nowhere", `${folder.path}/dangling`);
  const before = folder.names();
  const write = (path: string): [Name, object] => ["write_file", { path, content: "new" }];
  await folder.fails(
    ...write("at:no/a"),
    /^Cannot write "at:no\/a": its folder .* create_directory$/,
  );
  await folder.fails(...write("at:dir"), /it is a folder$/);
  await folder.fails(...write("at:dangling"), /link to nothing$/);
  await folder.fails(...write("at:a/b"), /is not a folder$/);
  Deno.chmodSync(`${folder.path}/dir/x`, 0o444);
  await folder.fails(...write("at:dir/x"), /it is read-only$/);
  const temps: string[] = [];
  {
    using _ = swap("rename", (from) => {
      temps.push(String(from).slice(folder.path.length));
      return Promise.reject(new Deno.errors.PermissionDenied("no"));
    });
    await folder.fails(...write("at:a"), /^Cannot write "at:a": the system denies access$/);
    await folder.fails(...write("at:new"), /denies access$/);
  }
  assert.match(temps.join(" "), /^\/\.\w{8}\.a\.tmp \/\.\w{8}\.new\.tmp$/);
  folder.signal = AbortSignal.abort(new Error("stop"));
  await folder.fails(...write("at:a"), /stop/);
  assert.equal(folder.get("a"), "old");
  assert.deepEqual(folder.names(), before);
});

Deno.test("edit_file() edits in order and returns a diff", async () => {
  using folder = new Folder({ "a": `${[..."abcdefghijklmnop"].join("\n")}\nend` });
  const edits = [
    { oldText: "b\n", newText: "B\nBB\n" },
    { oldText: "BB\nc", newText: "BB" },
    { oldText: "end", newText: "end\n" },
  ];
  const diff = "--- at:a\n+++ at:a\n@@ -1,6 +1,6 @@\n a\n-b\n-c\n+B\n+BB\n d\n e\n f\n" +
    "@@ -14,4 +14,4 @@\n n\n o\n p\n-end\n\\ No newline at end of file\n+end";
  const before = folder.get("a");
  assert.equal(await folder.run("edit_file", { path: "at:a", edits, dryRun: true }), diff);
  assert.equal(folder.get("a"), before);
  assert.equal(await folder.run("edit_file", { path: "at:a", edits }), diff);
  assert.equal(folder.get("a"), before.replace("b\nc", "B\nBB") + "\n");
  const same = [{ oldText: "a\n", newText: "a\n" }];
  const { mtime } = Deno.statSync(`${folder.path}/a`);
  assert.match(String(await folder.run("edit_file", { path: "at:a", edits: same })), /^No change/);
  assert.deepEqual(Deno.statSync(`${folder.path}/a`).mtime, mtime);
});

Deno.test("edit_file() refuses text that is missing or not unique, and then writes nothing", async () => {
  using folder = new Folder({ "a": "one\ntwo\n  three\ntwo\n three\n", "blank": "a\n\nb" });
  const edit = (path: string, ...olds: string[]): [Name, object] => [
    "edit_file",
    { path, edits: olds.map((oldText) => ({ oldText, newText: "x" })) },
  ];
  await folder.fails(
    ...edit("at:a", "none"),
    /^Cannot edit "at:a": oldText .*; read/,
  );
  await folder.fails(...edit("at:a", "two"), /more than once \(lines 2 and 4\)/);
  await folder.fails(...edit("at:a", "two\nthree"), /more than once \(lines 2 and 4\)/);
  await folder.fails(...edit("at:a", "one", "none"), /: edit 2 of 2: oldText is not/);
  await folder.fails(...edit("at:blank", "  "), /not in the file/);
  await folder.fails(...edit("at:none", "a"), /^Cannot edit "at:none": no such file/);
  folder.signal = AbortSignal.abort(new Error("stop"));
  await folder.fails(...edit("at:a", "one"), /stop/);
  assert.equal(folder.get("a"), "one\ntwo\n  three\ntwo\n three\n");
  assert.deepEqual(folder.names(), ["a", "blank"]);
});

Deno.test("edit_file() keeps the indentation of lines that match without it", async () => {
  using folder = new Folder({
    "a": "class A {\n\tf() {\n\t\tif (x) {\n\t\t\ty();  \n\t\t}\n\t}\n}\n",
  });
  const edits = [
    { oldText: "if (x) {\n  y();\n}", newText: "if (x) {\n  y();\n\n  z();\n}\nw();" },
    { oldText: "        w();\n", newText: "    w();\n        v();\n" },
    { oldText: "  f() {", newText: "  g() {" },
  ];
  await folder.run("edit_file", { path: "at:a", edits });
  const inner = "\t\tif (x) {\n\t\t\ty();\n\n\t\t\tz();\n\t\t}\n";
  assert.equal(folder.get("a"), `class A {\n\tg() {\n${inner}\tw();\n\t\tv();\n\t}\n}\n`);
});

/** Applies a unified diff, as `patch` does, to text without carriage returns. */
function patched(text: string, diff: string): string {
  const [old, out]: [string[], string[]] = [text.match(/[^\n]*\n|[^\n]+/g) ?? [], []];
  let at = 0;
  for (const row of diff.replaceAll("\n\\ No newline at end of file", "\0").split("\n").slice(2)) {
    const start = /^@@ -(\d+),(\d+)/.exec(row);
    const line = row.endsWith("\0") ? row.slice(1, -1) : `${row.slice(1)}\n`;
    if (start !== null) {
      while (at < Number(start[1]) - Math.sign(Number(start[2]))) out.push(old[at++] ?? "?");
    } else if (row.startsWith("+")) out.push(line);
    else assert.equal(old[at++], line);
    if (row.startsWith(" ")) out.push(line);
  }
  return [...out, ...old.slice(at)].join("");
}

Deno.test("edit_file() can be undone, keeps line endings, and returns a complete diff", async () => {
  using folder = new Folder();
  const text = (max: number) =>
    fc.string({ unit: fc.constantFrom("a", "é", " ", "\n"), maxLength: max });
  await fc.assert(
    fc.asyncProperty(
      text(40),
      text(6),
      text(40),
      fc.boolean(),
      async (before, fresh, after, crlf) => {
        const [old, now] = [`<${fresh}>`, `[${after.slice(0, 9)}\nx]`];
        const ended = (part: string) => crlf ? part.replaceAll("\n", "\r\n") : part;
        folder.put("a", ended(`\n${before}${old}${after}`));
        const edit = (oldText: string, newText: string) =>
          folder.run("edit_file", { path: "at:a", edits: [{ oldText, newText }] });
        const diff = String(await edit(old, ended(now)));
        assert.equal(folder.get("a"), ended(`\n${before}${now}${after}`));
        assert.equal(patched(`\n${before}${old}${after}`, diff), `\n${before}${now}${after}`);
        await edit(ended(now), old);
        assert.equal(folder.get("a"), ended(`\n${before}${old}${after}`));
      },
    ),
    { numRuns: 150 },
  );
  folder.put("mixed", "a\r\nb\nc\r\nk\nd");
  const edits = [{ oldText: "b\nc", newText: "B\nx\nc" }];
  await folder.run("edit_file", { path: "at:mixed", edits });
  assert.equal(folder.get("mixed"), "a\r\nB\r\nx\r\nc\r\nk\nd");
});

Deno.test("edit_file() lets several edits of one file at a time all count", async () => {
  using folder = new Folder({ "a": [..."abcdefgh"].join("\n") });
  await Promise.allSettled([..."abXcdefgh"].map((sign) =>
    folder.run("edit_file", {
      path: "at:a",
      edits: [{ oldText: sign, newText: sign.toUpperCase().repeat(2) }],
    })
  ));
  assert.equal(folder.get("a"), [..."ABCDEFGH"].map((sign) => sign + sign).join("\n"));
});

Deno.test("get_file_info() returns the type of a path, also of a link", async () => {
  using folder = new Folder({ "a": "abc" });
  Deno.chmodSync(`${folder.path}/a`, 0o640);
  Deno.symlinkSync("a", `${folder.path}/link`);
  const look = async (path: string) =>
    JSON.parse(JSON.stringify(await folder.run("get_file_info", { path })));
  const { modified, ...rest } = await look("at:a");
  assert.match(modified, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  assert.deepEqual([rest.type, rest.size, rest.permissions], ["file", 3, "640"]);
  assert.equal((await look("at:link")).type, "link");
  assert.equal((await look("at:")).type, "directory");
  await folder.fails("get_file_info", { path: "at:no" }, /^Cannot look at "at:no": no such/);
  assert.equal(
    await folder.run("list_allowed_directories"),
    `Allowed directories:\n${folder.path}`,
  );
});

Deno.test("create_directory() makes parents and leaves what exists", async () => {
  using folder = new Folder({ "a": "" });
  for (let time = 0; time < 2; time++) await folder.run("create_directory", { path: "at:x/y" });
  assert.ok(Deno.statSync(`${folder.path}/x/y`).isDirectory);
  await folder.fails("create_directory", { path: "at:a" }, /is not a folder$/);
  await folder.fails("create_directory", { path: "at:a/b" }, /is not a folder$/);
});

Deno.test("move_file() moves to a free path only", async () => {
  using folder = new Folder({ "a": "A", "b": "B", "dir/x": "" });
  Deno.symlinkSync("nowhere", `${folder.path}/dangling`);
  const move = (destination: string, source = "at:a") => ({ source, destination });
  await folder.fails(
    "move_file",
    move("at:b"),
    /^Cannot move "at:a" to "at:b": .* exists already$/,
  );
  await folder.fails("move_file", move("at:dangling"), /exists already$/);
  await folder.fails("move_file", move("at:no/a"), /folder does not exist/);
  await folder.fails("move_file", move("at:c", "at:no"), /no such file/);
  await folder.fails("move_file", move("at:dir/in", "at:dir"), /cannot move into itself$/);
  assert.equal(await folder.run("move_file", move("at:dir/c")), "Moved at:a to at:dir/c");
  assert.deepEqual([folder.get("dir/c"), folder.get("b")], ["A", "B"]);
});

Deno.test("remove_file() and remove_directory() remove only the given path", async () => {
  using folder = new Folder({ "a": "", "dir/x": "", "empty/x": "", "ws/x": "" });
  Deno.removeSync(`${folder.path}/empty/x`);
  Deno.symlinkSync("../ws", `${folder.path}/dir/link`);
  Deno.symlinkSync("dir", `${folder.path}/link`);
  await folder.fails("remove_file", { path: "at:dir" }, /a folder; use remove_directory$/);
  await folder.fails("remove_file", { path: "at:no" }, /no such file/);
  await folder.fails("remove_directory", { path: "at:a" }, /not a folder; use remove_file$/);
  for (const path of ["at:link", "at:link/", "at:link/."]) {
    await folder.fails(
      "remove_directory",
      { path, recursive: true },
      /not a folder; use remove_file/,
    );
  }
  await folder.fails("remove_directory", { path: "at:dir" }, /not empty; set recursive/);
  for (const path of ["at:", "at:dir/.."]) {
    await folder.fails("remove_directory", { path, recursive: true }, /it contains the workspace$/);
  }
  await folder.run("remove_file", { path: "at:a" });
  await folder.run("remove_file", { path: "at:link" });
  await folder.run("remove_directory", { path: "at:empty/" });
  await folder.run("remove_directory", { path: "at:dir", recursive: true });
  assert.deepEqual(folder.names(), ["ws"]);
  assert.equal(folder.get("ws/x"), "");
});
