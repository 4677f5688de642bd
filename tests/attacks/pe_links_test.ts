import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { link, mkdir, readdir, rename, symlink, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { assertNoLeak } from "../kit/sinks.ts";
import type { Workspace } from "../kit/workspace.ts";
import {
  actsOnLinkItself,
  assertRefused,
  FILE_TOOLS,
  LINKS,
  plantLinks,
  plantSibling,
  SECRET,
  use,
  WRITING,
} from "./file_tools.ts";
import { endWell, textOf } from "./oracles.ts";
import { makeScene } from "./stage.ts";

/** Paths through those links. */
const THROUGH = [
  ...Object.keys(LINKS),
  "to-folder/canary.txt",
  "to-folder/made.txt",
  "to-root/etc/passwd",
  "deep/../to-folder/new/made.txt",
];

Deno.test("no tool follows a link that leads outside, and lists show it as a link (PE3, PE4)", async () => {
  const prepare = async (ws: Workspace) => {
    await plantSibling(ws);
    await plantLinks(ws);
  };
  await using scene = await makeScene({ prepare });
  const { ws, pml } = scene;
  const listed = textOf(await use(pml, "list_directory", { path: "." })).split("\n");
  for (const name of Object.keys(LINKS).filter((name) => !name.includes("/"))) {
    assert.ok(listed.includes(`[LINK] ${name}`), `${name} in ${listed}`);
  }
  const tree = textOf(await use(pml, "directory_tree", { path: "." }));
  const found = textOf(await use(pml, "search_files", { path: "." }));
  assert.doesNotMatch(tree + found, /canary\.txt/);
  for (const path of THROUGH) {
    for (const tool of Object.keys(FILE_TOOLS)) {
      if (actsOnLinkItself(tool)) continue;
      const answer = await use(pml, tool, { path });
      const text = textOf(answer);
      assert.ok(!text.includes(ws.canary) && !text.includes(SECRET), `${tool} ${path}: ${text}`);
      if (tool in WRITING) assertRefused(answer, { what: `${tool} ${path}` });
    }
  }
  assert.deepEqual(await readdir(join(ws.root, "outside")), ["canary.txt"]);
  assert.deepEqual(await readdir(ws.root), ["home", "outside", "tmp", "ws", "ws-evil"]);
  assertNoLeak(SECRET, { stdout: pml.stdout, stderr: pml.stderr });
  await endWell(ws, pml);
});

Deno.test("removing and moving a link changes the link alone (PE3)", async () => {
  await using scene = await makeScene({ prepare: plantLinks });
  const { ws, pml } = scene;
  for (const path of ["to-file", "to-folder", "dangling", "chain-2"]) {
    await use(pml, "move_file from", { path });
    await use(pml, "remove_directory", { path: "moved" });
    await use(pml, "remove_file", { path: "moved" });
  }
  await endWell(ws, pml);
});

Deno.test("a path is checked when it is used, not when the gateway starts (PE10)", async () => {
  await using scene = await makeScene({ files: { "plain.txt": "plain", "folder/in.txt": "in" } });
  const { ws, pml } = scene;
  assert.equal(textOf(await use(pml, "read_file", { path: "plain.txt" })), "plain");
  assert.equal(textOf(await use(pml, "read_file", { path: "folder/in.txt" })), "in");
  await rename(ws.file("plain.txt"), ws.file("was.txt"));
  await rename(ws.file("folder"), ws.file("was"));
  await symlink(ws.outside, ws.file("plain.txt"));
  await symlink(join(ws.root, "outside"), ws.file("folder"));
  for (const path of ["plain.txt", "folder/canary.txt"]) {
    for (const tool of ["read_file", "write_file"]) {
      const answer = await use(pml, tool, { path });
      assertRefused(answer, { code: "PATH_OUTSIDE_WORKSPACE", what: `${tool} ${path}` });
    }
  }
  await endWell(ws, pml);
});

Deno.test("an entry other than a regular file is refused, without waiting (PE8)", async () => {
  await using scene = await makeScene({ prepare: plantSpecials });
  const { ws, pml } = scene;
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(ws.file("socket"), resolve));
  try {
    for (const path of ["fifo", "socket", "zero", "folder"]) {
      const tools = Object.keys(FILE_TOOLS).filter((tool) => !isFine(path, tool));
      for (const tool of tools) {
        const answer = await use(pml, tool, { path, ms: 5_000 });
        assertRefused(answer, { what: `${tool} ${path}` });
      }
    }
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
  for (const tool of ["read_file", "read_media_file", "read_multiple_files", "edit_file"]) {
    const answer = await use(pml, tool, { path: "sparse", ms: 5_000 });
    assertRefused(answer, { what: `${tool} sparse` });
    assert.match(textOf(answer), /10\.00 GB/, tool);
  }
  const info = await use(pml, "get_file_info", { path: "sparse", ms: 5_000 });
  assert.equal(info.result?.structuredContent?.size as unknown, 10 * 1024 ** 3);
  await endWell(ws, pml);
});

/** A module that checks nothing before it reads or writes. */
const BLUNT = {
  files: {
    "blunt.js": `
      const tool = { permissions: { read: ["."], write: ["."] } };
      export const __meta__ = {
        name: "blunt", version: "1.0.0", tools: { read: tool, write: tool, copy: tool },
      };
      export const read = ({ path }) => Deno.readTextFile(path);
      export const write = ({ path }) => Deno.writeTextFile(path, "attacked");
      export const copy = ({ path }) => Deno.copyFile("good.txt", path);`,
  },
  pml: {
    version: 1,
    permissions: { allow: ["filesystem:*", "blunt:*"] },
    private_mcps: { blunt: { type: "deno", path: "blunt.js" } },
  },
} as const;

Deno.test("a module without own checks is confined all the same (PE3, PE4, PE8)", async () => {
  const prepare = async (ws: Workspace) => {
    await plantSibling(ws);
    await plantLinks(ws);
    await plantSpecials(ws);
  };
  await using scene = await makeScene({ ...BLUNT, prepare });
  const { ws, pml } = scene;
  for (const path of [...THROUGH, "fifo", "zero", "../outside/canary.txt"]) {
    for (const tool of ["read", "write", "copy"]) {
      const answer = await pml.callTool(`blunt__${tool}`, { path }, { ms: 5_000 });
      assertRefused(answer, { what: `${tool} ${path}` });
    }
  }
  assert.deepEqual(await readdir(join(ws.root, "outside")), ["canary.txt"]);
  assertNoLeak(SECRET, { stdout: pml.stdout, stderr: pml.stderr });
  await endWell(ws, pml);
});

Deno.test("a hardlink of another program is read, as documented (PE9)", async () => {
  const prepare = (ws: Workspace) => link(`${ws.root}/other.txt`, ws.file("hard.txt"));
  await using scene = await makeScene({
    prepare: async (ws) => {
      await writeFile(`${ws.root}/other.txt`, "elsewhere");
      await prepare(ws);
    },
  });
  assert.equal(textOf(await use(scene.pml, "read_file", { path: "hard.txt" })), "elsewhere");
  await endWell(scene.ws, scene.pml);
});

async function plantSpecials(ws: Workspace): Promise<void> {
  execFileSync("mkfifo", [ws.file("fifo")]);
  try {
    execFileSync("mknod", [ws.file("zero"), "c", "1", "5"], { stdio: "ignore" });
  } catch {
    await symlink("/dev/zero", ws.file("zero")); // only root can create a device
  }
  await mkdir(ws.file("folder"));
  await writeFile(ws.file("sparse"), "");
  await truncate(ws.file("sparse"), 10 * 1024 ** 3);
}

/** Folders may be listed, and created where they are; tools that open no file accept any path. */
function isFine(path: string, tool: string): boolean {
  return actsOnLinkItself(tool) || path === "folder" && /list|tree|search|create/.test(tool);
}
