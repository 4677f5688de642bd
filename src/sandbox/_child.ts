/**
 * The process of a sandbox: how it is started, watched and killed.
 *
 * @module
 */

import { randomBytes } from "node:crypto";
import { dirname, join, relative } from "node:path";
import { isLiteral, PRIVATE_IPV4 } from "../core/address.ts";
import { PmlError } from "../core/errors.ts";
import { defined, quoted } from "../core/json.ts";
import type { ChildOptions, Groups } from "./_options.ts";
import { openPrivateFolder, type PrivateFolder } from "./_private.ts";
import { killGroup, killMarked, type Process, startProcess } from "./_process.ts";
import { foundPrograms, searchPath } from "./_programs.ts";
import type { Grants } from "./boot/message.ts";
import hostCode from "./boot/host.min.js" with { type: "text" };
import workerCode from "./boot/worker.min.js" with { type: "text" };

/** A running child; the nonce is known to this side and to its host thread only. */
export interface Child extends AsyncDisposable {
  readonly running: Process;
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
  /** Changes its flags, so that tests can see the self-test fail. */
  readonly flags?: ((given: readonly string[]) => readonly string[]) | undefined;
}

/** Starts a child and tells its host thread what it may do. */
export function startChild(
  options: ChildOptions,
  { groups, flags = (given) => given }: ChildStart = {},
): Child {
  const grants = grantsOf(options);
  const folder = openPrivateFolder(options.home, options.workspace);
  try {
    const running = startProcess(Deno.execPath(), {
      args: [...flags(childFlags(options, { folder, grants })), dataUrl(hostCode)],
      cwd: folder.temp,
      env: { ...environment(options, folder), ...(groups && { PML_RUN: `${groups.mark}.` }) },
      heard: true,
    });
    groups?.add(running.pid);
    return new RunningChild(running, { options, folder, grants, groups });
  } catch (error) {
    folder[Symbol.dispose]();
    throw error;
  }
}

class RunningChild implements Child {
  readonly running: Process;
  readonly nonce = randomBytes(24).toString("base64url");
  readonly #folder: PrivateFolder;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #groups: Groups | undefined;
  readonly #programs = new Set<number>();
  readonly #mark: string;
  #ranPrograms = false;

