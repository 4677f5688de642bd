/**
 * Kills what PML started if PML itself is killed: a small process that holds the groups and waits
 * for the end of its standard input.
 *
 * @module
 */

import { randomBytes } from "node:crypto";
import { clientProcess } from "./_client.ts";
import type { Groups } from "./_options.ts";
import { type Process, startProcess } from "./process.ts";

/** How often PML gives a sign of life, and how often that is looked for. */
const BEAT_MS = 5_000;
/**
 * `+ pid` and `- pid` come in lines; at their end what is left is killed and removed. After
 * `client`, with a process and when it started, PML is killed where no `beat` came between three
 * ticks and that process is gone. A keeper that is told to end, also one that was stopped, ends what
 * it keeps; what it leaves in half a second is killed. At last goes its own group, with what waits for
 * the next tick.
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

/** The process groups of this PML, and who ends them when it cannot. */
export class Reaper implements Groups, AsyncDisposable {
  readonly mark: string = randomBytes(12).toString("hex");
  readonly #leftovers: string;
  readonly #groups = new Set<number>();
  #process: Process | undefined;
  #stdin: WritableStreamDefaultWriter<Uint8Array> | undefined;
  #client: string | undefined;
  #beat: ReturnType<typeof setInterval> | undefined;

  /** Takes how the paths begin, before the mark, that are removed with the groups. */
  constructor(leftovers: string) {
    this.#leftovers = leftovers;
  }

  /** Watches a group, from when what it gives resolves; the first one starts the process. */
  async add(pid: number): Promise<void> {
    this.#groups.add(pid);
    // Told once: a second word would keep the number when the group is long over.
    await (this.#process === undefined ? this.#begin() : this.#tell(`+ ${pid}`));
  }

  /** Has PML killed where it gives no sign of life for 10 s and the process of its client is gone. */
  async watch(): Promise<void> {
    this.#client = clientProcess();
    if (this.#client === undefined) return;
    await (this.#process === undefined ? this.#begin() : this.#tell(this.#client));
    let isTold = true;
    this.#beat = setInterval(async () => {
      // A process that was stopped reads none.
      if (!isTold) return;
      isTold = false;
      await (this.#process === undefined ? this.#begin() : this.#tell("beat"));
      isTold = true;
    }, BEAT_MS);
    Deno.unrefTimer(Number(this.#beat));
  }

  /** Lets go of a group that is over. */
  async remove(pid: number): Promise<void> {
    if (this.#groups.delete(pid)) await this.#tell(`- ${pid}`);
  }

  /** Ends the process; what it still holds ends with it. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#beat);
    const running = this.#process;
    this.#process = undefined;
    running?.ref();
    await this.#stdin?.close().catch(() => {}); // it is gone already
    await running?.status;
  }

  async #begin(): Promise<void> {
    const running = this.#start();
    if (running === undefined) return;
    this.#process = running;
    this.#stdin = running.stdin.getWriter();
    // Where somebody killed it, the next group or beat starts another.
    running.status.then(() => {
      if (this.#process === running) this.#process = undefined;
    });
    running.unref();
    if (this.#client !== undefined) void this.#tell(this.#client);
    await Promise.all([...this.#groups].map((pid) => this.#tell(`+ ${pid}`)));
  }

  #start(): Process | undefined {
    try {
      return startProcess({
        file: "/bin/sh",
        args: ["-c", SCRIPT, "pml-reaper", this.mark, this.#leftovers],
        cwd: "/",
        env: { PATH: "/usr/bin:/bin" },
      }, { heard: false });
    } catch {
      // Without a shell, as the doctor tells, only the end of their standard input ends children.
      return undefined;
    }
  }

  async #tell(line: string): Promise<void> {
    // A process that somebody killed is told by its end.
    await this.#stdin?.write(new TextEncoder().encode(`${line}\n`)).catch(() => {});
  }
}
