/**
 * Counts in place of times, because they do not depend on the load of the machine: the operations
 * of a warm call, and the files that a start loads.
 */

import assert from "node:assert/strict";
import type { Counts } from "./kit/counting.ts";
import { denoCommand, pmlCommand, repoFile, sourceCommand } from "./kit/pml_command.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const WARM_UP = 50;
const CALLS = 100;
const TIMES = 5;
/**
 * The time after which the work that the first call leaves is done: its pin, and a check for
 * changes.
 */
const SETTLED_MS = 500;

/** A module that Deno passes to V8: a file, or a part of Deno. */
const LOADED = /V8 code cache \w+ for ES module: (\S+),/g;

async function workspaceOf(gateway: object = {}): Promise<Workspace> {
  const [command, ...args] = denoCommand("bench/floor/server.ts");
  return await makeWorkspace({
    pml: {
      version: 1,
      gateway,
      permissions: { allow: ["plain:*"] },
      mcpServers: { plain: { command, args } },
    },
  });
}

/** How long a client waits before it requests its first list, in milliseconds. */
const IDLE_MS = 150;
/** The file that the first request loads. */
const FIRST_REQUEST = /\/src\/protocol\/server\.ts$/;
/** The first file of those that watch the configuration, from 250 ms after the start. */
const WATCH = /\/src\/config\/watch\.ts$/;

async function call(pml: RawStdio, text: string): Promise<void> {
  const { result } = await pml.callTool("call", { tool: "plain:echo", arguments: { text } });
  assert.deepEqual(result?.content, [{ type: "text", text }]);
}

/** Returns the counts of reads and writes of a process so far: system calls and bytes. */
async function traffic(pid: number): Promise<Counts> {
  const io = await Deno.readTextFile(`/proc/${pid}/io`);
  return Object.fromEntries(
    [...io.matchAll(/^(\w+): (\d+)$/gm)].map(([, name = "", count]) => [name, Number(count)]),
  );
}

/**
 * Returns the reads and writes of a hundred warm calls: the least of several hundreds, because a
 * busy machine splits some reads.
 */
async function leastTraffic(): Promise<Counts> {
  await using ws = await workspaceOf();
  // Only the system calls of PML are counted.
  await using pml = new RawStdio(ws, { ownProcess: true });
  await pml.open();
  await warm(pml, WARM_UP);
  const least: Record<string, number> = {};
  for (let time = 0; time < TIMES; time++) {
    const before = await traffic(pml.pid);
    for (let at = 0; at < CALLS; at++) await call(pml, `call ${100 + at}`);
    for (const [name, count] of Object.entries(await traffic(pml.pid))) {
      least[name] = Math.min(least[name] ?? Infinity, count - (before[name] ?? 0));
    }
  }
  return least;
}

async function warm(pml: RawStdio, calls: number): Promise<void> {
  await call(pml, "first");
  await new Promise((resolve) => setTimeout(resolve, SETTLED_MS));
  for (let at = 1; at < calls; at++) await call(pml, `call ${at}`);
}

/** Returns the counts of a process that made this number of calls. */
async function counted(calls: number): Promise<Counts> {
  await using ws = await workspaceOf();
  const file = `${ws.root}/counts.json`;
  const [deno, ...args] = pmlCommand();
  const preload = `--preload=${repoFile("tests/kit/counting.ts")}`;
  await using pml = new RawStdio(ws, {
    command: [deno, ...args.slice(0, 1), preload, ...args.slice(1), "stdio"],
    env: { COUNTS_FILE: file },
  });
  await pml.open();
  await warm(pml, calls);
  await pml.close();
  return JSON.parse(await Deno.readTextFile(file));
}

/** The maximum number of files and folders that PML compares each second during calls. */
const COMPARED_FILES = 20;

function assertAtMost(counts: Counts, limits: Counts): void {
  for (const [name, limit] of Object.entries(limits)) {
    const perCall = (counts[name] ?? 0) / CALLS;
    assert.ok(perCall <= limit, `${name}: ${perCall} in each call, more than ${limit}`);
  }
}

