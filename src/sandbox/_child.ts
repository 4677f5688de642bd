/**
 * The process of a sandbox: how it is started, watched and killed.
 *
 * @module
 */

import { randomBytes } from "node:crypto";
import { dirname, join, relative, sep } from "node:path";
import { defined } from "../core/json.ts";
import { STEERING_NAMES } from "../core/steering.ts";
import { isInside } from "../io/place.ts";
import type { ChildOptions, Groups } from "./_options.ts";
import { bubblewrapArgs, type Layer, processesOf, systemPaths } from "./_os_layer.ts";
import { openPrivateFolder, type PrivateFolder } from "./_private.ts";
import { DENO_ALONE, DENO_QUIET, programUrl } from "./alone.ts";
import hostCode from "./boot/host.min.js" with { type: "text" };
import type { Grants, Start } from "./boot/message.ts";
import workerCode from "./boot/worker.min.js" with { type: "text" };
import { DENIED } from "./denied_names.ts";
import { netFlags, pathFlag } from "./net_flags.ts";
import { killGroup, killMarked, type Process, residentBytes, Started } from "./process.ts";
import { foundPrograms, searchPath } from "./search_path.ts";

/** How many processes and threads a person may have beside those of now, while programs run. */
const SPARE_PROCESSES = 1_000;

/** What cannot be done with a path that Deno cannot grant. */
const ON = "Cannot run modules on";

/** A running child; the nonce is known to this side and to its host thread only. */
export interface Child extends AsyncDisposable {
  readonly running: Process;
  /** Its process id, and not that of its keeper. */
  readonly pid: number;
  readonly nonce: string;
  /** Sends one line of JSON. */
  send(message: unknown): void;
  /** Kills the group of the child, those of its programs, and what fled from them. */
  kill(): void;
  /** Takes word of a program's group. */
  group(event: string, pid: number): void;
  /** Gives the resident memory in bytes; 0 where the system does not tell. */
  rss(): number;
}

/** How a child is started beside its options. */
export interface ChildStart {
  readonly groups?: Groups | undefined;
  /** What the system holds it with; Landlock where there is it, unless said. */
  readonly layer?: Layer | undefined;
  /** Changes its flags, so that tests can see the self-test fail. */
  readonly flags?: ((given: readonly string[]) => readonly string[]) | undefined;
}

/** Starts a child and tells its host thread what it may do. */
export async function startChild(
  options: ChildOptions,
  { groups, layer, flags = (given) => given }: ChildStart = {},
): Promise<Child> {
  const grants = grantsOf(options);
  const folder = openPrivateFolder(options.home, options.workspace, groups?.mark);
  try {
    const [program = "", ...before] = programOf(options, { folder, layer });
    const started = new Started({
      file: program,
      args: [
        ...before,
        ...flags(childFlags(options, { folder, grants, layer })),
        programUrl(hostCode),
      ],
      cwd: folder.temp,
      env: { ...environment(options, folder), ...(groups && { PML_RUN: `${groups.mark}.` }) },
      kept: options.run.length > 0,
    });
    groups?.add(started.running.pid);
    return new RunningChild(started, { options, folder, grants, groups, layer });
  } catch (error) {
    await folder[Symbol.asyncDispose]();
    throw error;
  }
}

interface Under {
  readonly folder: PrivateFolder;
  readonly layer: Layer | undefined;
}

/** Gives what is started, which is Deno or what puts it into a layer of the system. */
function programOf({ workspace, read, write, net }: ChildOptions, { folder, layer }: Under) {
  const { lock, denoDir, temp } = folder;
  const sight = { workspace, read, write, lock, own: [denoDir, temp], net: net.length > 0 };
  const before = layer?.kind === "bwrap" ? [layer.program, ...bubblewrapArgs(sight)] : [];
  return [...before, Deno.execPath()];
}

/** Tells whether a child sets limits for itself by the kernel, before it has a module. */
function isOpenToKernel({ run }: ChildOptions, layer: Layer | undefined): boolean {
  const isLandlock = layer === undefined || layer.kind === "landlock";
  return Deno.build.os === "linux" && (isLandlock || run.length > 0);
}

/** What a child that sets limits for itself keeps. */
function kernelOf(options: ChildOptions, layer: Layer | undefined): Partial<Start> {
  if (!isOpenToKernel(options, layer)) return {};
  const { run, net, writesOnly = false } = options;
  const system = systemPaths(net.length > 0);
  if (run.length === 0) return { system };
  const processes = processesOf(Deno.uid() ?? 0) + SPARE_PROCESSES;
  return { system, programs: { processes, writesOnly } };
}

class RunningChild implements Child {
  readonly running: Process;
  readonly nonce = randomBytes(24).toString("base64url");
  readonly #started: Started;
  readonly #folder: PrivateFolder;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #groups: Groups | undefined;
  readonly #programs = new Set<number>();
  readonly #mark: string;
  readonly #isWrapped: boolean;
  readonly #ended: Promise<void>;
  #isKilled = false;

