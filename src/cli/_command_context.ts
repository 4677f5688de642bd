/**
 * Opens the house for one command, shows what comes of it, and closes the house whatever that is.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { quoted } from "../core/json.ts";
import { unlessAborted } from "../io/waiting.ts";
import { usage } from "./_failure.ts";
import { Signals } from "./_signals.ts";
import { print, printJson, tell } from "./out.ts";

/** What was typed: the words behind the command's name, and its options. */
export interface Typed {
  readonly words: readonly string[];
  readonly json?: boolean;
  readonly yes?: boolean;
  readonly args?: string;
  readonly server?: string;
  readonly limit?: string;
  readonly refresh?: boolean;
  readonly check?: boolean;
  readonly types?: boolean;
  readonly workspace?: boolean;
  readonly dryRun?: boolean;
  readonly undo?: boolean;
  readonly preset?: string;
  readonly wizard?: boolean;
  readonly host?: string;
  readonly port?: string;
  readonly key?: string;
  readonly url?: string;
  readonly from?: string;
}

/** What a command has while the house is open. */
export interface CommandContext {
  readonly app: App;
  /** Aborts when the person breaks off. */
  readonly signal: AbortSignal;
}

/** What a command has to say. */
export interface Shown {
  /** What `--json` prints, and what stdout gets where there is no text. */
  readonly value: unknown;
  /** What stdout gets without `--json`. */
  readonly text?: string;
  /** What stderr gets without `--json`. */
  readonly note?: string;
  /** The exit code; 0 unless said. */
  readonly code?: number;
}

/** How the house is opened. */
interface VisitOptions {
  /** Whether the command makes sense where the configuration cannot be used. */
  readonly broken?: boolean;
}

/** Makes of a command what runs it in the open house; a signal that ended it gives the exit code. */
export function inContext(
  command: (inContext: CommandContext, typed: Typed) => Promise<Shown>,
  { broken = false }: VisitOptions = {},
): (typed: Typed) => Promise<number> {
  return async (typed) => {
    using signals = new Signals();
    const { openApp } = await import("../app/app.ts");
    await using app = await openApp({ cwd: Deno.cwd() });
    try {
      if (!broken) checkGround(app);
      const shown = await command({ app, signal: signals.signal }, typed);
      show(shown, typed);
      return signals.exitCode ?? shown.code ?? 0;
    } catch (error) {
      if (signals.exitCode === undefined) throw error;
      return signals.exitCode;
    }
  };
}

/**
 * Asks servers for their tools: all, or the one that is named, which may take as long as it takes
 * to install it; throws why that one failed.
 */
export async function prepare(
  { app, signal }: CommandContext,
  server: string | undefined,
  { isWhole = false }: { readonly isWhole?: boolean | undefined } = {},
): Promise<void> {
  if (server === undefined) return await askForTools({ app, signal }, { isWhole });
  const { servers } = app;
  const states = servers.states();
  const known = states.find(({ name }) => name === server);
  if (known === undefined) {
    const names = states.map(({ name }) => name);
    throw usage(
      `Cannot find the server ${quoted(server)}: it is not among ${names.join(", ")}`,
      "See all with `pml tools`",
    );
  }
  if (known.state !== "blocked") await unlessAborted(servers.load(server), signal);
}

/** Asks servers for their tools: all, or one; that one failed is told by its state. */
export async function askForTools(
  { app, signal }: Pick<CommandContext, "app" | "signal">,
  options: { readonly only?: string; readonly isWhole?: boolean },
): Promise<void> {
  // What is being installed is given up with the end of the command.
  await unlessAborted(app.servers.prepare("tools", options), signal);
}

function show({ value, text, note = "" }: Shown, { json }: Typed): void {
  if (json || text === undefined) return printJson(value);
  if (text !== "") print(text);
  if (note !== "") tell(note);
}

/** Throws what is wrong with the configuration, and tells what may surprise. */
function checkGround(app: App): void {
  const { problem, warnings, ignored } = app.config();
  if (problem !== undefined) throw problem;
  for (const warning of warnings) tell(`warning: ${warning}`);
  if (ignored.length === 0) return;
  const said =
    "warning: the workspace file is not trusted (`pml trust`), so this does not count yet";
  tell(`${said}: ${ignored.join("; ")}`);
}