Deno.test("a warm call of a server needs few operations of Deno, and none of the file system", async () => {
  const few = await counted(WARM_UP + CALLS);
  const since = performance.now();
  const many = await counted(WARM_UP + 2 * CALLS);
  const seconds = (performance.now() - since) / 1_000;
  const one = Object.fromEntries(
    Object.entries(many).map(([name, count]) => [name, count - (few[name] ?? 0)]),
  );
  // In the run with fewer calls, more timers may have started.
  for (const name of ["timers", "parse", "stringify"]) {
    assert.ok((many[name] ?? 0) > 0, `nothing was counted of ${name}`);
  }
  // Less than one, except for the timers of a slow machine with pauses between calls: the journal
  // writes the ends of calls that no other call follows, and answers are counted. While calls come,
  // the files of rules are compared once a second.
  const paths = 0.5 + COMPARED_FILES * seconds / CALLS;
  assertAtMost(one, { paths, timers: 2.4, controllers: 0.1, parse: 2.9, stringify: 5.9 });
  if (Deno.build.os !== "linux") return;
  // One read of the client and two of the server, of which one finds nothing; one write to each,
  // and one to the journal, of an end and the next start. Deno's threads also write to wake each
  // other, 1.3 to 1.6 times in each call.
  const last = await leastTraffic();
  assert.ok((last.syscr ?? 0) > CALLS && (last.syscw ?? 0) > CALLS, JSON.stringify(last));
  assertAtMost(last, { syscr: 4.5, syscw: 5, wchar: 1_100 });
});

/** Starts PML in a workspace. Returns it with a function that lists the modules loaded so far. */
function startIn(
  ws: Workspace,
  [deno, ...args] = pmlCommand(),
): { readonly pml: RawStdio; readonly loaded: () => Files } {
  const log = `${ws.root}/log`;
  const command = [deno, ...args.slice(0, 1), "--log-level=debug", ...args.slice(1), "stdio"];
  const pml = new RawStdio(ws, {
    // Into a file: Deno would lose lines at a full pipe.
    command: ["sh", "-c", 'exec "$@" 2> "$LOG"', "sh", ...command],
    env: { LOG: log },
  });
  const loaded = () => [
    ...new Set([...Deno.readTextFileSync(log).matchAll(LOADED)].map(([, path = ""]) => path)),
  ];
  return { pml, loaded };
}

/** Starts PML in a workspace. Returns the modules that were loaded before each answer. */
async function loadedIn(ws: Workspace): Promise<Readonly<Record<Stage, Files>>> {
  const { pml, loaded } = startIn(ws);
  await using _ = pml;
  await pml.open();
  // Files that load because of the handshake would be loaded by then.
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const list = before(loaded(), WATCH);
  await pml.request("tools/list", {});
  await call(pml, "first");
  return { answer: before(list, FIRST_REQUEST), list, call: loaded() };
}

/** Returns the modules that were loaded before the first one that matches. */
function before(paths: Files, pattern: RegExp): Files {
  const at = paths.findIndex((path) => pattern.test(path));
  return at < 0 ? paths : paths.slice(0, at);
}

function isFile(path: string): boolean {
  return path.startsWith("file:");
}

/** Starts PML in a workspace. Returns the files that were loaded before each answer. */
async function filesOf(ws: Workspace): Promise<Readonly<Record<Stage, Files>>> {
  const { answer, list, call } = await loadedIn(ws);
  return { answer: answer.filter(isFile), list: list.filter(isFile), call: call.filter(isFile) };
}

type Stage = "answer" | "list" | "call";
type Files = readonly string[];

/**
 * The maximum number of files that a start with one server loads before each answer: a file of 5 KB
 * takes 0.15 to 0.5 ms and 75 KB of memory. The end of a call loads two files, and PML records the
 * client after two seconds, with one: on a slow machine they are counted for the call.
 */
const FILES_MAX: Readonly<Record<Stage, number>> = { answer: 136, list: 172, call: 395 + 2 + 1 };

function assertFew(files: Readonly<Record<Stage, Files>>): void {
  for (const stage of ["answer", "list", "call"] as const) {
    const { length } = files[stage];
    assert.ok(length > 50, `${length} files were counted before the first ${stage}`);
    const most = FILES_MAX[stage];
    assert.ok(length <= most, `${length} files before the first ${stage}, more than ${most}`);
  }
}

