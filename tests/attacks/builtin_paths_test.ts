/**
 * Every path argument of every built-in tool, with every way to name a path outside the workspace.
 * The table is compared with the definitions of the tools: a new argument fails until it is listed.
 *
 * @module
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { link, mkdir, readdir, rename, symlink, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { builtins } from "../../src/servers/module/builtins.ts";
import type { Message } from "../kit/json_rpc.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { assertNoLeak } from "../kit/sinks.ts";
import type { Workspace } from "../kit/workspace.ts";
import { assertRefused, LINKS, plantLinks, plantSibling, SECRET } from "./file_tools.ts";
import { codeOf, endWell, textOf } from "./oracles.ts";
import { makeScene } from "./stage.ts";

type Arguments = Readonly<Record<string, unknown>>;

/** The path arguments, by server. */
const PLACES: Readonly<Record<string, readonly string[]>> = {
  filesystem: ["path", "paths", "source", "destination"],
  git: ["repo", "path", "paths"],
  shell: ["cwd"],
  sqlite: ["path"],
};

/** The arguments that are not paths. */
const OTHERS: Readonly<Record<string, string>> = {
  filesystem: "head tail sortBy excludePatterns pattern edits dryRun content recursive",
  git: "limit untracked staged from to context offset revision follow author grep since until " +
    "skip start remote all message amend allow_empty source action stash restore_index",
  shell: "command args stdin env timeout_ms max_bytes",
  sqlite: "sql parameters limit offset create table",
};

/** Other required arguments of a tool; tools that are not listed need none. */
const GIVEN: Readonly<Record<string, Arguments>> = {
  "filesystem:edit_file": { edits: [{ oldText: "secret", newText: "attacked" }] },
  "filesystem:write_file": { content: "attacked" },
  "filesystem:search_files": { pattern: "**" },
  "filesystem:remove_directory": { recursive: true },
  "filesystem:move_file": { source: "good.txt", destination: "moved" },
  "git:blame": { path: "good.txt" },
  "git:restore": { paths: ["good.txt"] },
  "git:stash": { action: "push" },
  "git:commit": { message: "x" },
  "shell:exec": { command: "ls", args: ["-la"] },
  "sqlite:query": { sql: "SELECT * FROM sqlite_schema" },
  "sqlite:execute": { sql: "CREATE TABLE made(a)", create: true },
};

/** A tool and one of its path arguments. */
interface Way {
  readonly tool: string;
  readonly argument: string;
  readonly isList: boolean;
}

interface Meta {
  readonly tools: Readonly<
    Record<string, {
      readonly inputSchema: {
        readonly properties?: Readonly<Record<string, { readonly type?: string }>>;
      };
    }>
  >;
}

const WAYS: readonly Way[] = [...builtins()].flatMap(([server, source]) => {
  const { tools } = (source as unknown as { readonly meta: Meta }).meta;
  return Object.entries(tools).flatMap(([name, { inputSchema: { properties = {} } }]) =>
    Object.entries(properties)
      .filter(([argument]) => PLACES[server]?.includes(argument))
      .map(([argument, { type }]) => ({
        tool: `${server}:${name}`,
        argument,
        isList: type === "array",
      }))
  );
});

Deno.test("every argument of every built-in is listed as a path or as another value", () => {
  for (const [server, source] of builtins()) {
    const { tools } = (source as unknown as { readonly meta: Meta }).meta;
    const names = [...PLACES[server] ?? [], ...(OTHERS[server] ?? "").split(" ")];
    for (const [name, { inputSchema: { properties = {} } }] of Object.entries(tools)) {
      const unknown = Object.keys(properties).filter((argument) => !names.includes(argument));
      assert.deepEqual(unknown, [], `${server}:${name} is not in the table of places`);
    }
  }
  const tools = new Set(WAYS.map(({ tool }) => tool));
  assert.ok(tools.size >= 29, `${tools.size} tools`);
});

Deno.test("no built-in leaves the workspace by any argument (PE1 to PE4, PE11)", async () => {
  await using scene = await makeScene({ files: KEPT, pml: PML, prepare: furnish });
  const { ws, pml } = scene;
  const before = await outerState(ws);
  // Git moves files that the other tools need.
  const [git, others] = [WAYS.filter(isGit), WAYS.filter((way) => !isGit(way))];
  const attackBy = async (way: Way) => {
    const paths = [...outsidePaths(ws), ...THROUGH, ...Object.keys(KEPT)];
    for (const [at, path] of paths.entries()) {
      // Each path that git itself checks costs a run of git; other tests attack these, too.
      if (isFine(way, path) || isGitPath(way) && at % 3 > 0) continue;
      await assertKept(pml, { way, path, code: codeFor(ws, way, path) });
    }
  };
  await allOf(others, attackBy);
  await allOf(git, attackBy);
  assert.deepEqual(await outerState(ws), before);
  assertNoLeak(SECRET, { stdout: pml.stdout, stderr: pml.stderr });
  await endWell(ws, pml);
});