  constructor(
    running: Process,
    from: {
      readonly options: ChildOptions;
      readonly folder: PrivateFolder;
      readonly grants: Grants;
      readonly groups: Groups | undefined;
    },
  ) {
    const { folder, options: { limits, workspace, read, write, protection, home } } = from;
    this.running = running;
    this.#groups = from.groups;
    this.#folder = folder;
    this.#stdin = running.stdin.getWriter();
    const { lock, canary } = folder;
    this.#mark = `${this.#groups?.mark ?? "unwatched"}.${running.pid}.`;
    const marked = { ...from.grants.environment, PML_RUN: this.#mark };
    this.send({
      ...{ nonce: this.nonce, workspace, read, write, protection, home, lock, canary },
      ...from.grants,
      environment: marked,
      resultBytes: limits.resultBytes,
      worker: workerCode,
    });
  }

  send(message: unknown): void {
    const line = new TextEncoder().encode(`${JSON.stringify(message)}\n`);
    // A child that died with its pipe open is told by its exit, not here.
    this.#stdin.write(line).catch(() => {});
  }

  kill(): void {
    killGroup(this.running.pid);
    for (const pid of this.#programs) this.group("kill", pid);
    if (this.#ranPrograms) killMarked(`PML_RUN=${this.#mark}`);
  }

  group(event: string, pid: number): void {
    if (event === "group") {
      this.#ranPrograms = true;
      this.#programs.add(pid);
      this.#groups?.add(pid);
    } else if (this.#programs.has(pid)) {
      if (event === "kill") return killGroup(pid);
      this.#programs.delete(pid);
      this.#groups?.remove(pid);
    }
  }

  rss(): number {
    try {
      const status = Deno.readTextFileSync(`/proc/${this.running.pid}/status`);
      return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1_024;
    } catch {
      // Gone, or a system without /proc: there only the heap flag bounds the memory.
      return 0;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill();
    await this.running.status;
    // Broken by the kill, or closed: either way nothing more is sent.
    await this.#stdin.close().catch(() => {});
    for (const pid of [this.running.pid, ...this.#programs]) this.#groups?.remove(pid);
    this.#folder[Symbol.dispose]();
  }
}

function childFlags(
  options: ChildOptions,
  { folder, grants }: { readonly folder: PrivateFolder; readonly grants: Grants },
): string[] {
  const { read, write, limits } = options;
  // The broker looks at what it is about to write, so its thread reads there too.
  const readable = new Set([...read, ...write, folder.lock]);
  // Any program may run: they are looked for by the host thread.
  if (grants.run === "*") { for (const path of grants.path) readable.add(path); }
  const programs = grants.run === "*" ? [] : Object.values(grants.run);
  return [
    "run",
    "--quiet",
    "--no-prompt",
    "--no-config",
    "--no-lock",
    "--no-remote",
    "--no-npm",
    "--cached-only",
    "--unstable-worker-options",
    `--v8-flags=--max-old-space-size=${limits.heapMb}`,
    `--allow-read=${pathList([...readable])}`,
    ...(write.length > 0 ? [`--allow-write=${pathList(write)}`] : []),
    ...(grants.run === "*" ? ["--allow-run"] : []),
    ...(programs.length > 0 ? [`--allow-run=${pathList(programs)}`] : []),
    ...netFlags(options.net),
    ...closedHome(options, folder),
  ];
}

/** Opens the hosts; the host thread sees to the ports. An address that was granted is itself. */
function netFlags(net: readonly string[]): string[] {
  if (net.length === 0) return [];
  const hosts = net.map((at) => at.replace(/:\d+$/, ""));
  const allow = hosts.includes("*") ? "--allow-net" : `--allow-net=${hosts.join(",")}`;
  const closed = [...PRIVATE_IPV4, "[::1]", "[::]"].join(",");
  return [allow, ...(hosts.some(isLiteral) ? [] : [`--deny-net=${closed}`])];
}

function grantsOf({ run, net, env, environment, workspace }: ChildOptions): Grants {
  const path = searchPath(environment.PATH ?? "", workspace);
  return {
    run: run.includes("*") ? "*" : foundPrograms(run, { path, workspace }),
    path,
    environment: defined({ ...environment, PATH: path.join(":") }),
    net,
    env,
  };
}

/** Closes the PML home to a child whose folders hold it, all but the lock that the child needs. */
function closedHome({ read, write, home }: ChildOptions, folder: PrivateFolder): string[] {
  const holdsHome = (root: string) => !relative(root, home).startsWith("..");
  if (![...read, ...write].some(holdsHome)) return [];
  const names = [...Deno.readDirSync(home)].map(({ name }) => join(home, name));
  const closed = pathList(names.filter((path) => path !== dirname(folder.lock)));
  return [`--deny-read=${closed}`, `--deny-write=${closed}`];
}

function pathList(paths: readonly string[]): string {
  const comma = paths.find((path) => path.includes(","));
  if (comma === undefined) return paths.join(",");
  throw new PmlError("SANDBOX_DENIED", `Cannot run modules on ${quoted(comma, 200)}: a comma`, {
    hint: "Deno cannot grant a path with a comma in it: rename the folder",
  });
}

function environment(options: ChildOptions, folder: PrivateFolder): Record<string, string> {
  const { LANG, TZ } = options.environment;
  return defined({
    DENO_DIR: folder.denoDir,
    DENO_NO_UPDATE_CHECK: "1",
    NO_COLOR: "1",
    TMPDIR: folder.temp,
    LANG,
    TZ,
  });
}

function dataUrl(code: string): string {
  return `data:application/javascript;base64,${new TextEncoder().encode(code).toBase64()}`;
}