  constructor(
    started: Started,
    from: {
      readonly options: ChildOptions;
      readonly folder: PrivateFolder;
      readonly grants: Grants;
      readonly groups: Groups | undefined;
      readonly layer: Layer | undefined;
    },
  ) {
    const { folder, options: { limits, workspace, read, write, protection, home, run } } = from;
    const { running } = started;
    this.running = running;
    this.#started = started;
    this.#groups = from.groups;
    this.#isWrapped = from.layer?.kind === "bwrap";
    this.#folder = folder;
    this.#stdin = running.stdin.getWriter();
    const { lock, canary, denoDir, temp } = folder;
    this.#mark = `${this.#groups?.mark ?? "unwatched"}.${running.pid}.`;
    this.#ended = running.status.then(() => {
      this.kill();
      // What it started in its last moment was told to nobody, and what left its group neither.
      if (run.length > 0) killMarked(`PML_RUN=${this.#mark}`);
      for (const pid of [running.pid, ...this.#programs]) this.#groups?.remove(pid);
    });
    const marked = { ...from.grants.environment, PML_RUN: this.#mark };
    this.send({
      ...{ nonce: this.nonce, workspace, read, write, protection, home, lock, canary },
      ...(write.length > 0 && { temp }),
      ...from.grants,
      environment: marked,
      own: [denoDir, temp],
      ...kernelOf(from.options, from.layer),
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
    const line = new TextEncoder().encode(`${JSON.stringify(message)}\n`);
    // A child that died with its pipe open is told by its exit, not here.
    this.#stdin.write(line).catch(() => {});
  }

  kill(): void {
    // Once: later the numbers may be those of other people's groups.
    if (this.#isKilled) return;
    this.#isKilled = true;
    this.#started.kill();
    for (const pid of this.#programs) killGroup(pid);
  }

  group(event: string, pid: number): void {
    if (event === "group") {
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
    // Bubblewrap is not the child; of another child, what is below are programs of the person's.
    return residentBytes(this.pid, { below: this.#isWrapped });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill();
    await this.#ended;
    // Broken by the kill, or closed: either way nothing more is sent.
    await this.#stdin.close().catch(() => {});
    await this.#folder[Symbol.asyncDispose]();
  }
}

function childFlags(
  options: ChildOptions,
  { folder, grants, layer }: Under & { readonly grants: Grants },
): string[] {
  const { read, write, limits } = options;
  // The broker looks at what it is about to write, so its thread reads there too.
  const above = write.flatMap((root) => aboveOf(root, options.workspace));
  const readable = new Set([...read, ...write, ...above, folder.lock, folder.temp]);
  // Any program may run: they are looked for by the host thread.
  if (grants.run === "*") { for (const path of grants.path) readable.add(path); }
  const programs = grants.run === "*" ? [] : Object.values(grants.run);
  return [
    ...DENO_ALONE,
    "--unstable-worker-options",
    `--v8-flags=--max-old-space-size=${limits.heapMb}`,
    ...(isOpenToKernel(options, layer) ? ["--allow-ffi"] : []),
    ...pathFlag("allow-read", [...readable], ON),
    ...pathFlag("allow-write", write.length > 0 ? [...write, folder.temp] : [], ON),
    ...(grants.run === "*" ? ["--allow-run"] : []),
    ...pathFlag("allow-run", programs, ON),
    // The host thread sees to the ports.
    ...netFlags(options.net.map((at) => at.replace(/:\d+$/, ""))),
    ...closedHome(options, folder),
  ];
}

/** What tells whether the way to a root is no link, and whether git takes its folder for its own. */
function aboveOf(root: string, workspace: string): readonly string[] {
  const way = relative(workspace, root);
  if (way === "" || !isInside(workspace, root)) return [];
  const [first = "", ...rest] = way.split(sep);
  const pieces = ["HEAD", "config", "objects", "commondir"].map((name) => join(workspace, name));
  return rest.length === 0 ? pieces : [...pieces, join(workspace, first)];
}

function grantsOf({ run, net, env, environment, workspace }: ChildOptions): Grants {
  const path = searchPath(environment.PATH, workspace);
  return {
    run: run.includes("*") ? "*" : foundPrograms(run, { path, workspace }),
    path,
    // To programs, an empty one would mean the folder that they run in.
    environment: { ...environment, PATH: path.join(":") || "/dev/null" },
    steering: STEERING_NAMES,
    net,
    env,
  };
}

/** Closes the PML home to a child whose folders hold it, all but the lock that the child needs. */
function closedHome({ read, write, home }: ChildOptions, folder: PrivateFolder): string[] {
  if (![...read, ...write].some((root) => isInside(root, home))) return [];
  const names = [...Deno.readDirSync(home)].map(({ name }) => join(home, name));
  const closed = names.filter((path) => path !== dirname(folder.lock));
  return ["deny-read", "deny-write"].flatMap((flag) => pathFlag(flag, closed, ON));
}

function environment(options: ChildOptions, folder: PrivateFolder): Record<string, string> {
  const { LANG, TZ } = options.environment;
  return defined({
    DENO_DIR: folder.denoDir,
    ...DENO_QUIET,
    TMPDIR: folder.temp,
    LANG,
    TZ,
  });
}