Deno.test("the answer about a protected file does not depend on whether it exists (PE11)", async () => {
  const files = { ".env": SECRET, "with/.env": SECRET, "without/good.txt": "good" };
  await using scene = await makeScene({ files, pml: PML, prepare: furnish });
  const { ws, pml } = scene;
  const answerTo = async ({ tool, argument, isList }: Way, path: string) => {
    const args = { ...GIVEN[tool], [argument]: isList ? [path] : path };
    const answer = await pml.callTool("call", { tool, arguments: args }, { ms: 12_000 });
    return { code: codeOf(answer), text: JSON.stringify(answer.result).replaceAll(path, "PATH") };
  };
  const ways = WAYS.filter((way) => !isGit(way) && !isFine(way, ".env"));
  await allOf(ways.filter(({ argument }) => argument !== "cwd"), async (way) => {
    const [there, missing] = [
      await answerTo(way, "with/.env"),
      await answerTo(way, "without/.env"),
    ];
    // To look at a protected name is allowed: the tools that list folders do.
    if (there.code !== "PATH_PROTECTED") return;
    assert.deepEqual(missing, there, `${way.tool}(${way.argument})`);
  });
  const read = { tool: "filesystem:read_file", argument: "path", isList: false };
  const { code } = await answerTo(read, "without/.env");
  assert.equal(code, "PATH_PROTECTED");
  await endWell(ws, pml);
});

Deno.test("no built-in reads or waits for an entry that is not a file or folder (PE8)", async () => {
  await using scene = await makeScene({ pml: PML, prepare: furnish });
  const { ws, pml } = scene;
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(ws.file("socket"), resolve));
  try {
    await allOf(WAYS.filter((way) => !isGitPath(way)), async (way) => {
      for (const path of ["fifo", "socket", "zero", "to-proc", "sparse", "folder"]) {
        if (isFine(way, path)) continue;
        await assertKept(pml, { way, path });
      }
    });
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
  await endWell(ws, pml);
});

Deno.test("a path is checked when it is used, also if it is a hardlink (PE9, PE10)", async () => {
  await using scene = await makeScene({
    pml: PML,
    prepare: async (ws) => {
      await furnish(ws);
      await link(join(ws.root, "other.db"), ws.file("hard.db"));
      await mkdir(ws.file("plain"));
    },
  });
  const { ws, pml } = scene;
  const sql = "SELECT 1";
  const good: readonly (readonly [string, Arguments])[] = [
    ["sqlite:query", { path: "own.db", sql }],
    ["sqlite:query", { path: "hard.db", sql }],
    ["shell:exec", { command: "pwd", cwd: "plain" }],
    ["git:status", { repo: "plain" }],
    ["filesystem:list_directory", { path: "plain" }],
  ];
  for (const [tool, args] of good) {
    const answer = await pml.callTool("call", { tool, arguments: args });
    assert.ok(!isError(answer), `${tool}: ${textOf(answer)}`);
  }
  await rename(ws.file("own.db"), ws.file("was.db"));
  await rename(ws.file("plain"), ws.file("was"));
  await symlink(join(ws.root, "other.db"), ws.file("own.db"));
  await symlink(join(ws.root, "outside"), ws.file("plain"));
  for (const [tool, args] of good.filter(([, { path }]) => path !== "hard.db")) {
    const answer = await pml.callTool("call", { tool, arguments: args });
    const code = tool.startsWith("git:") ? undefined : "PATH_OUTSIDE_WORKSPACE";
    assert.equal(codeOf(answer), code, `${tool}: ${textOf(answer)}`);
    assert.ok(isError(answer), tool);
  }
  await endWell(ws, pml);
});

const PML = {
  version: 1,
  permissions: { allow: ["filesystem:*", "git:*", "shell:*", "sqlite:*"] },
} as const;

/** Protected files, with a secret that must not appear anywhere. */
const KEPT = { ".env": SECRET, "inner/.env.local": SECRET, "inner/.git/config": SECRET } as const;

const THROUGH = [...Object.keys(LINKS), "to-folder/canary.txt", "to-root/etc/passwd"];

function outsidePaths(ws: Workspace): readonly string[] {
  return [
    "..",
    "../outside",
    "../outside/canary.txt",
    "good/../../outside/canary.txt",
    ws.outside,
    dirname(ws.outside),
    "../ws-evil",
    `${ws.path}-evil/secret.txt`,
    "/",
    "/etc/passwd",
    "/proc/self/environ",
    `/proc/self/root${ws.outside}`,
    "%2e%2e/outside",
    "..\\outside",
    `file://${ws.outside}`,
    "../outside/canary.txt\0",
    "-rf",
    "~",
  ];
}

