/**
 * Opens PML for one command, shows the result of the command, and closes PML in any case.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { type Environment, readEnvironment } from "../config/env.ts";
import type { JsonObject } from "../core/json.ts";
import { unlessAborted } from "../io/waiting.ts";
import { misnamed } from "./_failure.ts";
import { Signals } from "./_signals.ts";
import { isTerminal } from "./_terminal.ts";
import { endInput } from "./_terminal_input.ts";
import { unmetRules } from "./_unmet_rules.ts";
import { paintFailure } from "./_paint.ts";
import { commandProcess, logWriter } from "./command_process.ts";
import { fitted, type Paint, print, printJson, tell, tellProgress, writeLog } from "./out.ts";

/**
 * Logs only warnings and errors on a terminal, unless the user asks for more: commands report their
 * steps there themselves.
 */
function quietOnTerminal(environment: Environment): Environment {
  const isTold = environment.get("PML_LOG_LEVEL") !== undefined;
  return isTold || !isTerminal() ? environment : { ...environment, logLevel: "warn" };
}

/** How often a terminal shows the servers that a command waits for, in milliseconds. */
const TICK_MS = 1_000;

/** The words after the command's name, and the options. */
export interface Typed {
  readonly words: readonly string[];
  readonly json?: boolean;
  readonly yes?: boolean;
  readonly args?: string;
  readonly save?: string;
  readonly server?: string;
  readonly limit?: string;
  readonly refresh?: boolean;
  readonly check?: boolean;
  readonly types?: boolean;
  readonly workspace?: boolean;
  readonly remove?: boolean;
  readonly move?: boolean;
  readonly dryRun?: boolean;
  readonly undo?: boolean;
  readonly replace?: boolean;
  readonly client?: string | boolean;
  readonly user?: boolean;
  readonly askOnce?: boolean;
  readonly watch?: boolean;
  readonly preset?: string;
  readonly wizard?: boolean;
  readonly host?: string;
  readonly port?: string;
  /** The file of the TLS key of `pml serve`; whether `pml init` keeps a key. */
  readonly key?: string | boolean;
  readonly cert?: string;
  readonly tokenEnv?: string;
  readonly allowOrigin?: readonly string[];
  readonly allowHost?: readonly string[];
  readonly behindProxy?: boolean;
  readonly http?: boolean;
  readonly url?: string;
  readonly stdin?: boolean;
  readonly header?: readonly string[];
  readonly env?: readonly string[];
  readonly from?: string;
  readonly code?: string;
  readonly plan?: string;
  readonly parameter?: readonly string[];
  readonly description?: string;
  readonly browser?: boolean;
  readonly scope?: string;
  readonly all?: boolean;
  readonly tool?: string;
  readonly kind?: string;
  readonly since?: string;
  readonly failed?: boolean;
  readonly checkpoint?: string;
  readonly follow?: boolean;
  readonly list?: boolean;
  readonly revoke?: boolean;
  readonly offlineReady?: boolean;
}

/** The context of a command while PML is open. */
export interface CommandContext {
  readonly app: App;
  /** Aborts when the user stops the command. */
  readonly signal: AbortSignal;
}

/** The output of a command. */
export interface Shown {
  /** Printed with `--json`, and to stdout if there is no `text`; undefined if all was shown. */
  readonly value: unknown;
  /** Printed to stdout without `--json`. */
  readonly text?: string;
  /** Adds colours and signs to the text on a terminal; by default its lines are broken there. */
  readonly paint?: Paint;
  /** Printed to stderr without `--json`. */
  readonly note?: string;
  /** The exit code; 0 by default. */
  readonly code?: number;
}

/** Returns the output of a command that the user did not confirm. */
export function unchanged(value: unknown = {}): Shown {
  return { value, text: "Nothing was changed", code: 1 };
}

/**
 * Returns a function that runs a command with PML open and returns the exit code. A signal that ended
 * the command has its own exit code.
 */
export function inContext(
  command: (inContext: CommandContext, typed: Typed) => Promise<Shown>,
  { broken = false, tellsTrust = false, marksWorkspace = false }: {
    /** Whether the command also runs with a broken configuration. */
    readonly broken?: boolean;
    /** Whether the command itself reports untrusted files. */
    readonly tellsTrust?: boolean;
    /** Whether the command makes the current folder a workspace. */
    readonly marksWorkspace?: boolean;
  } = {},
): (typed: Typed) => Promise<number> {
  return async (typed) => {
    using signals = new Signals();
    const { cwd, variables } = commandProcess();
    const { openApp } = await import("../app/app.ts");
    const environment = quietOnTerminal(readEnvironment(variables, cwd));
    const write = logWriter() ?? writeLog;
    await using app = await openApp({ cwd, environment, write });
    try {
      if (!broken) checkConfig(app, { tellsTrust, marksWorkspace });
      // A signal ends the command at once. The app then ends the processes that it started.
      const { signal } = signals;
      const result = await unlessAborted(command({ app, signal }, typed), signal);
      show(result, typed);
      return signals.exitCode ?? result.code ?? 0;
    } catch (error) {
      if (signals.exitCode === undefined) throw error;
      return signals.exitCode;
    } finally {
      endInput();
    }
  };
}

