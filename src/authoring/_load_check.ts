/**
 * Loads a module in a child that is granted nothing, and says why it does not load.
 *
 * @module
 */

import { asPmlError } from "../core/errors.ts";
import { visible } from "../core/json.ts";
import { NO_PERMISSIONS } from "../core/tool.ts";
import type { Inspection } from "../modules/loader.ts";
import { Sandbox, type SandboxLimits } from "../sandbox/sandbox.ts";

/** What loading needs from outside. */
export interface LoadOptions {
  /** The PML home, where the child has its private folder. */
  readonly home: string;
  readonly workspace: string;
  readonly limits: SandboxLimits;
  readonly signal: AbortSignal;
}

/** What came of loading a module. */
export interface Loaded {
  /** What it says of itself, where it loaded. */
  readonly inspection?: Inspection;
  /** Whether it wrote something meanwhile. */
  readonly printed: boolean;
  /** Whether it is no TypeScript. */
  readonly isSyntax?: boolean;
  /** Why it did not load. */
  readonly why?: string;
  readonly line?: number | undefined;
}

/** Its author waits. */
const LOAD_MS = 10_000;

/** Loads a module; throws only where no module could be loaded. */
export async function load(text: string, options: LoadOptions): Promise<Loaded> {
  const { home, workspace, limits, signal } = options;
  let printed = false;
  try {
    await using sandbox = await Sandbox.start({
      name: "module",
      code: new TextEncoder().encode(text),
      ...NO_PERMISSIONS,
      ...{ home, workspace, signal, env: {}, environment: {} },
      protection: { writeProtected: [], readProtected: [], paths: [], granted: [] },
      limits: { ...limits, startMs: Math.min(limits.startMs, LOAD_MS) },
      onLog: () => printed = true,
    });
    return { inspection: { meta: sandbox.meta(), exports: sandbox.exports() }, printed };
  } catch (error) {
    const { message } = asPmlError(error);
    // That no module runs here is nothing that its author can mend.
    if (signal.aborted || message.startsWith("Cannot run modules: ")) throw error;
    return { ...reasonOf(message), printed };
  }
}

/** Reads what a child says of a module that did not load; of bad syntax Deno tells the line. */
function reasonOf(message: string): Omit<Loaded, "printed"> {
  const why = message.replace(
    /^Cannot (?:load the module "module"|finish the call: the sandbox of "module" was stopped): /,
    "",
  );
  const [first = ""] = why.split("\n");
  const said = first.replace(/^(?:TypeError: )?SyntaxError: /, "");
  return {
    isSyntax: said !== first,
    why: visible(said.replace(/ at blob:.*$/, ""), 300),
    line: Number(/blob:null\/[\w-]+:(\d+):\d+/.exec(message)?.[1]) || undefined,
  };
}
