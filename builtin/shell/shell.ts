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
export async function exec(request: ExecArgs, host: Host) {
  const { command, args = [], timeout_ms, max_bytes = 100_000, ...rest } = request;
  const startedAt = performance.now();
  let lineCount = 0;
  const result = await host.exec(command, args, {
    ...rest,
    maxBytes: max_bytes,
    ...(timeout_ms === undefined ? {} : { timeoutMs: timeout_ms }),
    onOutput: ({ text }) => host.progress({ progress: ++lineCount, message: lastLine(text) }),
  });
  const structuredContent = {
    code: result.code,
    signal: result.signal,
    stdout: result.stdout,
    stderr: result.stderr,
    stdout_omitted: result.omitted.stdout,
    stderr_omitted: result.omitted.stderr,
    timed_out: result.timedOut,
    duration_ms: Math.round(performance.now() - startedAt),
  };
  const content = [{ type: "text", text: textOf(result) }];
  return { content, structuredContent, isError: result.timedOut };
}

function lastLine(text: string): string {
  return text.trimEnd().split(/[\r\n]/).at(-1)?.slice(-200) ?? "";
}

/** Returns both outputs, and how the program ended unless it ended with success. */
function textOf({ code, signal, stdout, stderr, timedOut }: ExecResult): string {
  const why = timedOut ? "it took too long and was killed" : signal ?? `exit code ${code}`;
  const parts = [stdout, stderr && `stderr:\n${stderr}`, code === 0 ? "" : `ended with ${why}`];
  return parts.filter((part) => part !== "").join("\n") || "done, without output";
}
