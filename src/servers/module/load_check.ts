/**
 * Loads a module in a child without grants, and finds out why it does not load.
 *
 * @module
 */

import { asPmlError, type TextPlace } from "../../core/errors.ts";
import { visible } from "../../core/json.ts";
import { NO_PERMISSIONS } from "../../protocol/tool.ts";
import type { Inspection } from "./loader.ts";
import { Sandbox, type SandboxLimits } from "../../sandbox/sandbox.ts";

/** The options of loading. */
export interface LoadOptions {
  /** The PML home, where the child has its private folder. */
  readonly home: string;
  readonly workspace: string;
  readonly limits: SandboxLimits;
  readonly signal: AbortSignal;
}

/** The result of loading a module. */
export interface LoadResult extends TextPlace {
  /** The metadata of the module, if it loaded. */
  readonly inspection?: Inspection;
  /** Whether the module printed something while it loaded. */
  readonly printed: boolean;
  /** Whether the module did not load because of its syntax. */
  readonly isSyntax?: boolean;
  /** Why the module did not load. */
  readonly why?: string;
}

/** The maximum time for loading, in milliseconds. It is short, because the author waits. */
const LOAD_MS = 10_000;

/** Loads a module. Throws only if no module can run on this machine. */
export async function loadModule(text: string, options: LoadOptions): Promise<LoadResult> {
  const { home, workspace, limits, signal } = options;
  let printed = false;
  try {
    const child = await Sandbox.open({
      ...NO_PERMISSIONS,
      home,
      workspace,
      env: {},
      environment: {},
      protection: { writeProtected: [], readProtected: [], writable: [], paths: [], granted: [] },
      limits: { ...limits, startMs: Math.min(limits.startMs, LOAD_MS) },
    }, { signal });
    await using sandbox = await child.load({
      name: "module",
      code: new TextEncoder().encode(text),
      onLog: () => printed = true,
      signal,
    });
    return { inspection: { meta: sandbox.meta(), exports: sandbox.exports() }, printed };
  } catch (error) {
    const { message } = asPmlError(error);
    // If no module can run on this machine, the cause is not in this module.
    if (signal.aborted || message.startsWith("Cannot run modules: ")) throw error;
    return { ...reasonOf(message), printed };
  }
}

/**
 * Finds in the error of the child why a module did not load. For a syntax error, the error contains
 * the position.
 */
function reasonOf(message: string): Omit<LoadResult, "printed"> {
  const [, line, column] = /(?:"module|blob:null\/[\w-]+):(\d+):(\d+)/.exec(message) ?? [];
  const [first = ""] = message.replace(
    /^Cannot (?:load the module "module[:\d]*"|finish the call: the sandbox of "module" was stopped): /,
    "",
  ).split("\n");
  const reason = first.replace(/^(?:TypeError: )?(?:SyntaxError|syntax error): /, "");
  return {
    isSyntax: reason !== first,
    why: visible(reason.replace(/ at blob:.*$/, ""), 300),
    ...line !== undefined && { line: Number(line), column: Number(column) },
  };
}
