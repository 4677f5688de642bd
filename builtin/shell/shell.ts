/**
 * The built-in module `shell`. It runs programs in the workspace.
 *
 * @module
 */

import type { ExecResult, Host } from "../../src/sandbox/host.ts";

/** The arguments that the schema allows. */
interface ExecArgs {
  readonly command: string;
  readonly args?: readonly string[];
  readonly cwd?: string;
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeout_ms?: number;
  readonly max_bytes?: number;
}

/** Runs a program to its end. While it runs, its last line is reported as progress. */
export async function exec(asked: ExecArgs, host: Host) {
  const { command, args = [], timeout_ms, max_bytes = 100_000, ...rest } = asked;
  const begun = performance.now();
  let told = 0;
  const ran = await host.exec(command, args, {
    ...rest,
    maxBytes: max_bytes,
    ...(timeout_ms === undefined ? {} : { timeoutMs: timeout_ms }),
    onOutput: ({ text }) => host.progress({ progress: ++told, message: lastLine(text) }),
  });
  const structuredContent = {
    code: ran.code,
    signal: ran.signal,
    stdout: ran.stdout,
    stderr: ran.stderr,
    stdout_omitted: ran.omitted.stdout,
    stderr_omitted: ran.omitted.stderr,
    timed_out: ran.timedOut,
    duration_ms: Math.round(performance.now() - begun),
  };
  const content = [{ type: "text", text: textOf(ran) }];
  return { content, structuredContent, isError: ran.timedOut };
}

function lastLine(text: string): string {
  return text.trimEnd().split(/[\r\n]/).at(-1)?.slice(-200) ?? "";
}

/** Returns both outputs and how the program ended. A plain success is not mentioned. */
function textOf({ code, signal, stdout, stderr, timedOut }: ExecResult): string {
  const why = timedOut ? "it took too long and was killed" : signal ?? `exit code ${code}`;
  const parts = [stdout, stderr && `stderr:\n${stderr}`, code === 0 ? "" : `ended with ${why}`];
  return parts.filter((part) => part !== "").join("\n") || "done, without output";
}
