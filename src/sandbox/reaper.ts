/**
 * Kills the processes of PML if PML itself is killed. A small process records their groups and
 * waits for the end of its standard input.
 *
 * @module
 */

import { randomHex } from "../core/random.ts";
import type { Groups } from "./_options.ts";
import { type Process, startProcess, systemEndsPrograms } from "./process.ts";

/** The interval in which PML sends a beat, and in which the reaper checks for beats. */
const BEAT_MS = 5_000;
/**
 * The script of the reaper. It reads lines: `+ pid` adds a group, `- pid` removes a group.
 * `client`, with a process id and its start time, names the client: if no `beat` comes for three
 * ticks and the client has ended, the reaper kills PML.
 *
 * At the end of its input, the reaper kills the remaining processes. The leader of each group,
 * which may be a keeper (`_keeper.ts`), first gets SIGTERM and SIGCONT, so that a keeper ends its
 * processes. After 0.5 s the reaper kills all groups, then all processes whose variable `PML_RUN`
 * contains the mark, and removes their folders. Finally it kills its own group, which includes the
 * process that waits for the next tick.
 */
const SCRIPT = `trap "" HUP INT TERM PIPE
groups=" "
missed=0
tick() {
  (sleep ${BEAT_MS / 1_000}; echo tick >"/proc/$$/fd/0") &
}
lives() {
  read -r stat <"/proc/$client/stat" || return 1
  set -- \${stat##*) }
  [ "$1" != Z ] && [ "\${20}" = "$since" ]
}
while read -r word pid start; do
  case $word in
    +) groups="$groups$pid ";;
    -) groups="\${groups%%" $pid "*} \${groups#*" $pid "}";;
    client) client=$pid since=$start; tick;;
    beat) missed=0;;
    tick)
      wait "$!"
      missed=$((missed + 1))
      [ "$missed" -lt 3 ] || lives || kill -s KILL "$PPID"
      tick;;
  esac
done
for group in $groups; do kill -s TERM "$group"; kill -s CONT "$group"; done
[ "$groups" = " " ] || sleep 0.5
for group in $groups; do kill -s KILL -- "-$group"; done
for file in $(grep -ls "PML_RUN=$1" /proc/[0-9]*/environ); do
  pid=\${file#/proc/}
  kill -s KILL "\${pid%/environ}"
done
rm -rf -- "$2$1"*
kill -s KILL 0`;

/** Opens the process groups when the first process starts. */
export interface GroupsOpener {
  /** Returns the process groups. Their processes end with PML, even if PML is killed. */
  groups(): Promise<Pick<Reaper, "mark" | "add" | "remove">>;
}

/** The number and the memory of the processes in all groups. */
export interface GroupUse {
  readonly processes: number;
  /** The resident memory in bytes. Memory that processes share counts for each of them. */
  readonly bytes: number;
}

/** The size of a page of memory. */
const PAGE = 4_096;
/** The indexes of fields in /proc/PID/stat, counted after the name of the process. */
const [PARENT_FIELD, GROUP_FIELD, START_FIELD, PAGES_FIELD] = [1, 2, 19, 21];

/** The process groups of this PML, and the process that kills them if PML cannot. */
export class Reaper implements Groups, AsyncDisposable {
  readonly mark: string;
  readonly #leftovers: string;
  readonly #groups = new Set<number>();
  #process: Process | undefined;
  #stdin: WritableStreamDefaultWriter<Uint8Array> | undefined;
  #client: string | undefined;
  #beatTimer: ReturnType<typeof setInterval> | undefined;

  /**
   * Creates an instance. When the process of the reaper ends, it removes all paths that begin with
   * `leftovers` and the mark.
   */
  constructor(leftovers: string, mark = randomHex(12)) {
    this.#leftovers = leftovers;
    this.mark = mark;
  }

  /** The number of groups. */
  get size(): number {
    return this.#groups.size;
  }

