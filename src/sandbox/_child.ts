/**
 * Starts, watches and kills the process of a sandbox child.
 *
 * @module
 */

import { randomToken } from "../core/random.ts";
import { devNull } from "node:os";
import { delimiter, dirname, join, relative, sep } from "node:path";
import { withoutUndefined } from "../core/json.ts";
import { STEERING_NAMES } from "../core/steering.ts";
import { isInside, namesInFolder } from "../io/path_info.ts";
import { hostCode, kernelCode, workerCode } from "./_boot_texts.ts";
import type { ChildOptions, Groups } from "./_options.ts";
import { bubblewrapArgs, countProcesses, systemPaths } from "./_os_layer.ts";
import type { Layer } from "./layer.ts";
import { openPrivateFolder, type PrivateFolder } from "./_private_folder.ts";
import { DENO_ALONE, DENO_QUIET, sentProgram } from "./deno_flags.ts";
import { cmdExePath, isBatch } from "../core/batch_files.ts";
import type { HostGrants, HostStart } from "./boot/message.ts";
import { DENIED } from "./denied_names.ts";
import { netFlags, pathFlag } from "./net_flags.ts";
import {
  adoptGroup,
  killGroup,
  killMarked,
  type Process,
  residentBytes,
  StartedProgram,
} from "./process.ts";
import { findPrograms, programEndings, searchPath } from "./search_path.ts";

/**
 * The number of processes and threads that the user may start in addition to the current ones while
 * programs run.
 */
const SPARE_PROCESSES = 1_000;

/** The beginning of the error about a path that Deno cannot grant. */
const PATH_ERROR = "Cannot run modules on";

/** A running child process. Only PML and the host thread of the child have the nonce. */
export interface Child extends AsyncDisposable {
  readonly running: Process;
  /** The id of the child's own process, not of its keeper. */
  readonly pid: number;
  readonly nonce: string;
  /** Sends one line of JSON. */
  send(message: unknown): void;
  /**
   * Kills the process group of the child, the groups of its programs, and processes that left their
   * group.
   */
  kill(): void;
  /** Handles a message about the process group of a program. */
  handleGroup(event: string, pid: number): void;
  /** Returns the resident memory in bytes; 0 if the system does not report it. */
  rss(): number;
}

/** Start parameters of a child in addition to its options. */
export interface ChildStart {
  readonly groups?: Groups | undefined;
  /**
   * The layer that confines the child in addition to Deno. If it is undefined, the child uses
   * Landlock if the kernel has it.
   */
  readonly layer?: Layer | undefined;
  /** Changes the flags of Deno, so that tests can make the self-test fail. */
  readonly flags?: ((defaults: readonly string[]) => readonly string[]) | undefined;
}

/** Starts a child and sends the grants to its host thread. */
export async function startChild(
  options: ChildOptions,
  { groups, layer, flags = (defaults) => defaults }: ChildStart = {},
): Promise<Child> {
  const grants = grantsOf(options);
  const [url, code] = sentProgram(kernelCode + hostCode);
  const folder = openPrivateFolder(options.home, options.workspace, groups?.mark);
  try {
    const [program = "", ...before] = commandOf(options, { folder, layer });
    const started = new StartedProgram({
      file: program,
      args: [
        ...before,
        ...flags(childFlags(options, { folder, grants, layer })),
        url,
      ],
      cwd: folder.temp,
      env: { ...environment(options, folder), ...(groups && { PML_RUN: `${groups.mark}.` }) },
      hasKeeper: options.run.length > 0,
    });
    groups?.add(started.running.pid);
    return new RunningChild(started, { options, folder, grants, groups, layer, code });
  } catch (error) {
    await folder[Symbol.asyncDispose]();
    throw error;
  }
}

/** The private folder of a child, and the layer that confines it. */
interface ChildSetup {
  readonly folder: PrivateFolder;
  readonly layer: Layer | undefined;
}

/** Returns the command of a child: Deno, or bubblewrap that starts Deno. */
function commandOf({ workspace, read, write, net }: ChildOptions, { folder, layer }: ChildSetup) {
  const { lock, denoDir, temp } = folder;
  const sight = {
    workspace,
    read,
    write,
    lock,
    privateFolders: [denoDir, temp],
    net: net.length > 0,
  };
  const before = layer?.kind === "bwrap" ? [layer.program, ...bubblewrapArgs(sight)] : [];
  return [...before, Deno.execPath()];
}

