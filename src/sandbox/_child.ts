/**
 * The process of a sandbox: how it is started, watched and killed.
 *
 * @module
 */

import { randomBytes } from "node:crypto";
import { dirname, join, relative } from "node:path";
import { PmlError } from "../core/errors.ts";
import { defined, quoted } from "../core/json.ts";
import { openPrivateFolder, type PrivateFolder } from "./_private.ts";
import { type SandboxOptions, WRITE_BYTES } from "./_options.ts";
import hostCode from "./boot/host.min.js" with { type: "text" };
import workerCode from "./boot/worker.min.js" with { type: "text" };

/** A running child; the nonce is known to this side and to its host thread only. */
export interface Child extends AsyncDisposable {
  readonly running: Deno.ChildProcess;
  readonly nonce: string;
  /** Sends one line of JSON. */
  send(message: unknown): void;
  /** Kills the whole process group. */
  kill(): void;
  /** Gives the resident memory in bytes; 0 where the system does not tell. */
  rss(): number;
}

/** Starts a child and tells its host thread what to load. `flags` is for tests of the self-test. */
export function startChild(
  options: SandboxOptions,
  flags: (given: readonly string[]) => readonly string[] = (given) => given,
): Child {
  const folder = openPrivateFolder(options.home, options.workspace);
  try {
    const running = new Deno.Command(Deno.execPath(), {
      args: [...flags(childFlags(options, folder)), dataUrl(hostCode)],
      cwd: folder.temp,
      clearEnv: true,
      env: environment(options, folder),
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
      detached: true,
    }).spawn();
    return new RunningChild(running, { options, folder });
  } catch (error) {
    folder[Symbol.dispose]();
    throw error;
  }
}

class RunningChild implements Child {
  readonly running: Deno.ChildProcess;
  readonly nonce = randomBytes(24).toString("base64url");
  readonly #folder: PrivateFolder;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;

  constructor(
    running: Deno.ChildProcess,
    from: { readonly options: SandboxOptions; readonly folder: PrivateFolder },
  ) {
    const { limits, code } = from.options;
    this.running = running;
    this.#folder = from.folder;
    this.#stdin = running.stdin.getWriter();
    const { lock, canary, temp } = from.folder;
    const { workspace, read, write, protection, home } = from.options;
    this.send({
      nonce: this.nonce,
      workspace,
      read,
      write,
      protection,
      home,
      ...(write.length > 0 ? { temp } : {}),
      writeBytes: limits.writeBytes ?? WRITE_BYTES,
      lock,
      canary,
      resultBytes: limits.resultBytes,
      worker: workerCode,
      code: new TextDecoder("utf-8").decode(code),
    });
  }

  send(message: unknown): void {
    const line = new TextEncoder().encode(`${JSON.stringify(message)}\n`);
    // A child that died with its pipe open is told by its exit, not here.
    this.#stdin.write(line).catch(() => {});
  }

  kill(): void {
    try {
      Deno.kill(-this.running.pid, "SIGKILL");
    } catch (error) {
      // Gone already, which its exit status tells.
      if (!(error instanceof Deno.errors.NotFound)) throw error;
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
    this.#folder[Symbol.dispose]();
  }
}

function childFlags(options: SandboxOptions, folder: PrivateFolder): string[] {
  const { read, write, limits } = options;
  // The broker looks at what it is about to write, so its thread reads there too.
  const readable = [...new Set([...read, ...write, folder.lock, folder.temp])];
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
    `--allow-read=${pathList(readable)}`,
    ...(write.length > 0 ? [`--allow-write=${pathList([...write, folder.temp])}`] : []),
    ...closedHome(options, folder),
  ];
}

/** Closes the PML home to a child whose folders hold it, all but the lock that the child needs. */
function closedHome({ read, write, home }: SandboxOptions, folder: PrivateFolder): string[] {
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

function environment(options: SandboxOptions, folder: PrivateFolder): Record<string, string> {
  const { LANG, TZ } = options.environment ?? {};
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
