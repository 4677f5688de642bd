import assert from "node:assert/strict";
import { pathIn } from "./asking.ts";

const REPOSITORY = { what: "Cannot add", root: "C:/Work/ws" };

Deno.test("pathIn() makes paths of Windows relative to the repository", () => {
  const cases = [
    ["src\\a.ts", "src/a.ts"],
    ["src/a.ts", "src/a.ts"],
    ["C:\\Work\\ws\\src\\a.ts", "src/a.ts"],
    ["c:/work/WS/src/a.ts", "src/a.ts"],
    ["C:\\Work\\ws", "."],
  ] as const;
  for (const [path, wanted] of cases) {
    assert.equal(pathIn(REPOSITORY, path, "windows"), wanted, path);
  }
});

Deno.test("pathIn() refuses paths of Windows that lead out of the repository", () => {
  const hostile = [
    "..\\x",
    "src\\..\\..\\x",
    "\\x",
    "D:\\Work\\ws\\a",
    "C:\\Work",
    "C:a",
    "\\\\server\\share",
    "\\\\?\\D:\\x",
  ];
  for (const path of hostile) {
    assert.throws(() => pathIn(REPOSITORY, path, "windows"), /out of the repository/, path);
  }
  // There it is the name of a file.
  assert.equal(pathIn({ ...REPOSITORY, root: "/ws" }, "..\\x", "linux"), "..\\x");
});
