/**
 * Starts and ends processes on Windows, which has no process groups. PML uses job objects instead:
 * the system ends all processes of a job when its last handle is closed, and it closes the handles
 * of a process that ends or is killed. So PML needs no reaper on Windows.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { type StartedCommand, startedCommand } from "../core/batch_files.ts";
import { PipeThreads, type Start } from "./_pipe_threads.ts";
import type { Program } from "./program.ts";

/** `JOBOBJECT_EXTENDED_LIMIT_INFORMATION`: its class, its size, and where its flags are. */
const LIMITS = { class: 9, bytes: 144, flags: 16 };
/** `KILL_ON_JOB_CLOSE`, and `DIE_ON_UNHANDLED_EXCEPTION`: no dialog waits for a user. */
const FLAGS = 0x2000 | 0x400;
/** `PROCESS_TERMINATE`, `PROCESS_SET_QUOTA` and `PROCESS_QUERY_LIMITED_INFORMATION`. */
const ACCESS = 0x1 | 0x100 | 0x1000;
/** The longest path of the folder of Windows, in UTF-16 units. */
const LONGEST = 260;

const KERNEL = {
  CreateJobObjectW: { parameters: ["pointer", "pointer"], result: "pointer" },
  SetInformationJobObject: { parameters: ["pointer", "i32", "buffer", "u32"], result: "i32" },
  AssignProcessToJobObject: { parameters: ["pointer", "pointer"], result: "i32" },
  TerminateJobObject: { parameters: ["pointer", "u32"], result: "i32" },
  IsProcessInJob: { parameters: ["pointer", "pointer", "buffer"], result: "i32" },
  OpenProcess: { parameters: ["u32", "i32", "u32"], result: "pointer" },
  CloseHandle: { parameters: ["pointer"], result: "i32" },
  GetSystemWindowsDirectoryW: { parameters: ["buffer", "u32"], result: "u32" },
} as const;

type Handle = Deno.PointerObject;
type KernelSymbols = Deno.DynamicLibrary<typeof KERNEL>["symbols"];

/** A command, and the environment that it is started with. */
type WindowsCommand = StartedCommand & Pick<Program, "env">;

/** The processes that PML started on Windows. */
export class WindowsProcesses {
  readonly #start: Start;
  /** Starts programs whose output is read. */
  readonly threads: PipeThreads;
  readonly #kernel: KernelSymbols | undefined = openKernel();
  readonly #folder: string = folderOf(this.#kernel);
  readonly #jobs = new Map<number, Handle>();
  /** The ids of processes without a job. */
  readonly #loose = new Set<number>();

  /** Creates an instance with the function that starts a program. */
  constructor(start: Start) {
    this.#start = start;
    this.threads = new PipeThreads(start);
  }

  /** Whether PML may call the system, which jobs require. */
  get hasJobs(): boolean {
    return this.#kernel !== undefined;
  }

  /**
   * Returns what to start for a program. Programs need `SYSTEMROOT` to find the libraries of the
   * system. Throws `UPSTREAM_DOWN` if `cmd.exe` would change an argument of a batch file.
   */
  commandOf(program: Pick<Program, "file" | "args" | "env">): WindowsCommand {
    const env = { SYSTEMROOT: this.#folder, ...program.env };
    try {
      return { ...startedCommand(program, this.#folder), env };
    } catch (cause) {
      const message = `Cannot run ${quoted(program.file, 300)}: ${(cause as TypeError).message}`;
      throw new PmlError("UPSTREAM_DOWN", message, {
        hint: "Use the program that this batch file starts as the command",
        cause,
      });
    }
  }

  /**
   * Puts a process into a job, with all processes that it starts afterwards. `within` is the id of
   * the process whose job must contain it; a process that is not in this job is ignored.
   */
  add(pid: number, within?: number): void {
    if (!this.#isAdded(pid, within) && within === undefined) this.#loose.add(pid);
  }

  /** Ends a process and all processes that it started. */
  end(pid: number): void {
    if (this.#loose.delete(pid)) return this.#killTree(pid);
    const job = this.#jobs.get(pid) ?? null;
    if (job === null) return;
    this.#jobs.delete(pid);
    this.#kernel?.TerminateJobObject(job, 1);
    this.#kernel?.CloseHandle(job);
  }

  /** Ends the processes that remain in the job of a process that has ended. */
  endRest(pid: number): void {
    // The system may soon reuse its id.
    this.#loose.delete(pid);
    this.end(pid);
  }

  #isAdded(pid: number, within: number | undefined): boolean {
    const kernel = this.#kernel;
    const running = kernel?.OpenProcess(ACCESS, 0, pid) ?? null;
    if (kernel === undefined || running === null) return false;
    const job = newJob(kernel);
    const isAdded = job !== null && this.#isIn(running, within) &&
      kernel.AssignProcessToJobObject(job, running) !== 0;
    kernel.CloseHandle(running);
    if (isAdded) this.#jobs.set(pid, job);
    else kernel.CloseHandle(job);
    return isAdded;
  }

  #isIn(running: Handle, within: number | undefined): boolean {
    if (within === undefined) return true;
    const job = this.#jobs.get(within) ?? null;
    const answer = new Uint8Array(4);
    return job !== null && this.#kernel?.IsProcessInJob(running, job, answer) !== 0 &&
      answer.some((byte) => byte !== 0);
  }

  #killTree(pid: number): void {
    const [stdin, stdout, stderr] = ["null", "null", "null"] as const;
    const args = ["/T", "/F", "/PID", `${pid}`];
    const options = { args, stdin, stdout, stderr, detached: true };
    this.#start(`${this.#folder}\\System32\\taskkill.exe`, options).unref();
  }
}

function openKernel(): KernelSymbols | undefined {
  // Without the permission, `Deno.dlopen` would prompt on a terminal.
  if (Deno.permissions.querySync({ name: "ffi" }).state !== "granted") return undefined;
  return Deno.dlopen("kernel32.dll", KERNEL).symbols;
}

/** Returns the folder of Windows from the system, because a variable could be wrong. */
function folderOf(kernel: KernelSymbols | undefined): string {
  const text = new Uint16Array(LONGEST);
  const length = kernel?.GetSystemWindowsDirectoryW(text, LONGEST) ?? 0;
  return length > 0 && length < LONGEST
    ? String.fromCharCode(...text.subarray(0, length))
    : "C:\\Windows";
}

function newJob(kernel: KernelSymbols): Handle | null {
  const job = kernel.CreateJobObjectW(null, null);
  const limits = new Uint8Array(LIMITS.bytes);
  new DataView(limits.buffer).setUint32(LIMITS.flags, FLAGS, true);
  if (job === null) return null;
  if (kernel.SetInformationJobObject(job, LIMITS.class, limits, limits.length) !== 0) return job;
  kernel.CloseHandle(job);
  return null;
}