/** Returns whether a child limits itself by system calls before it loads a module. */
function limitsItself({ run }: ChildOptions, layer: Layer | undefined): boolean {
  const isLandlock = layer === undefined || layer.kind === "landlock";
  return Deno.build.os === "linux" && (isLandlock || run.length > 0);
}

/** Returns the members of the start message for a child that limits itself. */
function kernelOf(options: ChildOptions, layer: Layer | undefined): Partial<HostStart> {
  if (!limitsItself(options, layer)) return {};
  const { run, net, writesOnly = false } = options;
  const system = systemPaths(net.length > 0);
  if (run.length === 0) return { system };
  const processes = countProcesses(Deno.uid() ?? 0) + SPARE_PROCESSES;
  return { system, programs: { processes, writesOnly } };
}

class RunningChild implements Child {
  readonly running: Process;
  readonly nonce = randomToken(24);
  readonly #started: StartedProgram;
  readonly #folder: PrivateFolder;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #groups: Groups | undefined;
  readonly #programs = new Set<number>();
  readonly #mark: string;
  readonly #isWrapped: boolean;
  readonly #ended: Promise<void>;
  #isKilled = false;
  /** The messages that are not written yet. */
  #unsent = "";

  constructor(
    started: StartedProgram,
    setup: {
      readonly options: ChildOptions;
      readonly folder: PrivateFolder;
      readonly grants: HostGrants;
      readonly groups: Groups | undefined;
      readonly layer: Layer | undefined;
      readonly code: Uint8Array;
    },
  ) {
    const { folder, options: { limits, workspace, read, write, protection, home, run } } = setup;
    const { running } = started;
    this.running = running;
    this.#started = started;
    this.#groups = setup.groups;
    this.#isWrapped = setup.layer?.kind === "bwrap";
    this.#folder = folder;
    this.#stdin = running.stdin.getWriter();
    const { lock, canary, denoDir, temp } = folder;
    this.#mark = `${this.#groups?.mark ?? "unwatched"}.${running.pid}.`;
    this.#ended = running.status.then(() => {
      this.kill();
      // A program that started just before the end was not reported, and a process that left its
      // group is not killed with the group.
      if (run.length > 0) killMarked(`PML_RUN=${this.#mark}`);
      for (const pid of [running.pid, ...this.#programs]) this.#groups?.remove(pid);
    });
    this.#write(setup.code);
    const markedEnvironment = { ...setup.grants.environment, PML_RUN: this.#mark };
    this.send({
      nonce: this.nonce,
      workspace,
      read,
      write,
      protection,
      home,
      lock,
      canary,
      ...(write.length > 0 && { temp }),
      ...setup.grants,
      environment: markedEnvironment,
      privateFolders: [denoDir, temp],
      ...kernelOf(setup.options, setup.layer),
      writeBytes: limits.writeBytes,
      resultBytes: limits.resultBytes,
      denied: DENIED,
      worker: workerCode,
    });
  }

  get pid(): number {
    return this.#started.pid;
  }

  send(message: unknown): void {
    // All messages of one turn of the event loop are one write.
    if (this.#unsent === "") queueMicrotask(() => this.#flush());
    this.#unsent += `${JSON.stringify(message)}\n`;
  }

  #flush(): void {
    const text = this.#unsent;
    this.#unsent = "";
    this.#write(new TextEncoder().encode(text));
  }

  #write(bytes: Uint8Array): void {
    // A broken pipe is reported by the end of the child.
    this.#stdin.write(bytes).catch(() => {});
  }

