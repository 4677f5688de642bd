import assert from "node:assert/strict";
import { isBatch, startedCommand } from "./batch_files.ts";

const WINDOWS = "C:\\Windows";

function lineOf(...args: string[]): string {
  const { file, args: [line = ""], windowsRawArguments } = startedCommand(
    { file: "C:\\tools\\a b.cmd", args },
    WINDOWS,
  );
  assert.deepEqual([file, windowsRawArguments], ["C:\\Windows\\System32\\cmd.exe", true]);
  const [, own] = /^\/e:ON \/v:OFF \/d \/q \/c ""C:\\tools\\a b\.cmd"(.*)"$/.exec(line) ?? [];
  return own ?? assert.fail(line);
}

/** Returns whether `cmd.exe` is between quotes at each character that it could act on. */
function isHeld(line: string): boolean {
  return [...line].every((letter, at) =>
    !/[&|<>^()!]/.test(letter) || line.slice(0, at).split('"').length % 2 === 0
  );
}

Deno.test("startedCommand() does not change commands whose program is not a batch file", () => {
  for (const file of ["C:\\node.exe", "/bin/x.cmd.sh", "C:\\x.cmd\\node.exe"]) {
    assert.deepEqual(startedCommand({ file, args: ["&"] }, WINDOWS), { file, args: ["&"] });
  }
});

Deno.test("isBatch() finds batch files in every spelling that Windows takes", () => {
  const batch = ["npx.cmd", "C:/NPX.CMD", "a.Bat", "a.bat.", "a.cmd ..", "a.cmd. "];
  assert.deepEqual(batch.filter((file) => !isBatch(file)), []);
  assert.deepEqual(["a.exe", "cmd", "a.cmd.exe", "cmd.exe"].filter(isBatch), []);
});

Deno.test("startedCommand() quotes arguments of batch files so that cmd.exe starts nothing else", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["plain", " plain"],
    ["-y", " -y"],
    ["@scope/name@1.2.3", " @scope/name@1.2.3"],
    ["", ' ""'],
    ["a b", ' "a b"'],
    ['"', ' """"'],
    ['"&calc.exe', ' """&calc.exe"'],
    ['\\"&calc.exe', ' "\\\\""&calc.exe"'],
    ["a^b|c<d>e", ' "a^b|c<d>e"'],
    ["C:\\dir\\", ' "C:\\dir\\\\"'],
    ["C:\\dir", " C:\\dir"],
    ["%PATH%", ' "%%cd:~,%PATH%%cd:~,%"'],
    ["!PATH!", ' "!PATH!"'],
    ["a,b;c=d", ' "a,b;c=d"'],
    ["é", " é"],
  ];
  for (const [arg, wanted] of cases) assert.equal(lineOf(arg), wanted, arg);
  const parts = ['"', "&", "\\", "^", "%", " ", "a", "|", ">", "("];
  for (const a of parts) {
    for (const b of parts) {
      for (const c of parts) {
        const line = lineOf(a + b + c, c + a);
        assert.ok(isHeld(line), line);
        assert.doesNotMatch(line.replaceAll("%%cd:~,%", ""), /%/);
      }
    }
  }
});

Deno.test("startedCommand() refuses what cmd.exe cannot read as it is", () => {
  const cases: readonly (readonly [string, readonly string[], RegExp])[] = [
    ["C:\\a.cmd", ["a\nb"], /argument 1 has a line break/],
    ["C:\\a.cmd", ["a", "b\r"], /argument 2 has a line break/],
    ["C:\\a.cmd", ["a\0"], /argument 1/],
    ["C:\\a.cmd", ["x".repeat(8_000)], /longer than 8000 characters/],
    ["C:\\a.cmd.", [], /its name/],
    ["C:\\%PATH%\\a.cmd", [], /its name/],
    ['C:\\a" & calc "\\b.cmd', [], /its name/],
  ];
  for (const [file, args, why] of cases) {
    assert.throws(() => startedCommand({ file, args }, WINDOWS), why, file);
  }
});
