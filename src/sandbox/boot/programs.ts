/**
 * Runs programs for a module. Programs are found only outside the workspace. Each run has its own
 * process group, which is killed as a whole.
 *
 * @module
 */

import { Tail } from "./_tail.ts";
import { type StartedCommand, startedCommand } from "../../core/batch_files.ts";
import type { PathGuard } from "./path_guard.ts";
import { copyBytes } from "./handles.ts";
import type { HostStart } from "./message.ts";
import { within } from "./names.ts";
import { PATHS } from "../../core/paths.ts";
import type { HostFunction, HostRequestContext } from "./host_function.ts";
import { quotedPath, refusalOf, SandboxRefusal } from "./refusal.ts";

const IS_WINDOWS = Deno.build.os === "windows";
/** The default number of bytes of each output that are kept, and the maximum number. */
const OUTPUT_DEFAULT = 1 << 20;
const OUTPUT_MAX = 1 << 24;
/** The interval in which output is reported, in milliseconds. */
const REPORT_MS = 50;
/** The time between SIGTERM and SIGKILL, in milliseconds. */
const TERM_MS = 500;
/** The time to read the rest of an output after the program's end, in milliseconds. */
const DRAIN_MS = 200;
/** The longest time of a timer in milliseconds. With a longer time it fires at once. */
const TIMER_MAX = 2 ** 31 - 1;
/**
 * Variables that no module may set, because they load code into programs or because PML sets them.
 */
const CLOSED_NAME = /^(LD_|DYLD_|PML_)/;
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Reports a process group to PML: it has started, it must be killed, or it has ended. */
export type OnGroup = (event: "group" | "kill" | "gone", pid: number) => void;

/** One run of a program with checked values. */
interface ProgramRun extends StartedCommand {
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly stdin: Uint8Array<ArrayBuffer>;
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

/** The reason for the early end of a run. */
type EarlyEnd = "timeout" | "abort" | undefined;

/** Runs the programs that a module was granted. */
export class Programs {
  /** The request `exec`. Its arguments are the program, the program's arguments, and options. */
  readonly ops: Readonly<Record<string, HostFunction>> = {
    exec: ([program, args, options], context) =>
      this.#exec(this.#runOf(program, args, options), context),
  };
  readonly #start: HostStart;
  readonly #guard: PathGuard;
  readonly #onGroup: OnGroup;

  /** Creates an instance with the grants, the guard of working folders and the group reporter. */
  constructor(start: HostStart, guard: PathGuard, onGroup: OnGroup) {
    this.#start = start;
    this.#guard = guard;
    this.#onGroup = onGroup;
  }

  async #exec(run: ProgramRun, { signal, say }: HostRequestContext): Promise<unknown> {
    signal.throwIfAborted();
    const { file, args, cwd, env, windowsRawArguments = false } = run;
    const piped = { stdin: "piped", stdout: "piped", stderr: "piped" } as const;
    // On Windows, the job of this process replaces the group.
    const processOptions = { windowsRawArguments, clearEnv: true, detached: !IS_WINDOWS };
    const child = new Deno.Command(file, { args: [...args], cwd, env, ...processOptions, ...piped })
      .spawn();
    this.#onGroup("group", child.pid);
    const tails = { stdout: new Tail(run.maxBytes), stderr: new Tail(run.maxBytes) };
    const ends = [
      readOutput(child.stdout, tails.stdout, (text) => say({ stream: "stdout", text })),
      readOutput(child.stderr, tails.stderr, (text) => say({ stream: "stderr", text })),
    ];
    // A program may close its input early; the broken pipe is not an error.
    void writeInput(child.stdin, run.stdin).catch(() => {});
    let earlyEnd: EarlyEnd;
    const end = (why: EarlyEnd) => {
      earlyEnd ??= why;
      if (why === "timeout") terminate(child);
      setTimeout(() => this.#onGroup("kill", child.pid), why === "timeout" ? TERM_MS : 0);
    };
    const timer = run.timeoutMs > 0 ? setTimeout(end, run.timeoutMs, "timeout") : undefined;
    const onAbort = () => end("abort");
    signal.addEventListener("abort", onAbort);
    const { code, signal: ended } = await child.status;
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    // Kills processes that the program left in its group. PML does not wait for other processes.
    this.#onGroup("kill", child.pid);
    await Promise.race([Promise.all(ends), new Promise((late) => setTimeout(late, DRAIN_MS))]);
    this.#onGroup("gone", child.pid);
    signal.throwIfAborted();
    return {
      code,
      signal: ended,
      stdout: tails.stdout.text(),
      stderr: tails.stderr.text(),
      omitted: { stdout: tails.stdout.omitted, stderr: tails.stderr.omitted },
      timedOut: earlyEnd === "timeout",
    };
  }