  kill(): void {
    // Only once: the ids may belong to other processes later.
    if (this.#isKilled) return;
    this.#isKilled = true;
    this.#started.kill();
    for (const pid of this.#programs) killGroup(pid);
  }

  handleGroup(event: string, pid: number): void {
    if (event === "group") {
      adoptGroup(pid, this.#started.pid);
      if (this.#isKilled) return killGroup(pid);
      this.#programs.add(pid);
      this.#groups?.add(pid);
    } else if (this.#programs.has(pid)) {
      if (event === "kill") return killGroup(pid);
      this.#programs.delete(pid);
      this.#groups?.remove(pid);
    }
  }

  rss(): number {
    // If bubblewrap started the child, `pid` is bubblewrap, and the child is a descendant.
    // Otherwise, the descendants are programs that the module started, and their memory does not
    // count.
    return residentBytes(this.pid, { below: this.#isWrapped });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill();
    await this.#ended;
    // The kill may have broken the pipe already.
    await this.#stdin.close().catch(() => {});
    await this.#folder[Symbol.asyncDispose]();
  }
}

function childFlags(
  options: ChildOptions,
  { folder, grants, layer }: ChildSetup & { readonly grants: HostGrants },
): string[] {
  const { read, write, limits } = options;
  // The broker checks a path before it writes there, so its thread needs to read it too.
  const above = write.flatMap((root) => aboveOf(root, options.workspace));
  const readable = new Set([...read, ...write, ...above, folder.lock, folder.temp]);
  // If any program may run, the host thread itself looks for programs on PATH.
  if (grants.run === "*") { for (const path of grants.path) readable.add(path); }
  const files = grants.run === "*" ? [] : Object.values(grants.run);
  const programs = [...new Set(files.flatMap((file) => startedFiles(file, grants.environment)))];
  return [
    ...DENO_ALONE,
    "--unstable-worker-options",
    // The child's own DENO_DIR is new, so it has no code cache to read, and is removed afterwards.
    "--no-code-cache",
    `--v8-flags=--max-old-space-size=${limits.heapMb}`,
    ...(limitsItself(options, layer) ? ["--allow-ffi"] : []),
    ...pathFlag("allow-read", [...readable], PATH_ERROR),
    ...pathFlag("allow-write", write.length > 0 ? [...write, folder.temp] : [], PATH_ERROR),
    ...(grants.run === "*" ? ["--allow-run"] : []),
    ...pathFlag("allow-run", programs, PATH_ERROR),
    // The host thread checks the ports.
    ...netFlags(options.net.map((host) => host.replace(/:\d+$/, ""))),
    ...homeFlags(options, folder),
  ];
}

/**
 * Returns the paths that the host thread must read to find out whether a link leads to a root, and
 * whether git treats the workspace as a repository.
 */
function aboveOf(root: string, workspace: string): readonly string[] {
  const relativePath = relative(workspace, root);
  if (relativePath === "" || !isInside(workspace, root)) return [];
  const [first = "", ...rest] = relativePath.split(sep);
  const pieces = ["HEAD", "config", "objects", "commondir"].map((name) => join(workspace, name));
  return rest.length === 0 ? pieces : [...pieces, join(workspace, first)];
}

function grantsOf({ run, net, env, environment, workspace }: ChildOptions): HostGrants {
  const path = searchPath(environment.PATH, workspace);
  return {
    run: run.includes("*") ? "*" : findPrograms(run, { path, workspace }),
    path,
    endings: programEndings(),
    // Programs treat an empty PATH as their current folder.
    environment: { ...environment, PATH: path.join(delimiter) || devNull },
    steering: STEERING_NAMES,
    net,
    env,
  };
}

/**
 * Returns the flags that deny access to the PML home if a granted folder contains it. Only the lock
 * files stay accessible.
 */
function homeFlags({ read, write, home }: ChildOptions, folder: PrivateFolder): string[] {
  if (![...read, ...write].some((root) => isInside(root, home))) return [];
  const names = namesInFolder(home).map((name) => join(home, name));
  const closed = names.filter((path) => path !== dirname(folder.lock));
  return ["deny-read", "deny-write"].flatMap((flag) => pathFlag(flag, closed, PATH_ERROR));
}

/**
 * Returns the files that Deno must be allowed to start for a program: on Windows, `cmd.exe` runs
 * batch files.
 */
function startedFiles(file: string, { SYSTEMROOT = "C:\\Windows" }: HostGrants["environment"]) {
  return Deno.build.os === "windows" && isBatch(file) ? [cmdExePath(SYSTEMROOT)] : [file];
}

function temporaryVariables(folder: string): Record<string, string> {
  return Deno.build.os === "windows" ? { TEMP: folder, TMP: folder } : { TMPDIR: folder };
}

function environment(options: ChildOptions, folder: PrivateFolder): Record<string, string> {
  const { LANG, TZ } = options.environment;
  return withoutUndefined({
    DENO_DIR: folder.denoDir,
    ...DENO_QUIET,
    ...temporaryVariables(folder.temp),
    LANG,
    TZ,
  });
}