  /** Returns how many processes the groups have, and their memory; undefined without /proc. */
  async usage(): Promise<GroupUse | undefined> {
    if (Deno.build.os !== "linux") return undefined;
    let [processes, bytes] = [0, 0];
    if (this.#groups.size === 0) return { processes, bytes };
    for await (const { name } of Deno.readDir("/proc")) {
      if (!/^\d+$/.test(name)) continue;
      const text = await Deno.readTextFile(`/proc/${name}/stat`).catch(() => ""); // it has ended
      // The name of the program may contain spaces and parentheses.
      const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
      if (!this.#groups.has(Number(fields[GROUP_FIELD]))) continue;
      processes++;
      bytes += Number(fields[PAGES_FIELD] ?? 0) * PAGE;
    }
    return { processes, bytes };
  }

  /** Adds a group and resolves when it is recorded. The first group starts the process. */
  async add(pid: number): Promise<void> {
    this.#groups.add(pid);
    // A group is sent only once, because a second `+` would stay after the group has ended.
    await (this.#process === undefined ? this.#open() : this.#write(`+ ${pid}`));
  }

  /**
   * Makes the reaper kill PML if PML sends no beat for three ticks and the client's process has
   * ended.
   */
  async watch(): Promise<void> {
    this.#client = clientProcess();
    if (this.#client === undefined) return;
    await (this.#process === undefined ? this.#open() : this.#write(this.#client));
    let isWritten = true;
    this.#beatTimer = setInterval(async () => {
      // A stopped reaper reads nothing, so only one beat waits at a time.
      if (!isWritten) return;
      isWritten = false;
      await (this.#process === undefined ? this.#open() : this.#write("beat"));
      isWritten = true;
    }, BEAT_MS);
    Deno.unrefTimer(Number(this.#beatTimer));
  }

  /** Removes a group that has ended. */
  async remove(pid: number): Promise<void> {
    if (this.#groups.delete(pid)) await this.#write(`- ${pid}`);
  }

  /** Ends the process and kills the groups that are still recorded. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#beatTimer);
    const running = this.#process;
    this.#process = undefined;
    running?.ref();
    await this.#stdin?.close().catch(() => {}); // it has ended already
    await running?.status;
  }

  async #open(): Promise<void> {
    const running = this.#start();
    if (running === undefined) return;
    this.#process = running;
    this.#stdin = running.stdin.getWriter();
    // If something else kills the process, the next group or beat starts a new process.
    running.status.then(() => {
      if (this.#process === running) this.#process = undefined;
    });
    running.unref();
    if (this.#client !== undefined) void this.#write(this.#client);
    await Promise.all([...this.#groups].map((pid) => this.#write(`+ ${pid}`)));
  }

  #start(): Process | undefined {
    if (systemEndsPrograms()) return undefined;
    try {
      return startProcess({
        file: "/bin/sh",
        args: ["-c", SCRIPT, "pml-reaper", this.mark, this.#leftovers],
        cwd: "/",
        env: { PATH: "/usr/bin:/bin" },
      }, { hasOutputs: false });
    } catch {
      // Without a shell, children end only when their standard input ends. `pml doctor` reports a
      // missing shell.
      return undefined;
    }
  }

  async #write(line: string): Promise<void> {
    // A write to a killed reaper fails. The handler of its end resets the state.
    await this.#stdin?.write(new TextEncoder().encode(`${line}\n`)).catch(() => {});
  }
}

/**
 * Returns the line `client PID START` for the reaper; undefined if the client is unknown or has
 * ended.
 */
function clientProcess(): string | undefined {
  try {
    const input = inputOf(Deno.pid);
    let pid = Deno.ppid;
    // A process that inherits and passes on this input, such as npx or sh, is not the client.
    while (pid > 1 && inputOf(pid) === input) pid = Number(statOf(pid)[PARENT_FIELD]);
    return pid > 1 ? `client ${pid} ${statOf(pid)[START_FIELD]}` : undefined;
  } catch {
    return undefined; // a system without /proc, or the process has just ended
  }
}

function inputOf(pid: number): string {
  try {
    return Deno.readLinkSync(`/proc/${pid}/fd/0`);
  } catch {
    return ""; // a process of another user, or one without standard input
  }
}

/**
 * Returns the fields after the process name: the state, the parent, and so on. The name itself may
 * contain any character.
 */
function statOf(pid: number): readonly string[] {
  const text = Deno.readTextFileSync(`/proc/${pid}/stat`);
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}