const CHECKER = "@cfworker/json-schema";

function isOfPackage(path: string): boolean {
  return /\/(?:node_modules|npm)\//.test(path);
}

Deno.test("a start and a list load few files and no npm package, and a first call only the check of arguments", async () => {
  await using ws = await workspaceOf();
  for (const { answer, list, call } of [await filesOf(ws), await filesOf(ws)]) {
    assertFew({ answer, list, call });
    assert.deepEqual(list.filter(isOfPackage), []);
    assert.deepEqual(call.filter(isOfPackage).filter((path) => !path.includes(CHECKER)), []);
  }
});

/** Deno's own modules behind `node:crypto` and `process`. */
const SLOW_PARTS = /^ext:deno_node\/(?:crypto|_process\/process)\.ts$/;

Deno.test("a first answer loads neither `node:crypto` nor `process`, which take as long as an empty Deno", async () => {
  await using ws = await workspaceOf();
  for (const { answer, call } of [await loadedIn(ws), await loadedIn(ws)]) {
    assert.ok(call.some((path) => SLOW_PARTS.test(path)), "no part of Deno was listed");
    assert.deepEqual(answer.filter((path) => SLOW_PARTS.test(path)), []);
  }
});

Deno.test("with all tools, a first answer loads no more files, also after the server was listed", async () => {
  await using ws = await workspaceOf({ tools_exposure: "full_proxy" });
  for (let start = 0; start < 2; start++) {
    // The npm package joins files, so none of its files marks the first request.
    const { pml, loaded } = startIn(ws, sourceCommand());
    await using _ = pml;
    await pml.open();
    const { result } = await pml.request("tools/list", {});
    assert.ok(JSON.stringify(result).includes("plain__echo"));
    const all = loaded();
    const answer = before(before(all, WATCH), FIRST_REQUEST);
    assert.ok(answer.length < all.length, "nothing was loaded for the first request");
    assert.deepEqual(answer.filter((path) => SLOW_PARTS.test(path)), []);
    const { length } = answer.filter(isFile);
    assert.ok(length > 50 && length <= FILES_MAX.answer, `${length} files in start ${start}`);
  }
});

Deno.test("an unusual first message loads no more files than any other", async () => {
  await using ws = await workspaceOf();
  const first = [
    `{"jsonrpc":"2.0","id":7,"method":"ping","extra":{"big":12345678901234567890}}`,
    `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":null}`,
    `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"_meta":null}}`,
  ];
  for (const text of first) {
    const { pml, loaded } = startIn(ws);
    await using _ = pml;
    const answer = pml.expect(7);
    await pml.sendText(`${text}\n`);
    await answer;
    const { length } = before(loaded(), WATCH).filter(isFile);
    assert.ok(length > 50 && length <= FILES_MAX.list, `${length} files for ${text}`);
  }
});

/** A module of the graph that `deno info` prints. */
interface Module {
  readonly specifier: string;
  readonly dependencies?: readonly {
    readonly isDynamic?: boolean;
    readonly code?: { readonly specifier?: string };
  }[];
}

/** Returns the files that a file imports statically, and their imports. */
async function importedBy(file: string): Promise<readonly string[]> {
  const args = ["info", "--json", repoFile(file)];
  const { stdout } = await new Deno.Command(Deno.execPath(), { args, cwd: repoFile("") }).output();
  const { modules } = JSON.parse(new TextDecoder().decode(stdout)) as {
    readonly modules: readonly Module[];
  };
  const found = new Set([new URL(`../${file}`, import.meta.url).href]);
  for (const specifier of found) {
    const { dependencies = [] } = modules.find((one) => one.specifier === specifier) ?? {};
    for (const { isDynamic, code } of dependencies) {
      if (isDynamic !== true && code?.specifier !== undefined) found.add(code.specifier);
    }
  }
  return [...found];
}

Deno.test("the version and the help load no module of Node, which would take as long as Deno's start", async () => {
  for (const file of ["mod.ts", "src/cli/_version.ts", "src/cli/_help.ts"]) {
    const imported = await importedBy(file);
    assert.ok(imported.length > 1, file);
    assert.deepEqual(imported.filter((one) => /^(?:node|npm|jsr):/.test(one)), [], file);
  }
});
