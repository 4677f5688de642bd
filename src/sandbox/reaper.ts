/**
 * Kills the processes of PML if PML itself is killed. A small process records their groups and
 * waits for the end of its standard input.
 *
 * @module
 */

import { randomBytes } from "node:crypto";
import type { Groups } from "./_options.ts";
import { endsWithPml, type Process, startProcess } from "./process.ts";

/** How often PML sends a sign of life, and how often it is checked. */
const BEAT_MS = 5_000;
/**
 * The script of the reaper. It reads lines: `+ pid` adds a group, `- pid` removes one. At the end
 * of its input it kills the groups that are left and removes their folders. `client`, with a
 * process id and its start time, names the client: if no `beat` comes within three ticks and the
 * client has ended, it kills PML. Each keeper first gets SIGTERM and SIGCONT, so that it ends its
 * processes; after 0.5 s the rest is killed. Finally it kills its own group, which includes the
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

/** Owner of the process groups, which are opened when the first process starts. */
export interface GroupsOpener {
  /** Returns the process groups. Their processes end with PML, also if PML is killed. */
  groups(): Promise<Pick<Reaper, "mark" | "add" | "remove">>;
}

/** The process groups of this PML, and the process that kills them if PML cannot. */
export class Reaper implements Groups, AsyncDisposable {
  readonly mark: string = randomBytes(12).toString("hex");
  readonly #leftovers: string;
  readonly #groups = new Set<number>();
  #process: Process | undefined;
  #stdin: WritableStreamDefaultWriter<Uint8Array> | undefined;
  #client: string | undefined;
  #beat: ReturnType<typeof setInterval> | undefined;

  /** Creates an instance. The paths that begin with `leftovers` and the mark are removed. */
  constructor(leftovers: string) {
    this.#leftovers = leftovers;
  }

  /** Adds a group and resolves when it is recorded. The first group starts the process. */
  async add(pid: number): Promise<void> {
    this.#groups.add(pid);
    // Sent only once: a second `+` would keep the process id after the group has ended.
    await (this.#process === undefined ? this.#begin() : this.#tell(`+ ${pid}`));
  }

  /**
   * Makes the process kill PML if PML sends no sign of life for 10 s and the client's process has
   * ended.
   */
  async watch(): Promise<void> {
    this.#client = clientProcess();
    if (this.#client === undefined) return;
    await (this.#process === undefined ? this.#begin() : this.#tell(this.#client));
    let isTold = true;
    this.#beat = setInterval(async () => {
      // A stopped process reads nothing, so only one beat waits at a time.
      if (!isTold) return;
      isTold = false;
      await (this.#process === undefined ? this.#begin() : this.#tell("beat"));
      isTold = true;
    }, BEAT_MS);
    Deno.unrefTimer(Number(this.#beat));
  }

  /** Removes a group that has ended. */
  async remove(pid: number): Promise<void> {
    if (this.#groups.delete(pid)) await this.#tell(`- ${pid}`);
  }

  /** Ends the process and kills the groups that are still recorded. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#beat);
    const running = this.#process;
    this.#process = undefined;
    running?.ref();
    await this.#stdin?.close().catch(() => {}); // it has ended already
    await running?.status;
  }

  async #begin(): Promise<void> {
    const running = this.#start();
    if (running === undefined) return;
    this.#process = running;
    this.#stdin = running.stdin.getWriter();
    // If the process is killed from outside, the next group or beat starts another one.
    running.status.then(() => {
      if (this.#process === running) this.#process = undefined;
    });
    running.unref();
    if (this.#client !== undefined) void this.#tell(this.#client);
    await Promise.all([...this.#groups].map((pid) => this.#tell(`+ ${pid}`)));
  }

  #start(): Process | undefined {
    if (endsWithPml()) return undefined;
    try {
      return startProcess({
        file: "/bin/sh",
        args: ["-c", SCRIPT, "pml-reaper", this.mark, this.#leftovers],
        cwd: "/",
        env: { PATH: "/usr/bin:/bin" },
      }, { heard: false });
    } catch {
      // Without a shell, children end only at the end of their standard input. `pml doctor` reports
      // that.
      return undefined;
    }
  }

  async #tell(line: string): Promise<void> {
    // A write to a killed process fails; the handler of its end resets the state.
    await this.#stdin?.write(new TextEncoder().encode(`${line}\n`)).catch(() => {});
  }
}

/**
 * Returns `client`, its process id and its start time. Returns undefined if that is unknown or the
 * client has ended.
 */
function clientProcess(): string | undefined {
  try {
    const input = inputOf(Deno.pid);
    let pid = Deno.ppid;
    // A process that inherits and passes on this input, such as npx or sh, is not the client.
    while (pid > 1 && inputOf(pid) === input) pid = Number(statOf(pid)[1]);
    return pid > 1 ? `client ${pid} ${statOf(pid)[19]}` : undefined;
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
