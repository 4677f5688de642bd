/**
 * Ends the container of a server that is started with `docker run`. A container is a child of a
 * daemon, so it does not end when PML ends the process of the command or its process group.
 *
 * @module
 */

import { type PlainCommand, plainCommand, runsContainers } from "../../core/plain_command.ts";
import { settlesWithin } from "../../io/waiting.ts";
import { type Process, startProcess } from "../../sandbox/process.ts";
import type { Program } from "../../sandbox/program.ts";

/** Matches options of the container client that take no value. */
const FLAG_OPTION =
  /=|^-[^-].|^(?:-[Dr]|--(?:debug|tls|tlsverify|remote|syslog|noout|transient-store))$/;
/**
 * How long a server that PML ends waits for the end of its container, in milliseconds. Afterwards
 * the helper process continues alone.
 */
const END_MS = 3_000;
/**
 * The script of the helper process. It waits for the end of its input, which comes when PML ends in
 * any way. Then it removes the container with the label if it was started with `--rm`, and
 * otherwise kills it. The script tries several times, because the container may only be starting,
 * and ends after at most ten seconds.
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

/** A command that runs a container. A label in the command identifies the container later. */
export interface ContainerRun {
  /** All arguments of the command, with the label. */
  readonly args: readonly string[];
  /**
   * The shell and its options, if a shell runs the command; otherwise empty. The helper then uses
   * the same shell, because the shell's profile may set PATH.
   */
  readonly shell: readonly string[];
  /** The program that runs containers, with its options for the address of the daemon. */
  readonly client: readonly string[];
  /** The variables that the command itself sets. */
  readonly env: Readonly<Record<string, string>>;
  readonly label: string;
  /** Whether the command has `--rm`, so that the container is removed when it ends. */
  readonly isRemovedAtEnd: boolean;
}

/** Returns the command with a label; undefined if it is not `docker run` or a similar command. */
export function containerRun({ file, args }: Pick<Program, "file" | "args">):
  | ContainerRun
  | undefined {
  const plain = plainCommand({ command: file, args });
  if (!runsContainers(plain)) return undefined;
  const words = plain.args;
  let next = 0;
  while (words[next]?.startsWith("-")) next += FLAG_OPTION.test(words[next] ?? "") ? 1 : 2;
  const client = [plain.command, ...words.slice(0, next)];
  if (words[next] === "container") next++;
  if (words[next++] !== "run") return undefined;
  const label = `pml=${crypto.randomUUID()}`;
  const [before, runArgs] = [words.slice(0, next), words.slice(next)];
  const labelledCommand = { ...plain, args: [...before, "--label", label, ...runArgs] };
  const labelled = withLabel({ file, args }, { command: labelledCommand, label });
  const isRemovedAtEnd = runArgs.some((arg) => /^--rm(?:=true)?$/.test(arg));
  return labelled && { ...labelled, client, env: plain.env, label, isRemovedAtEnd };
}

/**
 * Adds the label after the word `run` of a command that a shell may run. The arguments can contain
 * several words `run`: the right one is the word with which the result is parsed as `command`.
 * Returns undefined if there is none.
 */
function withLabel(
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
 * A helper process that ends the container of a server when the server or PML has ended.
 */
export class ContainerEnd {
  readonly #process: Process | undefined;

  /** Starts the process, with the folder and the environment of the program. */
  constructor({ cwd, env }: Program, run: ContainerRun) {
    const { shell, client, label, isRemovedAtEnd } = run;
    const how = isRemovedAtEnd ? ["-aq", "rm -f"] : ["-q", "kill"];
    const scriptArgs = ["-c", SCRIPT, "pml-container", label, ...how, ...client];
    const shellArgs = shell.length === 0 ? ["/bin/sh"] : [...shell, 'exec /bin/sh "$@"', "sh"];
    const [file = "", ...args] = [...shellArgs, ...scriptArgs];
    // The reaper (`sandbox/reaper.ts`) kills all processes that have the variable PML_RUN.
    const { PML_RUN: _, ...helperEnv } = { ...env, ...run.env };
    try {
      this.#process = startProcess({ file, args, cwd, env: helperEnv }, { hasOutputs: false });
      this.#process.unref();
    } catch {
      // Without a shell there is no helper, and the container ends only when its input ends.
    }
  }

  /**
   * Ends the container. With `hasEnded`, the program, and so the container, has ended by itself:
   * the helper then tries only once.
   */
  async end({ hasEnded }: { readonly hasEnded: boolean }): Promise<void> {
    const { stdin, status } = this.#process ?? {};
    if (stdin === undefined) return;
    this.#process?.ref();
    const writer = stdin.getWriter();
    // Another program may have killed the process.
    if (hasEnded) await writer.write(new TextEncoder().encode("over\n")).catch(() => {});
    await writer.close().catch(() => {});
    if (!await settlesWithin(status ?? Promise.resolve(), END_MS)) this.#process?.unref();
  }
}
