/**
 * Files that clients, agents and installers read and run, git directories under other names, and
 * files that would be created behind a link: with the sandbox layer of the system, and without.
 *
 * @module
 */

import assert from "node:assert/strict";
import { lstat, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import listed from "../../config/client-files.json" with { type: "json" };
import protectedPaths from "../../config/protected-paths.json" with { type: "json" };
import { clientFiles, CLIENTS } from "../../src/config/clients.ts";
import { environmentOf } from "../../src/config/env.ts";
import { NameList, pathNames } from "../../src/sandbox/boot/names.ts";
import { runPml } from "../kit/run.ts";
import type { Workspace } from "../kit/workspace.ts";
import { assertRefused, READING, SECRET, use, WRITING } from "./file_tools.ts";
import { codeOf, endWell, textOf } from "./oracles.ts";
import { makeScene } from "./stage.ts";

const LAYERS = ["auto", "off"];

async function withLayer(ws: Workspace, layer: string): Promise<void> {
  await writeFile(join(ws.home, "config.yaml"), `sandbox: {os_layer: ${layer}}\n`);
}

Deno.test("every client's file in a workspace that PML knows is protected (GW12)", () => {
  const { writeProtected, readProtected } = protectedPaths;
  const list = new NameList([...writeProtected, ...readProtected]);
  const place = { root: "/ws", environment: environmentOf({ HOME: "/home/me" }) };
  const shared = CLIENTS.flatMap((client) => clientFiles(client, place))
    .flatMap(({ path, inside }) => inside === undefined ? [] : [path.slice(inside.length + 1)]);
  assert.ok(shared.length > 4, "clients have files in workspaces");
  for (const path of [...shared, ...listed]) {
    const name = path.replace("*", "x");
    assert.ok(list.endPositions(pathNames(name)).length > 0, `${name} can be written`);
  }
  // Next to the files from which PML imports servers, it also looks for variables.
  for (const path of shared) assert.ok(listed.includes(path), path);
});

Deno.test("copies and temporary files of a client's file are as protected as the file (GW12, P4)", async () => {
  const read = new NameList(protectedPaths.readProtected);
  const closed = listed.filter((path) => read.endPositions(pathNames(path)).length > 0);
  assert.ok(closed.includes(".mcp.json"), "the list of what cannot be read");
  for (const path of closed) {
    for (const copy of [".backup", ".backup.1", `.${crypto.randomUUID()}.pml-tmp`]) {
      assert.ok(read.endPositions(pathNames(path + copy)).length > 0, `${path}${copy} can be read`);
    }
  }
  const text = JSON.stringify({ mcpServers: { x: { command: "x", env: { T: SECRET } } } });
  await using scene = await makeScene({ files: { ".mcp.json": text, ".cursor/mcp.json": text } });
  const { ws, pml } = scene;
  const result = await runPml(ws, ["init", "--client", "claude-code,cursor", "--yes"]);
  assert.equal(result.code, 0, result.stderr);
  for (const path of [".mcp.json.backup", ".cursor/mcp.json.backup"]) {
    // PML puts no copy with a key there. A copy of another program is protected as well.
    await assert.rejects(readFile(ws.file(path)), { code: "ENOENT" });
    await writeFile(ws.file(path), text);
    for (const tool of Object.keys(READING)) {
      assert.ok(!textOf(await use(pml, tool, { path })).includes(SECRET), `${tool} ${path}`);
    }
    assert.equal(codeOf(await use(pml, "read_file", { path })), "PATH_PROTECTED");
    assert.equal(codeOf(await use(pml, "write_file", { path })), "PATH_PROTECTED");
  }
  await endWell(ws, pml);
});

/**
 * Files that current clients, agents, editors and installers obey, and that were not listed before.
 */
const AGENTS = [
  ...[".roo/mcp.json", ".roo/rules/x.md", ".roomodes", ".roorules", ".kilocode/mcp.json"],
  ...[".zed/settings.json", ".devcontainer/devcontainer.json", ".devcontainer/any/x.sh"],
  ...[".devcontainer.json", "opencode.json", "opencode.jsonc", ".opencode/x", "GEMINI.md"],
  ...[".cursorrules", ".clinerules", ".clinerules/x.md", ".windsurfrules", ".continue/config.yaml"],
  ...[".aider.conf.yml", ".pnpmfile.cjs", ".yarnrc.yml", ".yarn/plugins/x.cjs", "lefthook.yml"],
  ...[".pre-commit-config.yaml", ".idea/workspace.xml", ".github/copilot-instructions.md"],
  ...[".amazonq/mcp.json", ".junie/mcp/mcp.json", ".kiro/settings/mcp.json", ".trae/mcp.json"],
  ...[".qwen/settings.json", "x.code-workspace", "AGENT.md", "CLAUDE.local.md", ".hg/hgrc"],
  ...["AGENTS.override.md", "packages/a/agents.local.md", "deep/claude.md"],
  ...["mise.local.toml", ".mise.local.toml", ".dir-locals-2.el"],
  ...["bunfig.toml", ".cargo/config.toml", "packages/a/.Cursorrules", "deep/GEMINI.MD"],
  // Files that name another of them, in other folders, or read at a start here.
  ...["pnpm-workspace.yaml", "uv.toml", ".config/mise.toml", ".config/mise/conf.d/x.toml"],
  ...["mise/config.toml", ".mise/tasks/x", "mise.ci.toml", ".tool-versions"],
  ...["rust-toolchain.toml", ".bundle/config", ".vimrc", ".vim/coc-settings.json", ".gvimrc"],
  ...[".helix/languages.toml", ".Rprofile", ".irbrc", ".pryrc", "prek.toml"],
  ...[".pre-commit-config.yml", ".gitlab-ci.yml", ".circleci/config.yml"],
  ...[".gitea/workflows/x.yml", ".forgejo/workflows/x.yml", ".envrc", ".mise.local.toml"],
];

const FOLDERS = {
  ...{ ".github/x": "", "packages/a/x": "", "deep/x": "", ".config/x": "", ".config/mise/x": "" },
  ...{ "mise/x": "", ".gitea/workflows/x": "" },
};

/** Ordinary files with similar names. */
const ORDINARY = [
  ...["package.json", "Makefile", "tsconfig.json", ".editorconfig", ".prettierrc", "rules.md"],
  ...[".github/README.md", ".gitignore", "docs/agents.txt", "src/config", "src/HEAD", "objects/x"],
  ...[
    "env.ts",
    "roomodes",
    "Dockerfile",
    ".dockerignore",
    ".eslintrc.cjs",
    "yarn.lock",
    "codex/x",
    "my.rules",
  ],
  ...["mise-notes.md", "mise/x.md", ".serena/x.yml", "uv.lock", "pyproject.toml", "deno.json"],
  ...["docs/agent-architecture.md", "docs/agents-and-tools.md", "agentic.md", "claude-notes.md"],
];

/** Folders that are a repository, or lack one part of it. */
const PIECES = {
  "whole/HEAD": "ref: refs/heads/main\n",
  "whole/config": "[core]\n\ttoken = secret\n",
  "whole/hooks/pre-commit": "secret",
  "noobjects/HEAD": "ref: refs/heads/main\n",
  "noobjects/config": "",
  "nohead/config": "",
  "nohead/objects/x": "",
  "noconfig/HEAD": "ref: refs/heads/main\n",
  "worktree/HEAD": "ref: refs/heads/main\n",
  "common/commondir": "../whole\n",
  "spare/objects/x": "",
  "spare/config": "",
};

for (const layer of LAYERS) {
  Deno.test(`no tool writes files that agents, editors and installers obey, with the layer ${layer} (GW12, PE11)`, async () => {
    const prepare = (ws: Workspace) => withLayer(ws, layer);
    await using scene = await makeScene({
      prepare,
      files: { ".roo/mcp.json": "secret", ...FOLDERS },
    });
    const { ws, pml } = scene;
    for (const path of AGENTS) {
      for (const tool of Object.keys(WRITING)) {
        assertRefused(await use(pml, tool, { path }), { what: `${tool} ${path}` });
      }
      const answer = await use(pml, "write_file", { path });
      assert.equal(codeOf(answer), "PATH_PROTECTED", `${path}: ${textOf(answer)}`);
    }
    assert.equal(await readFile(ws.file(".roo/mcp.json"), "utf8"), "secret");
    for (const path of ORDINARY) {
      const folder = dirname(path);
      if (folder !== ".") await use(pml, "create_directory", { path: folder });
      const answer = await use(pml, "write_file", { path });
      assert.equal(codeOf(answer), undefined, `${path}: ${textOf(answer)}`);
    }
    await endWell(ws, pml);
  });

  Deno.test(`a folder that git accepts as a repository cannot be written, with the layer ${layer} (GW12)`, async () => {
    const prepare = async (ws: Workspace) => {
      await withLayer(ws, layer);
      for (const folder of ["whole/objects", "noconfig/objects", "linked"]) {
        await mkdir(ws.file(folder), { recursive: true });
      }
    };
    await using scene = await makeScene({
      prepare,
      files: PIECES,
    });
    const { ws, pml } = scene;
    const code = async (tool: string, args: Record<string, unknown>) =>
      codeOf(await pml.callTool(`filesystem__${tool}`, args));
    const write = (path: string) => code("write_file", { path, content: "attacked" });
    const make = (path: string) => code("create_directory", { path });
    const move = (source: string, destination: string) =>
      code("move_file", { source, destination });
    for (const path of ["whole/config", "whole/hooks/pre-commit", "whole/new", "whole/objects/x"]) {
      assert.equal(await write(path), "PATH_PROTECTED", path);
    }
    const read = await pml.callTool("filesystem__read_text_file", { path: "whole/config" });
    assert.equal(codeOf(read), "PATH_PROTECTED");
    // The last part, in each way that a part can be created.
    assert.equal(await make("noobjects/objects"), "PATH_PROTECTED");
    assert.equal(await make("noobjects/objects/pack"), "PATH_PROTECTED");
    assert.equal(await move("spare/objects", "noobjects/objects"), "PATH_PROTECTED");
    assert.equal(await write("nohead/HEAD"), "PATH_PROTECTED");
    assert.equal(await write("nohead/head"), "PATH_PROTECTED", "as another file system folds it");
    assert.equal(await move("good.txt", "nohead/HEAD"), "PATH_PROTECTED");
    assert.equal(await write("noconfig/config"), "PATH_PROTECTED");
    assert.equal(await move("spare/config", "noconfig/config"), "PATH_PROTECTED");
    assert.equal(await write("worktree/commondir"), "PATH_PROTECTED");
    assert.equal(await write("common/HEAD"), "PATH_PROTECTED");
    for (const path of ["whole", "."]) {
      for (const tool of ["remove_directory", "move_file from"]) {
        assertRefused(await use(pml, tool, { path }), { what: `${tool} ${path}` });
      }
    }
    await make("plain/objects");
    await make("plain/hooks");
    assert.equal(await write("plain/hooks/reference-transaction"), undefined);
    assert.equal(await write("plain/HEAD"), undefined);
    assert.equal(
      await make("plain/refs/heads"),
      "PATH_PROTECTED",
      "git runs hooks without settings",
    );
    await make("fresh/objects");
    assert.equal(await write("fresh/HEAD"), undefined);
    assert.equal(await write("fresh/config"), "PATH_PROTECTED");
    assert.equal(await write("nohead/other"), undefined);
    // In the root of the workspace, too.
    await make("objects");
    assert.equal(await write("HEAD"), undefined);
    assert.equal(await write("config"), "PATH_PROTECTED");
    const kept = await readFile(ws.file("whole/config"), "utf8");
    assert.match(kept, /token = secret/);
    await endWell(ws, pml);
  });
}

/** Creates repositories at unprotected names, and moves them into the workspace. */
const MAKER = `
  export const __meta__ = {
    name: "maker", version: "1.0.0", tools: { go: { permissions: { write: ["."] } } },
  };
  const piece = (path) => Deno.writeTextFile(path, "ref: refs/heads/main");
  async function made(folder, names) {
    await Deno.mkdir(folder + "/objects", { recursive: true });
    for (const name of names) await piece(folder + "/" + name);
    return folder;
  }
  export async function go() {
    const at = await Deno.makeTempDir();
    const repositories = [
      [await made(at + "/whole", ["HEAD", "config"]), "whole"],
      [await made(at + "/bare", ["HEAD", "refs"]), "bare"],
      [await made(at + "/tree", ["HEAD", "commondir"]), "tree"],
      [(await made(at + "/outer/inner", ["HEAD", "config"])).slice(0, -6), "outer"],
    ];
    const ran = repositories.map(([from, to]) =>
      Deno.rename(from, to).then(() => "moved", ({ message }) => message)
    );
    const plain = Deno.rename(await made(at + "/plain", ["config"]), "plain").then(() => "moved");
    return JSON.stringify(await Promise.all([...ran, plain]));
  }
`;

for (const layer of LAYERS) {
  Deno.test(`no repository is created elsewhere and moved into the workspace, with the layer ${layer} (GW12)`, async () => {
    await using scene = await makeScene({
      prepare: (ws: Workspace) => withLayer(ws, layer),
      files: { "maker.js": MAKER },
      pml: {
        version: 1,
        permissions: { allow: ["maker:*", "filesystem:*"] },
        private_mcps: { maker: { type: "deno", path: "maker.js" } },
      },
    });
    const { ws, pml } = scene;
    const answer = await pml.callTool("call", { tool: "maker:go", arguments: {} });
    const lines: string[] = JSON.parse(textOf(answer));
    assert.equal(lines.pop(), "moved", "a folder that is none may come from there");
    assert.equal(lines.length, 4);
    for (const one of lines) assert.match(one, /^Cannot rename .*: it contains "(?:inner|HEAD)"/);
    const there = await readdir(ws.path);
    for (const name of ["whole", "bare", "tree", "outer"]) assert.ok(!there.includes(name), name);
    await endWell(ws, pml);
  });
}

/** A module with narrow grants, one for each tool. */
const NARROW = `
  const write = (...paths) => ({ permissions: { write: paths } });
  export const __meta__ = {
    name: "mine", version: "1.0.0", permissions: {},
    tools: {
      file: write("a/new"), folder: write("a/made"), copy: write("a/copy"), plain: write("in/new"),
      open: write("a/opened"), deep: write("in/link/new"), late: write("late/new"),
      head: write("piece/HEAD"), config: write("piece/config"), objects: write("piece/objects"),
      data: write("files/config"),
      look: { permissions: { read: ["in/deep/seen"] } },
    },
  };
  const put = (path) => Deno.writeTextFile(path, "mine").then(() => "wrote");
  export const file = () => put("a/new");
  export const folder = () => Deno.mkdir("a/made", { recursive: true }).then(() => "made");
  export const copy = () => Deno.makeTempFile({ dir: "a/copy" }).then(() => "made");
  export const open = () => Deno.open("a/opened", { write: true, create: true }).then(() => "made");
  export const deep = () => put("in/link/new");
  export const plain = () => put("in/new");
  export const late = () => put("late/new");
  export const head = () => put("piece/HEAD");
  export const config = () => put("piece/config");
  export const look = async () => {
    const { isFile } = await Deno.lstat("in/deep/seen");
    return isFile;
  };
  export const data = () => put("files/config");
  export const objects = () => Deno.mkdir("piece/objects").then(() => "made");
`;

for (const layer of LAYERS) {
  Deno.test(`no file is created behind a committed link by a narrow grant, with the layer ${layer} (GW12)`, async () => {
    const prepare = async (ws: Workspace) => {
      await withLayer(ws, layer);
      for (const folder of ["piece", "files", "late"]) await mkdir(ws.file(folder));
      await mkdir(join(ws.root, "beyond"));
      await symlink("../beyond", ws.file("a"));
      await symlink(join(ws.root, "beyond"), ws.file("in/link"));
      await symlink("../beyond", ws.file("spare"));
    };
    await using scene = await makeScene({
      prepare,
      files: { "mine.js": NARROW, "in/deep/seen": "seen" },
      pml: {
        version: 1,
        permissions: { allow: ["mine:*", "filesystem:*"] },
        private_mcps: { mine: { type: "deno", path: "mine.js" } },
      },
    });
    const { ws, pml } = scene;
    const run = async (tool: string) =>
      codeOf(await pml.callTool("call", { tool: `mine:${tool}`, arguments: {} }));
    for (const tool of ["file", "folder", "copy", "open", "deep"]) {
      assert.notEqual(await run(tool), undefined, tool);
      assert.deepEqual(await readdir(join(ws.root, "beyond")), [], tool);
    }
    assert.equal(await run("plain"), undefined);
    assert.equal(await run("look"), undefined);
    assert.equal(await readFile(ws.file("in/new"), "utf8"), "mine");
    // A link that replaces a folder while the child runs.
    assert.equal(await run("late"), undefined);
    await Deno.remove(ws.file("late/new"));
    const move = (source: string, destination: string) =>
      pml.callTool("filesystem__move_file", { source, destination });
    assert.equal(codeOf(await move("late", "was")), undefined);
    assert.equal(codeOf(await move("spare", "late")), undefined);
    assert.ok((await lstat(ws.file("late"))).isSymbolicLink());
    assert.notEqual(await run("late"), undefined);
    assert.deepEqual(await readdir(join(ws.root, "beyond")), []);
    // One part of a repository for each tool: no tool sees the parts of the others as its own.
    assert.equal(await run("data"), undefined, "a folder of settings is no repository");
    assert.equal(await run("head"), undefined);
    assert.equal(await run("objects"), undefined);
    assert.equal(await run("config"), "PATH_PROTECTED");
    await endWell(ws, pml);
  });
}