/** Calls a tool with a path in one argument. Asserts that it returns no content, and soon. */
async function assertKept(
  pml: RawStdio,
  { way, path, code }: { readonly way: Way; readonly path: string; readonly code?: string },
): Promise<void> {
  const { tool, argument, isList } = way;
  const args = { ...GIVEN[tool], [argument]: isList ? [path] : path };
  const answer = await pml.callTool("call", { tool, arguments: args }, { ms: 12_000 });
  const what = `${tool}(${argument}=${JSON.stringify(path)})`;
  const text = JSON.stringify(answer);
  assert.ok(!/canary-[0-9a-f]{32}|root:x:0/.test(text) && !text.includes(SECRET), what);
  if (!isGitPath(way)) {
    const output = codeOf(answer) === "PATH_PROTECTED" ? "PATH_PROTECTED" : code;
    assertRefused(answer, { code: output, what });
  }
}

/**
 * Returns the code for a path outside by its text; links to such a path may have another reason.
 */
function codeFor(ws: Workspace, { tool }: Way, path: string): string | undefined {
  const isOut = /^\.\.(\/|$)|^\/|\/\.\.\//.test(path) && !path.includes("\0");
  const bySandbox = !tool.startsWith("git:");
  return bySandbox && isOut && !path.startsWith(ws.path + "/")
    ? "PATH_OUTSIDE_WORKSPACE"
    : undefined;
}

/** Paths in a repository are checked by git itself: it may find no file, and must show none. */
function isGitPath({ tool, argument }: Way): boolean {
  return tool.startsWith("git:") && argument !== "repo";
}

function isGit({ tool }: Way): boolean {
  return tool.startsWith("git:");
}

/** Tools that open no file accept any path; folders may be listed and used as working folders. */
function isFine({ tool, argument }: Way, path: string): boolean {
  const isLink = path in LINKS || /^(fifo|socket|zero|sparse|folder)$/.test(path);
  const actsOnName = /remove_|get_file_info/.test(tool) || argument === "source";
  if (isLink && actsOnName) return true;
  // These are ordinary names, which may be created.
  const isName = /^(%2e%2e\/|\.\.\\|file:|-rf$|~$)/.test(path);
  if (isName && /write_file|create_directory|move_file|sqlite:execute/.test(tool)) return true;
  // A file of any size may be replaced.
  if (path === "sparse" && tool.endsWith("write_file")) return true;
  // These tools may see some of these names.
  if (path in KEPT && /list|tree|search|get_file_info/.test(tool)) return true;
  // Git takes the folder of a file, and does not open the file.
  const isOwnFile = /^(fifo|socket|sparse)$/.test(path) || path in KEPT;
  if (argument === "repo" && isOwnFile) return true;
  if (path === "folder") return /list|tree|search|create|shell:|git:/.test(tool);
  return false;
}

async function furnish(ws: Workspace): Promise<void> {
  const home = dirname(ws.home);
  await writeFile(join(home, ".gitconfig"), "[user]\n\tname = Ada\n\temail = ada@example.com\n");
  await plantSibling(ws);
  await plantLinks(ws);
  const env = { PATH: ws.env.PATH ?? "", HOME: home };
  for (const args of [["init", "-q"], ["add", "good.txt"], ["commit", "-qm", "first"]]) {
    execFileSync("git", args, { cwd: ws.path, env });
  }
  execFileSync("mkfifo", [ws.file("fifo")]);
  await symlink("/dev/zero", ws.file("zero"));
  await mkdir(ws.file("folder"));
  await writeFile(ws.file("sparse"), "");
  await truncate(ws.file("sparse"), 10 * 1024 ** 3);
  for (const path of [ws.file("own.db"), join(ws.root, "other.db")]) {
    using db = new DatabaseSync(path);
    db.exec("CREATE TABLE t(a)");
  }
}

async function outerState(ws: Workspace): Promise<readonly string[]> {
  const folders = [ws.root, join(ws.root, "outside"), `${ws.path}-evil`];
  const names = await Promise.all(folders.map((folder) => readdir(folder)));
  const { mtime } = await Deno.stat(join(ws.root, "other.db"));
  return [...names.flat().sort(), String(mtime?.getTime())];
}

/** Runs four at a time, because there are several children and processors. */
async function allOf<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const work = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await run(item);
  };
  await Promise.all([work(), work(), work(), work()]);
}

function isError({ result, error }: Message): boolean {
  return error !== undefined || (result?.isError as unknown) === true;
}
