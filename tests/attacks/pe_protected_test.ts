import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { link, lstat, readdir, readFile, symlink } from "node:fs/promises";
import protectedPaths from "../../config/protected-paths.json" with { type: "json" };
import { assertNoLeak } from "../kit/sinks.ts";
import type { Workspace } from "../kit/workspace.ts";
import { assertRefused, FILE_TOOLS, READING, SECRET, use, WRITING } from "./file_tools.ts";
import { assertAftermath, endWell } from "./oracles.ts";
import { makeScene } from "./stage.ts";

/** A file in or at every protected path, in the root of the workspace and deeper. */
const FILES: Readonly<Record<string, string>> = Object.fromEntries(
  [...protectedPaths.writeProtected, ...protectedPaths.readProtected].flatMap((pattern) => {
    const name = pattern.replace("*", "x");
    const path = isFolder(name) ? `${name}/inside` : name;
    return name === ".pml.json" ? [] : [[path, SECRET], [`deep/er/${path}`, SECRET]];
  }),
);

const READ_PROTECTED = Object.keys(FILES).filter((path) =>
  protectedPaths.readProtected.some((pattern) => path.includes(pattern.replace("*", "")))
);

Deno.test("no tool writes, creates, moves or removes a protected file (PE11)", async () => {
  await using scene = await makeScene({ files: FILES });
  const { ws, pml } = scene;
  const before = await fingerprint(ws);
  const folders = Object.keys(FILES).filter((path) => path.endsWith("/inside"));
  const paths = [
    ...Object.keys(FILES),
    ".pml.json",
    "deep/er/.pml.json",
    "none/.pml.json",
    ...folders.map((path) => path.replace(/\/inside$/, "")),
    ...folders.map((path) => path.replace(/inside$/, "hooks/new")),
  ];
  for (const path of paths) {
    for (const tool of Object.keys(WRITING)) {
      const answer = await use(pml, tool, { path });
      // The other tools check the path first, and may have another reason.
      const code = tool === "write_file" && path in FILES ? "PATH_PROTECTED" : undefined;
      assertRefused(answer, { code, what: `${tool} ${path}` });
    }
  }
  // A folder that contains a protected file can neither be moved nor removed.
  for (const path of ["deep", "deep/er", "."]) {
    for (const tool of ["move_file from", "remove_directory"]) {
      assertRefused(await use(pml, tool, { path }), { what: `${tool} ${path}` });
    }
  }
  assert.deepEqual(await fingerprint(ws), before);
  await endWell(ws, pml);
});

/** Other spellings of a protected name, on file systems that fold names. */
const FOLDED = [
  ".GIT/config",
  ".Git/hooks/pre-commit",
  ".git./config",
  ".git /config",
  ".git\u200b/config",
  "\uff0egit/config",
  ".g\u00adit/config",
  ".PML.JSON",
  ".pml.json.",
  ".pml.json ",
  ".pml.\u017fson".replace("\u017f", "J"),
  ".Mcp.Json",
  ".ENV",
  ".env.local",
  "CLAUDE.MD",
  "claude.md",
  "Agents.md",
  ".GitHub/Workflows/ci.yml",
  "deep/../.git/config",
  "./deep/.//../.git/hooks/x",
  ".git/../.git/config",
];

Deno.test("a protected name is recognized in any spelling (PE11, PE7)", async () => {
  await using scene = await makeScene({ files: FILES });
  const { ws, pml } = scene;
  const before = await fingerprint(ws);
  for (const path of FOLDED) {
    for (const tool of Object.keys(WRITING)) {
      assertRefused(await use(pml, tool, { path }), { what: `${tool} ${JSON.stringify(path)}` });
    }
  }
  assert.deepEqual(await fingerprint(ws), before);
  await endWell(ws, pml);
});

Deno.test("no tool reads files that are closed for reading (PE11)", async () => {
  await using scene = await makeScene({ files: FILES });
  const { ws, pml } = scene;
  assert.ok(READ_PROTECTED.length > 20, "the table is not empty");
  for (const path of READ_PROTECTED) {
    for (const tool of Object.keys(READING).filter((name) => name.startsWith("read_"))) {
      const answer = await use(pml, tool, { path });
      assertRefused(answer, { code: "PATH_PROTECTED", what: `${tool} ${path}` });
    }
    const args = { path, edits: [{ oldText: "s", newText: "t" }], dryRun: true };
    const edited = await pml.callTool("filesystem__edit_file", args);
    assertRefused(edited, { code: "PATH_PROTECTED", what: `edit_file ${path}` });
  }
  for (const path of [".", "deep", "deep/er"]) {
    for (const tool of Object.keys(READING)) await use(pml, tool, { path });
  }
  assertNoLeak(SECRET, { stdout: pml.stdout, stderr: pml.stderr });
  await endWell(ws, pml);
});

Deno.test("a link or a second name for a protected file does not open it (PE11)", async () => {
  const prepare = async (ws: Workspace) => {
    await symlink(".git/config", ws.file("link.txt"));
    await symlink(".git", ws.file("folder"));
    await symlink(".env", ws.file("plain.txt"));
    await link(ws.file(".pml.json"), ws.file("hard.json"));
    await link(ws.file(".env"), ws.file("hard.txt"));
  };
  await using scene = await makeScene({ files: { ...FILES, ".env": SECRET }, prepare });
  const { ws, pml } = scene;
  const rules = await readFile(ws.file(".pml.json"), "utf8");
  for (const path of ["link.txt", "folder/config", "folder/hooks/new", "plain.txt"]) {
    for (const tool of ["write_file", "edit_file"]) {
      assertRefused(await use(pml, tool, { path }), { what: `${tool} ${path}` });
    }
  }
  // This replaces the second name, and does not change the file behind the first one.
  await use(pml, "write_file", { path: "hard.json" });
  for (const path of ["link.txt", "folder/config", "plain.txt", "hard.txt"]) {
    const answer = await use(pml, "read_file", { path });
    assertRefused(answer, { code: "PATH_PROTECTED", what: path });
  }
  assert.equal(await readFile(ws.file(".pml.json"), "utf8"), rules);
  assertNoLeak(SECRET, { stdout: pml.stdout, stderr: pml.stderr });
  await endWell(ws, pml);
});

Deno.test("no tool uses the home of PML, wherever it is (PE11)", async () => {
  await using scene = await makeScene({
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*"] },
      grants: { filesystem: { read: ["../home"], write: ["../home"] } },
    },
  });
  const { ws, pml } = scene;
  for (const path of [ws.home, `${ws.home}/journal`, `${ws.home}/trust.json`]) {
    for (const tool of Object.keys(FILE_TOOLS)) {
      assertRefused(await use(pml, tool, { path }), { what: `${tool} ${path}` });
    }
  }
  assert.equal((await pml.close()).code, 0);
  await assertAftermath(ws, pml);
});

async function fingerprint(ws: Workspace): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const name of (await readdir(ws.path, { recursive: true })).sort()) {
    const info = await lstat(ws.file(name));
    const hash = createHash("sha256");
    if (info.isFile()) hash.update(await readFile(ws.file(name)));
    found[name] = `${info.mode} ${info.isFile() ? hash.digest("hex") : ""}`;
  }
  return found;
}

function isFolder(name: string): boolean {
  return /^\.(git|husky|claude|cursor|vscode|codex|gemini|windsurf|ssh|gnupg)$|workflows/.test(
    name,
  ) ||
    [...protectedPaths.writeProtected, ...protectedPaths.readProtected]
      .some((other) => other.startsWith(`${name}/`));
}
