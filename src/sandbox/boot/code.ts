/**
 * The module that a child loads to run code that calls tools. The code runs in the same thread, so
 * PML does not trust its messages.
 *
 * @module
 */

import { CodeError, type CodePosition, compileCode } from "./code_compile.ts";
import { CodeConsole, consoleText } from "./code_console.ts";
import { plainText, type RoundedNumbers, roundedNumbersIn } from "./code_plain.ts";

/** The code with its arguments and limits. */
export interface CodeStart {
  readonly code: string;
  /** The value of the global `args`. */
  readonly args: unknown;
  readonly consoleBytes: number;
}

/** The outcome of the code. `open` is the number of tool calls that had no answer at its end. */
export type CodeEnd =
  | { readonly kind: "value"; readonly value: unknown; readonly open: number }
  | {
    readonly kind: "thrown" | "syntax" | "output";
    readonly name: string;
    readonly message: string;
    readonly code?: string;
    readonly hint?: string;
    readonly tool?: string;
    readonly place?: CodePosition;
    readonly open: number;
  };

/** A failed tool call. */
interface ToolFailure {
  readonly message: string;
  readonly code?: string;
  readonly hint?: string;
  /** The result of the tool, if it ran. */
  readonly result?: unknown;
}

/** The answer of PML to a tool call. */
type ToolAnswer = { readonly output: unknown } | { readonly error: ToolFailure };

type Request = (name: string, args: unknown) => Promise<unknown>;
type ReportProgress = (progress: object) => void;

/** The error of a tool call that failed, or that PML did not run. */
class ToolError extends Error {
  override readonly name = "ToolError";
  constructor(tool: string, failure?: ToolFailure) {
    super(failure?.message);
    Object.assign(this, { tool }, failure);
  }
}

/** Prepares a child for its code by loading the slow part, which removes types. */
export async function warm(): Promise<void> {
  const code = "const a: number = 1;\na";
  await run({ code, args: {}, consoleBytes: 0 }, { progress: () => {} }, () => Promise.reject());
}

/** Runs code and returns its outcome. */
export async function run(
  { code, args, consoleBytes }: CodeStart,
  host: { readonly progress: ReportProgress },
  request: Request,
): Promise<CodeEnd> {
  const lines = new CodeConsole(
    consoleBytes,
    (entries) => void request("log", entries).catch(() => {}),
  );
  const calls = new CodeCalls(request, roundedNumbersIn(code));
  define({ ...globals(calls, host.progress), console: lines.console, args });
  const errors = watch(lines);
  let place: Parameters<typeof failure>[1] = () => undefined;
  try {
    const { run: begin, placeOf } = await compileCode(code);
    place = placeOf;
    const value = await Promise.race([begin(), errors.promise]);
    errors.end();
    lines.end();
    const plain = plainText(value);
    const open = calls.open;
    if (plain.why !== undefined) {
      return { kind: "output", name: "Error", message: plain.why, open };
    }
    return { kind: "value", value: plain.value, open };
  } catch (error) {
    errors.end();
    lines.end();
    return { ...failure(error, place), open: calls.open };
  }
}

/** The tool calls of the code. */
class CodeCalls {
  readonly #request: Request;
  readonly #rounded: RoundedNumbers;
  /** The number of calls without an answer. */
  open = 0;

  constructor(request: Request, rounded: RoundedNumbers) {
    this.#request = request;
    this.#rounded = rounded;
  }

  async call(tool: string, args: unknown = {}): Promise<unknown> {
    const plain = plainText(args, this.#rounded);
    if (plain.why !== undefined) {
      const message = `Cannot call "${tool}": its arguments are not plain JSON: ${plain.why}`;
      throw new ToolError(tool, { message, code: "BAD_ARGUMENTS" });
    }
    this.open++;
    // The error is created here, so that its stack contains the line of the code.
    const failed = new ToolError(tool);
    try {
      const answer = await this.#request("call", { tool, arguments: plain.value }) as ToolAnswer;
      if ("output" in answer) return answer.output;
      throw Object.assign(failed, answer.error);
    } finally {
      this.open--;
    }
  }
}

function globals(calls: CodeCalls, tell: ReportProgress): Record<string, unknown> {
  const progress = (progress: number, total?: number, message?: string) =>
    tell({ progress, total, message });
  const noNetwork = () => {
    throw new TypeError(
      "Cannot use fetch: code has no network. Call a tool: mcp.server.tool(args)",
    );
  };
  return { mcp: serversOf(calls), ToolError, progress, fetch: () => Promise.try(noNetwork) };
}

/** Returns `mcp`: `mcp.server.tool(args)`, or `mcp["server:tool"](args)`. */
function serversOf(calls: CodeCalls): object {
  return proxyByName((server) => {
    const whole = (args: unknown) => {
      if (server.includes(":")) return calls.call(server, args);
      throw new TypeError(
        `Cannot call mcp.${server}: it is a server. Call mcp.${server}.tool(args)`,
      );
    };
    return proxyByName((tool) => (args: unknown) => calls.call(`${server}:${tool}`, args), whole);
  }, () => {
    throw new TypeError("Cannot call mcp: call a tool of a server: mcp.server.tool(args)");
  });
}

/** Returns an object with a value for each name, except names that promises and JSON look up. */
function proxyByName(valueOf: (name: string) => unknown, target: object): object {
  return new Proxy(target, {
    get: (_, name) =>
      typeof name === "symbol" || name === "then" || name === "toJSON" ? undefined : valueOf(name),
    set: (_, name) => {
      throw new TypeError(`Cannot set mcp.${String(name)}: it cannot be changed`);
    },
  });
}

function define(values: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(values)) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  }
}

/**
 * Catches errors that the code itself does not catch. The promise rejects with an error of a
 * callback. `end()` writes the errors of promises that nothing awaited to the console.
 */
function watch(lines: CodeConsole): { readonly promise: Promise<never>; end(): void } {
  const { promise, reject } = Promise.withResolvers<never>();
  const unhandled = new Map<Promise<unknown>, unknown>();
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    unhandled.set(event.promise, event.reason);
  });
  // A promise that the code awaits later is no longer an error.
  globalThis.addEventListener("rejectionhandled", (event) => {
    unhandled.delete((event as PromiseRejectionEvent).promise);
  });
  globalThis.addEventListener("error", (event) => {
    event.preventDefault();
    reject(event.error);
  });
  const end = () => {
    for (const reason of unhandled.values()) {
      lines.write("error", ["A promise failed that nothing waited for:", reason]);
    }
  };
  return { promise, end };
}

function failure(error: unknown, placeOf: (error: unknown) => CodePosition | undefined) {
  if (error instanceof CodeError) {
    const { message, place } = error;
    return { kind: "syntax" as const, name: "SyntaxError", message, ...(place && { place }) };
  }
  const place = placeOf(error);
  return { kind: "thrown" as const, ...textsOf(error), ...(place && { place }) };
}

function textsOf(
  error: unknown,
): { name: string; message: string; code?: string; hint?: string; tool?: string } {
  try {
    if (Object(error) !== error) return { name: "Error", message: String(error) };
    const { name = "Error", message = consoleText(error), code, hint, tool } = error as Record<
      string,
      unknown
    >;
    const more = Object.entries({ code, hint, tool }).filter(([, text]) =>
      typeof text === "string"
    );
    return { name: String(name), message: String(message), ...Object.fromEntries(more) };
  } catch {
    return { name: "Error", message: "the code threw something that cannot be read" };
  }
}
