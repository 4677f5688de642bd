/**
 * Opens the house for one command, and closes it whatever comes of it.
 *
 * @module
 */

import { type App, openApp } from "../app.ts";
import { quoted } from "../core/json.ts";
import { usage } from "./_failure.ts";
import { Signals } from "./_signals.ts";
import { tell } from "./out.ts";

/** What a command has while the house is open. */
export interface Visit {
  readonly app: App;
  /** Aborts when the person breaks off. */
  readonly signal: AbortSignal;
}

/** How the house is opened. */
export interface VisitOptions {
  /** Whether the command makes sense where the configuration cannot be used. */
  readonly broken?: boolean;
  /** Whether the command is about trust itself, and says so in its own words. */
  readonly trusting?: boolean;
}

/** Runs `work` in the open house and gives its exit code, or that of the signal that ended it. */
export async function visit(
  work: (visit: Visit) => Promise<number>,
  options: VisitOptions = {},
): Promise<number> {
  using signals = new Signals();
  await using app = await openApp({ cwd: Deno.cwd() });
  if (options.broken !== true) checkGround(app, options);
  try {
    const code = await work({ app, signal: signals.signal });
    return signals.exitCode ?? code;
  } catch (error) {
    if (signals.exitCode === undefined) throw error;
    return signals.exitCode;
  }
}

/** Throws what is wrong with the configuration, and tells what may surprise. */
function checkGround(app: App, { trusting = false }: VisitOptions): void {
  const { problem, warnings, ignored } = app.config();
  if (problem !== undefined) throw problem;
  for (const warning of warnings) tell(`warning: ${warning}`);
  if (trusting || ignored.length === 0) return;
  const said = "warning: the workspace file is not trusted, so this counts for nothing yet";
  tell(`${said}: ${ignored.join("; ")}\n  Look at it with \`pml trust\``);
}

/** Asks servers for their tools: all, or the one that is named. */
export async function prepare(app: App, server: string | undefined): Promise<void> {
  const names = app.servers.states().map(({ name }) => name);
  if (server !== undefined && !names.includes(server)) {
    throw usage(
      `Cannot find the server ${quoted(server)}: it is not among ${names.join(", ")}`,
      "See all with `pml tools`",
    );
  }
  await app.servers.prepare(server);
}
