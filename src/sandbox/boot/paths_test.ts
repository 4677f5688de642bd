import assert from "node:assert/strict";
import { POSIX, WINDOWS } from "./paths.ts";

Deno.test("POSIX resolves paths by their text, and takes a backslash for a part of a name", () => {
  const cases = [
    ["a/../b", "/w/b"],
    ["../../../x", "/x"],
    ["/a//b/.", "/a/b"],
    ["a\\..\\..\\x", "/w/a\\..\\..\\x"],
    [".", "/w"],
  ] as const;
  for (const [path, wanted] of cases) assert.equal(POSIX.resolve("/w", path), wanted, path);
  assert.equal(POSIX.respelled("/W", "/w/a"), "/w/a");
});

Deno.test("WINDOWS reads drives, both separators and the long form of a path", () => {
  const cases = [
    ["C:\\a\\b", "C:/a/b"],
    ["c:/a", "C:/a"],
    ["\\\\?\\C:\\a", "C:/a"],
    ["/C:/a", "C:/a"],
    ["a\\b", "a/b"],
    ["C:", "C:"],
  ] as const;
  for (const [path, wanted] of cases) assert.equal(WINDOWS.plain(path), wanted, path);
});

Deno.test("WINDOWS reads no path of a network or a device, and none relative to a drive", () => {
  const odd = [
    "\\\\server\\share\\a",
    "//server/share/a",
    "\\\\?\\UNC\\server\\share\\a",
    "\\\\.\\pipe\\a",
    "\\\\?\\GLOBALROOT\\Device\\a",
    "C:a",
    "c:..\\x",
  ];
  for (const path of odd) assert.equal(WINDOWS.plain(path), undefined, path);
});

Deno.test("WINDOWS resolves paths within a drive, which no number of dots leaves", () => {
  const cases = [
    ["a/../b", "C:/w/b"],
    ["../../../x", "C:/x"],
    ["/x", "C:/x"],
    ["D:/a/./b", "D:/a/b"],
    ["D:/../..", "D:/"],
    [".", "C:/w"],
  ] as const;
  for (const [path, wanted] of cases) assert.equal(WINDOWS.resolve("C:/w", path), wanted, path);
  assert.deepEqual(WINDOWS.namesOf("C:/w/a"), ["C:", "w", "a"]);
});

Deno.test("WINDOWS takes names for the same in any case of A to Z, and of no other letter", () => {
  assert.equal(WINDOWS.respelled("C:/Work", "C:/WORK/Src"), "C:/Work/Src");
  assert.equal(WINDOWS.respelled("C:/Work", "C:/Works/a"), "C:/Works/a");
  // The Kelvin sign becomes "k" in lower case, but is another name on the disk.
  assert.equal(WINDOWS.respelled("C:/k", "C:/\u212a/a"), "C:/\u212a/a");
});
