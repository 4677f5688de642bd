/**
 * Checks paths on Windows: usual spellings lead to the same file, and hostile paths are refused with
 * the reason, in a workspace on `C:` and on another drive.
 *
 * @module
 */

import { join } from "node:path";
import { textOf } from "../../tests/attacks/oracles.ts";
import { RawStdio } from "../../tests/kit/raw_stdio.ts";
import { writeFiles } from "../../tests/kit/workspace.ts";
import type { Part } from "./part.ts";
import { ANSWER_MS, makeScene } from "./scene.ts";

const TEXT = "one\r\ntwo\r\n";
const FILES = { "a.txt": TEXT, "src/b.ts": "b\n", ".env": "SECRET=1", ".git/config": "[core]" };
const RULES = {
  permissions: {
    allow: ["filesystem:*"],
    deny: [String.raw`filesystem:read_text_file(path=src\**)`],
  },
};
/** A folder on `Z:`, the drive that Wine maps to the root, and its path relative to `C:`. */
const OTHER_DRIVE = { path: String.raw`Z:\opt\try`, onMachine: "../../try" };

/** Returns different spellings of the path of `a.txt` in a workspace. */
function spellings(workspace: string): readonly string[] {
  const slashes = workspace.replaceAll("\\", "/");
  return [
    "a.txt",
    ".\\A.TXT",
    "src\\..\\a.txt",
    `${workspace}\\a.txt`,
    `${slashes.toLowerCase()}/a.txt`,
    `${workspace.slice(2)}\\a.txt`,
    `file:///${slashes}/a.txt`,
  ];
}

/** Returns hostile paths in a workspace, by the reason of their refusal. */
function hostilePaths(workspace: string): Readonly<Record<string, readonly string[]>> {
  const drive = workspace.slice(0, 2);
  const slashes = workspace.replaceAll("\\", "/");
  return {
    "path of a device": [
      `\\\\?\\${workspace}\\a.txt`,
      `//?/${slashes}/a.txt`,
      `\\\\.\\${workspace}\\a.txt`,
      `\\??\\${workspace}\\a.txt`,
      "\\\\?\\UNC\\localhost\\C$\\x",
    ],
    "path of a network": ["\\\\localhost\\C$\\x", "//server/share/x"],
    "current folder of a drive": [`${drive}a.txt`, drive, "X:a.txt"],
    "outside the workspace": [
      "\\a.txt",
      "..\\x",
      "src\\..\\..\\x",
      "C:\\windows\\win.ini",
      "X:\\a",
    ],
    "short name": ["PROGRA~1", "GIT~1\\config", "ENV~1"],
    "dots and blanks": ["a.txt.", "a.txt ", ".env.", "src.\\b.ts"],
    stream: [".env::$DATA", "a.txt:x", "src::$INDEX_ALLOCATION\\b.ts"],
    "name of a device": ["CON", "NUL.txt", "nul .x", "src\\COM¹"],
    "Windows allows no": ["a?.txt", "src\\*.ts"],
    "it is protected": [".ENV", ".GIT\\config"],
  };
}

/** Reads and writes files by many spellings of their paths. */
export const PATHS: Part = {
  name: "paths",
  run: async (wine, checks) => {
    await using scene = await makeScene(wine, { files: FILES, pml: RULES });
    const other = join(wine.drive, OTHER_DRIVE.onMachine);
    await using _ = { [Symbol.asyncDispose]: () => Deno.remove(other, { recursive: true }) };
    await writeFiles(other, { ...FILES, ".pml.json": JSON.stringify(RULES) });
    const workspaces = [
      [wine.windowsPath(scene.ws.path), scene.ws.path],
      [OTHER_DRIVE.path, other],
    ] as const;
    for (const [workspace, folder] of workspaces) {
      const env = { ...scene.env, PML_WORKSPACE: workspace, PML_TRUST: workspace };
      const options = { command: wine.pml("stdio"), cwd: scene.ws.path };
      await using client = new RawStdio({ ...scene.ws, env }, options);
      await client.open();
      const tryCall = async (tool: string, args: Record<string, unknown>, wanted: RegExp) => {
        const name = `${tool} ${JSON.stringify(args)} in ${workspace}`;
        await checks.try(name, async () => {
          const called = { tool: `filesystem:${tool}`, arguments: args };
          checks.match(
            name,
            textOf(await client.callTool("call", called, { ms: ANSWER_MS })),
            wanted,
          );
        });
      };
      for (const path of spellings(workspace)) await tryCall("read_file", { path }, /^one\r?\ntwo/);
      for (const [reason, paths] of Object.entries(hostilePaths(workspace))) {
        const wanted = new RegExp(`^PATH_[A-Z_]+: .*${reason}`);
        for (const path of paths) {
          await tryCall("read_file", { path }, wanted);
          await tryCall("write_file", { path, content: "x" }, /^PATH_[A-Z_]+: /);
        }
      }
      for (const path of ["src\\b.ts", "SRC/b.ts", `${workspace}\\src\\B.TS`]) {
        await tryCall("read_text_file", { path }, /^PERMISSION_DENIED: /);
      }
      const edits = [{ oldText: "two\n", newText: "two\nmore\n" }];
      await tryCall("edit_file", { path: "A.txt", edits }, /^\+more$/m);
      const kept = await Deno.readTextFile(join(folder, "a.txt"));
      checks.match("edit_file keeps CRLF", kept, /^one\r\ntwo\r\nmore\r\n/);
      const { code } = await client.close();
      checks.match("end of input", `code ${code}`, /^code 0$/);
    }
  },
};