/** Records an action of the user in the journal. */
export async function recordAction(
  { app }: Pick<CommandContext, "app">,
  event: string,
  about: JsonObject,
): Promise<void> {
  (await app.callPath()).record(event, { actor: "local", about });
}

/**
 * Asks servers for their tools: all of them, or the one that is named. For a named server it waits
 * until the server answers, also while it is being installed, and throws if it fails.
 */
export async function prepare(
  { app, signal }: CommandContext,
  server: string | undefined,
  { isWhole = false }: { readonly isWhole?: boolean | undefined } = {},
): Promise<void> {
  // A user sees the installation and waits for it; a script gets the command that waits.
  if (server === undefined) {
    return await askForTools({ app, signal }, { isWhole: isWhole || isTerminal() });
  }
  const { servers } = app;
  const states = servers.states();
  const state = states.find(({ name }) => name === server);
  if (state === undefined) {
    const names = states.map(({ name }) => name);
    throw misnamed("find the server", server, {
      why: `it is not among ${names.join(", ")}`,
      known: names,
      otherwise: "See all with `pml tools`",
    });
  }
  if (state.state === "blocked") return;
  await withProgress(app, [server], () => unlessAborted(servers.lists.load(server), signal));
}

/**
 * Asks servers for their tools, all or one. It never throws if a server fails: the server's state has
 * the reason.
 */
export async function askForTools(
  { app, signal }: Pick<CommandContext, "app" | "signal">,
  options: { readonly only?: string; readonly isWhole?: boolean },
): Promise<void> {
  // When the command ends, it no longer waits for installations.
  const names = app.servers.states().filter(({ state }) => state === "unknown")
    .map(({ name }) => name);
  await withProgress(app, names, async () => {
    await unlessAborted(app.servers.lists.prepare("tools", options), signal);
  });
}

/**
 * Shows on a terminal how the starts of servers come along while something waits for them: their
 * messages, and from the second second on the servers that it waits for.
 */
async function withProgress(
  app: App,
  names: readonly string[],
  work: () => Promise<void>,
): Promise<void> {
  if (!isTerminal() || names.length === 0) return await work();
  const { starts } = (await app.callPath()).machine;
  const since = performance.now();
  let quietSince = since;
  const onProgress = ({ message }: { readonly message?: string }) => {
    if (message === undefined) return;
    quietSince = performance.now();
    tellProgress(message);
  };
  using _ticks = every(TICK_MS, () => {
    const now = performance.now();
    const waiting = app.servers.states()
      .filter(({ name, state }) => state === "unknown" && names.includes(name))
      .map(({ name }) => name);
    if (waiting.length === 0 || now - quietSince < TICK_MS) return;
    tellProgress(`starting ${waiting.join(", ")} … ${Math.round((now - since) / 1_000)} s`);
  });
  await names.reduce(
    (next, name) => () => starts.during(name, { onProgress, work: next }),
    work,
  )();
}

/** Acts again and again until it is disposed. */
function every(ms: number, act: () => void): Disposable {
  const timer = setInterval(act, ms);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

function show({ value, text, paint = fitted, note = "" }: Shown, { json }: Typed): void {
  if (value === undefined) return;
  if (json || text === undefined) return printJson(value);
  if (text !== "") print(text, paint);
  if (note !== "") tell(note);
}

/** Throws if the configuration is broken, and shows its warnings. */
function checkConfig(
  app: App,
  { tellsTrust, marksWorkspace }: {
    readonly tellsTrust: boolean;
    readonly marksWorkspace: boolean;
  },
): void {
  const { problem, warnings, ignored } = app.config();
  if (problem !== undefined) throw problem;
  const { found, warning: unmarked } = app.loaded().workspace;
  const shown = marksWorkspace && found === "cwd"
    ? warnings.filter((warning) => warning !== unmarked)
    : warnings;
  for (const warning of shown) tell(`warning: ${warning}`, { paint: paintFailure });
  for (const { said, isNear } of unmetRules(app)) {
    if (isNear) tell(`warning: ${said}`, { paint: paintFailure });
  }
  if (ignored.length === 0 || tellsTrust) return;
  const label = "warning: the workspace file is not trusted (`pml trust`), so these are ignored";
  tell(`${label}: ${ignored.join("; ")}`, { paint: paintFailure });
}
