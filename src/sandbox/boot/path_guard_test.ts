import assert from "node:assert/strict";
import { WINDOWS } from "../../core/paths.ts";
import { within } from "./names.ts";
import { PathGuard, resolveText } from "./path_guard.ts";

const NOTHING = { writeProtected: [], readProtected: [], writable: [], paths: [], granted: [] };

async function makeWalls() {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const workspace = `${root}/ws`;
  await Deno.mkdir(workspace);
  const guard = new PathGuard({
    workspace,
    read: [workspace],
    write: [workspace],
    protection: NOTHING,
    home: `${root}/home`,
    resultBytes: 1_000,
    writeBytes: 1_000,
  });
  return { guard, workspace, [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }) };
}

Deno.test("openFile() refuses a file that replaced the checked one", async () => {
  await using made = await makeWalls();
  const { guard, workspace } = made;
  Deno.writeTextFileSync(`${workspace}/a.txt`, "a");
  Deno.writeTextFileSync(`${workspace}/b.txt`, "b");
  const attempt = { op: "read", requestedPath: "a.txt", access: "read" } as const;
  const place = guard.follow(attempt);
  const { openSync } = Deno;
  Deno.openSync = (path, options) => {
    Deno.renameSync(`${workspace}/b.txt`, path);
    return openSync(path, options);
  };
  try {
    assert.throws(() => guard.openFile(place, { attempt, open: { read: true } }), {
      code: "PATH_OUTSIDE_WORKSPACE",
      message: /replaced while/,
    });
  } finally {
    Deno.openSync = openSync;
  }
});

Deno.test("requireFile() refuses a pipe, because opening it would wait for a writer", async () => {
  await using made = await makeWalls();
  const { guard, workspace } = made;
  const path = `${workspace}/pipe`;
  new Deno.Command("mkfifo", { args: [path] }).outputSync();
  const attempt = { op: "read", requestedPath: "pipe", access: "read" } as const;
  assert.throws(() => guard.requireFile(path, Deno.lstatSync(path), attempt), {
    code: "SANDBOX_DENIED",
    message: /a regular file/,
  });
});

/** Returns the meaning of a path on Windows in `C:/Work/ws`, or the reason of the refusal. */
function onWindows(requestedPath: string, ...roots: readonly string[]): string {
  const all = ["C:/Work/ws", ...roots];
  try {
    const { path, whyUnsafe } = resolveText({ op: "read", requestedPath }, all, WINDOWS);
    const isInside = all.some((root) => within(root, path));
    return isInside ? whyUnsafe ?? path : `outside: ${path}`;
  } catch (error) {
    return Object(error).message;
  }
}

Deno.test("resolveText() resolves Windows paths in every usual spelling", () => {
  const usual = [
    "src/a.ts",
    "src\\a.ts",
    ".\\src/./x\\..\\a.ts",
    "C:\\Work\\ws\\src\\a.ts",
    "c:/WORK/Ws/src/a.ts",
    "\\work\\ws\\src\\a.ts",
    "file:///c:/Work/ws/src/a.ts",
    "file:///C:/Work/ws/src%2Fa.ts",
  ];
  for (const asked of usual) assert.equal(onWindows(asked), "C:/Work/ws/src/a.ts", asked);
  assert.equal(onWindows("d:\\DATA\\x", "D:/data"), "D:/data/x");
  assert.equal(onWindows("."), "C:/Work/ws");
});

Deno.test("resolveText() refuses hostile Windows paths with the reason", () => {
  const hostile = {
    "path of a device": [
      "\\\\?\\C:\\Work\\ws\\a",
      "//?/C:/Work/ws/a",
      "\\\\.\\C:\\Work\\ws\\a",
      "\\??\\C:\\Work\\ws\\a",
      "\\\\?\\UNC\\server\\x",
    ],
    "path of a network": ["\\\\localhost\\C$\\Work\\ws\\a", "//server/share/a"],
    "not a path on this machine": ["file://server/share/a", "a\0b"],
    "current folder of a drive": ["C:a", "C:", "d:x\\y", "C:..\\ws\\a"],
    "outside: ": [
      "..\\x",
      "src\\..\\..\\x",
      "\\x",
      "D:\\Work\\ws\\a",
      "C:\\Work\\WSX\\a",
      "C:\\",
      "file:////server/a",
    ],
    "dots and blanks": [".env.", ".env ", "a.\\b", "src\\a.txt. ."],
    stream: [".env::$DATA", "a.txt:x", "src:$I30:$INDEX_ALLOCATION\\a"],
    "short name": ["GIT~1\\config", "PROGRA~1"],
    "name of a device": ["CON", "NUL.txt", "src\\COM¹", "nul .x", "AUX\\a"],
    "Windows allows no": ["a?.txt", "*", "src\\<a>"],
  };
  for (const [why, paths] of Object.entries(hostile)) {
    for (const asked of paths) assert.match(onWindows(asked), new RegExp(why), asked);
  }
});
