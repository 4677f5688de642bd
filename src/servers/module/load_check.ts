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
  /** Whether it printed something while it loaded. */
  readonly printed: boolean;
  /** Whether its syntax is wrong. */
  readonly isSyntax?: boolean;
  /** Why it did not load. */
  readonly why?: string;
}

/** Shorter than usual, because its author waits. */
const LOAD_MS = 10_000;

/** Loads a module. Throws only if no module can run on this machine. */
export async function loadModule(text: string, options: LoadOptions): Promise<LoadResult> {
  const { home, workspace, limits, signal } = options;
  let printed = false;
  try {
    await using sandbox = await Sandbox.start({
      name: "module",
      code: new TextEncoder().encode(text),
      ...NO_PERMISSIONS,
      home,
      workspace,
      signal,
      env: {},
      environment: {},
      protection: { writeProtected: [], readProtected: [], writable: [], paths: [], granted: [] },
      limits: { ...limits, startMs: Math.min(limits.startMs, LOAD_MS) },
      onLog: () => printed = true,
    });
    return { inspection: { meta: sandbox.meta(), exports: sandbox.exports() }, printed };
  } catch (error) {
    const { message } = asPmlError(error);
    // The author of the module cannot change that no module runs here.
    if (signal.aborted || message.startsWith("Cannot run modules: ")) throw error;
    return { ...reasonOf(message), printed };
  }
}

/**
 * Reads why a module did not load from the child's error. For wrong syntax, Deno names the place.
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