  #runOf(program: unknown, args: unknown, options: unknown): ProgramRun {
    const { cwd = ".", stdin, env, timeoutMs, maxBytes } = Object(options);
    // guard: program-folder
    return {
      ...this.#command(text(program, "the program"), argumentList(args)),
      cwd: this.#folder(text(cwd, "cwd")),
      env: { ...this.#variables(env, program), ...this.#start.environment, ...this.#granted() },
      stdin: bytesOf(stdin),
      timeoutMs: Math.min(Math.max(Number(timeoutMs) || 0, 0), TIMER_MAX),
      maxBytes: Math.min(Math.max(Number(maxBytes ?? OUTPUT_DEFAULT) || 0, 0), OUTPUT_MAX),
    };
  }

  /**
   * Returns the variables that a module sets for a program. If only some programs may run, it
   * cannot set variables that make one program run another.
   */
  #variables(value: unknown, program: unknown): Record<string, string> {
    const values = variables(value);
    const { run, steering, environment, env } = this.#start;
    // A variable that begins with the program's name can do no more than the program's arguments.
    const ownPrefix = `${programName(String(program)).toUpperCase()}_`;
    const name = Object.keys(values).find((name) =>
      run !== "*" && new RegExp(steering, "is").test(name) && !name.startsWith(ownPrefix) &&
      !Object.hasOwn(environment, name) && !Object.hasOwn(env, name)
    );
    if (name === undefined) return values;
    const why = "it changes what programs do, and no env grant names it";
    throw refusalOf("SANDBOX_DENIED", { op: "set the variable", requestedPath: name }, why);
  }

  #granted(): Record<string, string> {
    const set = Object.entries(this.#start.env).filter(([, value]) => value !== null)
      .map(([name, value]) => [variableName(name), value]);
    return Object.fromEntries(set) as Record<string, string>; // null values were removed
  }

  /** Returns what to start. On Windows, `cmd.exe` runs batch files. */
  #command(program: string, args: readonly string[]): StartedCommand {
    const file = this.#find(program);
    if (!IS_WINDOWS) return { file, args };
    try {
      return startedCommand({ file, args }, this.#start.environment.SYSTEMROOT ?? "C:\\Windows");
    } catch (error) {
      throw refusalOf(
        "SANDBOX_DENIED",
        { op: "run", requestedPath: program },
        (error as TypeError).message,
      );
    }
  }

  #find(program: string): string {
    const { run, path, endings, workspace } = this.#start;
    const attempt = { op: "run", requestedPath: program };
    if (run !== "*") {
      const file = Object.hasOwn(run, program) ? run[program] : undefined;
      if (file !== undefined) return file;
      throw refusalOf("SANDBOX_DENIED", attempt, "this module has no run grant for it");
    }
    const plain = PATHS.plain(program);
    if (plain === undefined) throw refusalOf("SANDBOX_DENIED", attempt, "it is on no drive");
    const isPath = plain.includes("/");
    const names = PATHS.isAbsolute(plain) ? PATHS.namesOf(plain).slice(1) : [plain];
    if (IS_WINDOWS && names.some((name) => PATHS.whyUnsafeName(name) !== undefined)) {
      throw refusalOf("SANDBOX_DENIED", attempt, "its name means another file on Windows");
    }
    const hasEnding = endings.length === 0 ||
      endings.some((end) => plain.toLowerCase().endsWith(end));
    const files = hasEnding ? [plain] : endings.map((end) => plain + end);
    // A path is not resolved, because the user saw it, and its links may be invisible to this
    // process.
    const file = isPath
      ? PATHS.isAbsolute(plain) ? PATHS.resolve(workspace, plain) : `${workspace}/${plain}`
      : path.flatMap((folder) => files.map((name) => `${folder}/${name}`)).find(isExecutable);
    if (file === undefined) {
      const hint = "give a program on PATH or its absolute path, without its arguments";
      const message = `Cannot run ${quotedPath(program)}: there is none: ${hint}`;
      throw new SandboxRefusal("ENOENT", message, "NotFound");
    }
    const real = PATHS.respell(workspace, isPath ? file : realPath(file));
    // Links are not resolved, because some programs depend on the name that they are started by.
    // A path in /proc can lead anywhere, for example to the working folder.
    if (![workspace, "/proc"].some((folder) => within(folder, real))) return file;
    const hint = "give it to the program that reads it, such as sh, node or python";
    throw refusalOf("SANDBOX_DENIED", attempt, `it lies in the workspace: ${hint}`);
  }

  #folder(folder: string): string {
    const attempt = { op: "run in", requestedPath: folder, access: "read" } as const;
    const { path, info } = this.#guard.follow(attempt);
    // Rules for programs do not restrict the folder, so it must be in the workspace.
    const isInside = within(this.#start.workspace, path);
    if (info.isDirectory && isInside) return path;
    throw refusalOf("SANDBOX_DENIED", attempt, "it is not a folder of the workspace");
  }
}

