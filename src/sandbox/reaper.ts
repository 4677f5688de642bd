/**
 * Kills what PML started if PML itself is killed: a small process that holds the groups and waits
 * for the end of its standard input.
 *
 * @module
 */

import { randomBytes } from "node:crypto";
import type { Groups } from "./_options.ts";
import { type Process, startProcess } from "./process.ts";

/** `+ pid` and `- pid` come in lines; at their end what is left is killed and removed. */
const SCRIPT = `trap "" HUP INT TERM PIPE
groups=" "
while read -r word pid; do
  case $word in
    +) groups="$groups$pid ";;
    -) groups="\${groups%%" $pid "*} \${groups#*" $pid "}";;
  esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
for file in $(grep -ls "PML_RUN=$1" /proc/[0-9]*/environ); do
  pid=\${file#/proc/}
  kill -s KILL "\${pid%/environ}"
done
rm -rf -- "$2$1"*`;

/** The process groups of this PML, and who ends them when it cannot. */
export class Reaper implements Groups, AsyncDisposable {
  readonly mark: string = randomBytes(12).toString("hex");
  readonly #leftovers: string;
  readonly #groups = new Set<number>();
  #process: Process | undefined;
  #stdin: WritableStreamDefaultWriter<Uint8Array> | undefined;

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

  /** Lets go of a group that is over. */
  async remove(pid: number): Promise<void> {
    if (this.#groups.delete(pid)) await this.#tell(`- ${pid}`);
  }

  /** Ends the process; what it still holds ends with it. */
  async [Symbol.asyncDispose](): Promise<void> {
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
    // Where somebody killed it, the next group starts another.
    running.status.then(() => {
      if (this.#process === running) this.#process = undefined;
    });
    running.unref();
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
