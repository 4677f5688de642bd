import assert from "node:assert/strict";
import { PathGuard } from "./path_guard.ts";

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

Deno.test("openFile() gives no file that came to the place of the one that was looked at", async () => {
  await using made = await makeWalls();
  const { guard, workspace } = made;
  Deno.writeTextFileSync(`${workspace}/a.txt`, "a");
  Deno.writeTextFileSync(`${workspace}/b.txt`, "b");
  const attempt = { op: "read", asked: "a.txt", access: "read" } as const;
  const place = guard.follow(attempt);
  const { openSync } = Deno;
  Deno.openSync = (path, options) => {
    Deno.renameSync(`${workspace}/b.txt`, path);
    return openSync(path, options);
  };
  try {
    assert.throws(() => guard.openFile(place, { attempt, open: { read: true } }), {
      code: "PATH_OUTSIDE_WORKSPACE",
      message: /it was replaced while it was being opened/,
    });
  } finally {
    Deno.openSync = openSync;
  }
});

Deno.test("requireFile() refuses a pipe, whose opening would wait for a writer", async () => {
  await using made = await makeWalls();
  const { guard, workspace } = made;
  const path = `${workspace}/pipe`;
  new Deno.Command("mkfifo", { args: [path] }).outputSync();
  const attempt = { op: "read", asked: "pipe", access: "read" } as const;
  assert.throws(() => guard.requireFile(path, Deno.lstatSync(path), attempt), {
    code: "SANDBOX_DENIED",
    message: /it is neither a regular file nor a folder/,
  });
});