function realPath(file: string): string {
  const real = Deno.realPathSync(file);
  return PATHS.plain(real) ?? real;
}

function isExecutable(file: string): boolean {
  try {
    const { isFile, mode } = Deno.statSync(file);
    // On Windows, the extension makes a file a program, and files do not have these bits.
    return isFile && (IS_WINDOWS || ((mode ?? 0) & 0o111) !== 0);
  } catch {
    return false; // missing, or not visible to this process
  }
}

function terminate(child: Deno.ChildProcess): void {
  try {
    child.kill();
  } catch {
    // The program has just ended, or runs as another user.
  }
}

async function writeInput(
  stream: WritableStream<Uint8Array>,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<void> {
  const writer = stream.getWriter();
  if (bytes.length > 0) await writer.write(bytes);
  await writer.close();
}

/** Reads an output to its end, and reports its last part from time to time. */
async function readOutput(
  stream: ReadableStream<Uint8Array>,
  tail: Tail,
  say: (text: string) => void,
): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const report = () => {
    timer = undefined;
    say(tail.last());
  };
  for await (const chunk of stream) {
    tail.add(chunk);
    timer ??= setTimeout(report, REPORT_MS);
  }
  clearTimeout(timer);
}

function text(value: unknown, what: string): string {
  if (typeof value === "string" && value !== "" && !value.includes("\0")) return value;
  throw new TypeError(`${what} must be a text without NUL`);
}

function argumentList(value: unknown = []): readonly string[] {
  const isText = (one: unknown) => typeof one === "string" && !one.includes("\0");
  if (Array.isArray(value) && value.every(isText)) return value;
  throw new TypeError("the arguments must be texts without NUL");
}

function variables(value: unknown = {}): Record<string, string> {
  const entries = Object.entries(Object(value))
    .map(([name, content]) => [variableName(name), content] as const);
  for (const [name, content] of entries) {
    if (!VARIABLE_NAME.test(name) || CLOSED_NAME.test(name)) {
      throw new SandboxRefusal("SANDBOX_DENIED", `Cannot set the variable ${name.slice(0, 80)}`);
    }
    text(` ${content}`, `the variable ${name}`);
  }
  return Object.fromEntries(entries.map(([name, content]) => [name, String(content)]));
}

/** Returns the normal form of a variable name, because Windows ignores case. */
function variableName(name: string): string {
  return IS_WINDOWS ? name.toUpperCase() : name;
}

/** Returns the name of a program without its folder and, on Windows, without its extension. */
function programName(program: string): string {
  return IS_WINDOWS
    ? program.replace(/.*[\\/]|\.(?:com|exe|bat|cmd)$/gis, "")
    : program.replace(/.*\//s, "");
}

function bytesOf(value: unknown): Uint8Array<ArrayBuffer> {
  if (value === undefined || value === null) return new Uint8Array();
  if (typeof value === "string") return new TextEncoder().encode(value);
  return new Uint8Array(copyBytes(value));
}
