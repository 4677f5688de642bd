/**
 * Ends the container of a server that is started with `docker run`. A container is a child of a
 * daemon, so it does not end with the program that started it or with its process group.
 *
 * @module
 */

import { type PlainCommand, plainCommand, runsContainers } from "../../core/plain_command.ts";
import { soon } from "../../io/waiting.ts";
import { type Process, startProcess } from "../../sandbox/process.ts";
import type { Program } from "../../sandbox/program.ts";

/** Options before the command that take no value. */
const ALONE = /=|^-[^-].|^(?:-[Dr]|--(?:debug|tls|tlsverify|remote|syslog|noout|transient-store))$/;
/**
 * How long the end of PML waits for the end of a container. The container's end goes on without
 * PML.
 */
const END_MS = 3_000;
/**
 * Waits for the end of its input, which comes when PML has ended in any way. Then it ends the
 * container that has the label: a container with `--rm` is removed, another is killed. A killed
 * program may just have asked for its container, so the script looks several times. The script ends
 * after ten seconds at most.
 */
const SCRIPT = `trap "" HUP INT TERM PIPE
label=$1 found=$2 ends=$3 tries=5
shift 3
read -r word && tries=1
(command -p sleep 10; kill -s KILL 0) &
while ids=$("$@" ps $found --filter "label=$label"); [ -z "$ids" ] || ! "$@" $ends $ids; do
  tries=$((tries - 1))
  [ "$tries" -gt 0 ] || break
  command -p sleep 0.4
done
kill -s KILL 0`;

/** A command that runs a container, with a label to find the container again. */
export interface ContainerRun {
  /** All of its arguments. */
  readonly args: readonly string[];
  /**
   * The shell and its options if a shell runs the command, because the shell's profile may set
   * PATH.
   */
  readonly shell: readonly string[];
  /** The program that runs containers, and its options that say where the daemon is. */
  readonly client: readonly string[];
  /** The variables that are set within the command. */
  readonly env: Readonly<Record<string, string>>;
  readonly label: string;
  readonly isRemoved: boolean;
}

/** Returns the command with a label, if it is `docker run` or a similar one. */
export function containerRun({ file, args }: Pick<Program, "file" | "args">):
  | ContainerRun
  | undefined {
  const plain = plainCommand({ command: file, args });
  if (!runsContainers(plain)) return undefined;
  const words = plain.args;
  let at = 0;
  while (words[at]?.startsWith("-")) at += ALONE.test(words[at] ?? "") ? 1 : 2;
  const client = [plain.command, ...words.slice(0, at)];
  if (words[at] === "container") at++;
  if (words[at++] !== "run") return undefined;
  const label = `pml=${crypto.randomUUID()}`;
  const own = words.slice(at);
  const labelledCommand = { ...plain, args: [...words.slice(0, at), "--label", label, ...own] };
  const placed = labelled({ file, args }, { command: labelledCommand, label });
  const isRemoved = own.some((arg) => /^--rm(?:=true)?$/.test(arg));
  return placed && { ...placed, client, env: plain.env, label, isRemoved };
}

/** Adds a label after one of the words `run`, so that the command is parsed as `command`. */
function labelled(
  { file, args }: Pick<Program, "file" | "args">,
  { command, label }: { readonly command: PlainCommand; readonly label: string },
): Pick<ContainerRun, "args" | "shell"> | undefined {
  for (const [at, arg] of args.entries()) {
    const [before, behind] = [args.slice(0, at), args.slice(at + 1)];
    for (const { index, 0: word } of arg.matchAll(/\brun\b["']*/g)) {
      const end = index + word.length;
      const line = `${arg.slice(0, end)} --label ${label}${arg.slice(end)}`;
      const placed = arg === "run" ? ["run", "--label", label] : [line];
      const all = [...before, ...placed, ...behind];
      if (JSON.stringify(plainCommand({ command: file, args: all })) === JSON.stringify(command)) {
        return { args: all, shell: arg === "run" ? [] : [file, ...before] };
      }
    }
  }
  return undefined;
}

/**
 * A helper process. It ends the container of a server when the server or PML has ended.
 */
export class ContainerEnd {
  readonly #process: Process | undefined;

  /** Starts the process, with the folder and the environment of the program. */
  constructor({ cwd, env }: Program, run: ContainerRun) {
    const { shell, client, label, isRemoved } = run;
    const how = isRemoved ? ["-aq", "rm -f"] : ["-q", "kill"];
    const end = ["-c", SCRIPT, "pml-container", label, ...how, ...client];
    const through = shell.length === 0 ? ["/bin/sh"] : [...shell, 'exec /bin/sh "$@"', "sh"];
    const [file = "", ...args] = [...through, ...end];
    // With this mark the reaper would treat it as a part of the server and kill it.
    const { PML_RUN: _, ...own } = { ...env, ...run.env };
    try {
      this.#process = startProcess({ file, args, cwd, env: own }, { heard: false });
      this.#process.unref();
    } catch {
      // Without a shell, a container ends only with its input.
    }
  }

  /**
   * Ends the container. `isOver` means that the program has ended by itself, and the container with
   * it.
   */
  async end({ isOver }: { readonly isOver: boolean }): Promise<void> {
    const { stdin, status } = this.#process ?? {};
    if (stdin === undefined) return;
    this.#process?.ref();
    const writer = stdin.getWriter();
    // Another program may have killed the process.
    if (isOver) await writer.write(new TextEncoder().encode("over\n")).catch(() => {});
    await writer.close().catch(() => {});
    if (!await soon(status ?? Promise.resolve(), END_MS)) this.#process?.unref();
  }
}
