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
  assert.equal(POSIX.respell("/W", "/w/a"), "/w/a");
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

Deno.test("WINDOWS takes names for the same in any case, but not letters that only become the same", () => {
  assert.equal(WINDOWS.respell("C:/Work", "C:/WORK/Src"), "C:/Work/Src");
  assert.equal(WINDOWS.respell("C:/Übung/Ёж", "c:/übung/ёЖ/A"), "C:/Übung/Ёж/A");
  assert.equal(WINDOWS.respell("C:/Work", "C:/Works/a"), "C:/Works/a");
  const others = [["k", "\u212a"], ["ss", "ß"], ["i", "ı"], ["i", "İ"], ["s", "ſ"], ["μ", "µ"]];
  for (const [one = "", other = ""] of others) {
    assert.equal(WINDOWS.respell(`C:/${one}`, `C:/${other}/a`), `C:/${other}/a`);
    assert.notEqual(WINDOWS.fold(one), WINDOWS.fold(other));
  }
  assert.equal(POSIX.fold("A"), "A");
});

Deno.test("WINDOWS says why a path means no place in a folder", () => {
  const cases = {
    device: [
      "\\\\?\\C:\\w\\a",
      "//?/C:/w/a",
      "\\\\.\\C:\\w",
      "\\\\.\\pipe\\x",
      "\\??\\C:\\w",
      "//./NUL",
    ],
    network: ["\\\\server\\share\\a", "//server/share", "/\\server\\share", "\\\\127.0.0.1\\C$\\w"],
    "current folder of a drive": ["C:a", "c:", "C:..\\x", "Z:"],
  };
  for (const [why, paths] of Object.entries(cases)) {
    for (const path of paths) assert.match(WINDOWS.whyNotLocal(path) ?? "", new RegExp(why), path);
  }
  for (const path of ["C:\\w", "c:/w", "\\w", "a\\b", ".", "ab:c", "/C:/w"]) {
    assert.equal(WINDOWS.whyNotLocal(path), undefined, path);
  }
  assert.match(POSIX.whyNotLocal("\\\\server\\a") ?? "", /this machine/);
  assert.equal(POSIX.whyNotLocal("C:a"), undefined);
});

Deno.test("both systems say why a name means another file on Windows", () => {
  const cases = {
    "dots and blanks": ["a.", "a ", "a. .", "...", ".env."],
    stream: ["a.txt::$DATA", "a:b", ".env:x"],
    "short name": ["PROGRA~1", "GIT~1", "ENV~2.TXT"],
    device: [
      "CON",
      "nul",
      "NUL.txt",
      "NUL .txt",
      "aux.c.d",
      "COM1",
      "com¹",
      "LPT³.x",
      "conin$",
      "CLOCK$",
    ],
  };
  for (const rules of [POSIX, WINDOWS]) {
    for (const [why, names] of Object.entries(cases)) {
      for (const name of names) {
        assert.match(rules.whyUnsafeName(name) ?? "", new RegExp(why), name);
      }
    }
    for (const name of ["a", ".env", "console", "com", "com10", "a~b", "nul-1", "a b.c"]) {
      assert.equal(rules.whyUnsafeName(name), undefined, name);
    }
  }
  for (const name of ["a?", "*", "a|b", 'a"b', "a<b", "a>b", "a\u0001"]) {
    assert.match(WINDOWS.whyUnsafeName(name) ?? "", /Windows allows no/, name);
    assert.equal(POSIX.whyUnsafeName(name), undefined, name);
  }
});
