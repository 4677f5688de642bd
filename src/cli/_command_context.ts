/**
 * Opens PML for one command, shows the result of the command, and closes PML, also after an error.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { type Environment, readEnvironment } from "../config/env.ts";
import type { JsonObject } from "../core/json.ts";
import { asPmlError } from "../core/errors.ts";
import { settlesWithin, unlessAborted } from "../io/waiting.ts";
import { report, unknownNameError } from "./_failure.ts";
import { Signals } from "./_signals.ts";
import { isTerminal } from "./_terminal.ts";
import { endInput } from "./_terminal_input.ts";
import { paintFailure } from "./_paint.ts";
import { commandProcess, logWriter } from "./command_process.ts";
import {
  fitToTerminal,
  type Paint,
  print,
  printJson,
  tell,
  tellProgress,
  writeLog,
} from "./out.ts";

/**
 * Returns the environment with the log level `warn` on a terminal, because commands report their steps
 * there themselves. A level that the user set stays.
 */
function quietOnTerminal(environment: Environment): Environment {
  const isLevelSet = environment.get("PML_LOG_LEVEL") !== undefined;
  return isLevelSet || !isTerminal() ? environment : { ...environment, logLevel: "warn" };
}

/** How long PML waits for a question to end after the user stops the command, in milliseconds. */
const STOP_MS = 200;
/** How often a terminal shows the servers for which a command waits, in milliseconds. */
const TICK_MS = 1_000;

/** The words after the command's name, and the options. */
export interface CommandInput {
  readonly words: readonly string[];
  readonly json?: boolean;
  readonly yes?: boolean;
  readonly args?: string;
  readonly select?: string;
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
  /** For `pml serve`, the file of the TLS key; for `pml init`, whether it asks for a key of the cloud. */
  readonly key?: string | boolean;
  readonly cert?: string;
  readonly tokenEnv?: string;
  /** Whether `pml serve` serves `/metrics`. */
  readonly metrics?: boolean;
  readonly metricsTokenEnv?: string;
  /** Whether `pml metrics` prints the text of Prometheus. */
  readonly prometheus?: boolean;
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
  readonly open?: boolean;
  readonly scope?: string;
  readonly all?: boolean;
  readonly tool?: string;
  readonly kind?: string;
  readonly since?: string;
  readonly failed?: boolean;
  readonly checkpoint?: string;
  readonly follow?: boolean;
  readonly tail?: string;
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
export interface CommandOutput {
  /** Printed as JSON with `--json`, or if there is no `text`; undefined if the command itself printed all. */
  readonly value: unknown;
  /** Printed to stdout without `--json`. */
  readonly text?: string;
  /** Formats the text for a terminal; by default long lines are wrapped. */
  readonly paint?: Paint;
  /** Printed to stderr without `--json`. */
  readonly note?: string;
  /** The exit code; 0 by default. */
  readonly code?: number;
}

/** Returns the output of a command that the user did not confirm. */
export function unchanged(value: unknown = {}): CommandOutput {
  return { value, text: "Nothing was changed", code: 1 };
}

/**
 * Returns a function that opens PML, runs a command and returns the exit code. If a signal ended the
 * command, the exit code is the one of the signal.
 */
export function inContext(
  command: (context: CommandContext, input: CommandInput) => Promise<CommandOutput>,
  {
    runsWhenBroken = false,
    reportsIgnoredVariables = false,
    reportsTrust = false,
    marksWorkspace = false,
  }: {
    /** Whether the command also runs with a broken configuration. */
    readonly runsWhenBroken?: boolean;
    /**
     * Whether the command itself reports ignored variables of the environment, or must not report
     * them. For commands that run with a broken configuration.
     */
    readonly reportsIgnoredVariables?: boolean;
    /** Whether the command itself reports untrusted files. */
    readonly reportsTrust?: boolean;
    /** Whether the command makes the current folder a workspace. */
    readonly marksWorkspace?: boolean;
  } = {},
): (input: CommandInput) => Promise<number> {
  return async (input) => {
    using signals = new Signals();
    const { cwd, variables } = commandProcess();
    const { openApp } = await import("../app/app.ts");
    const environment = quietOnTerminal(readEnvironment(variables, cwd));
    const write = logWriter() ?? writeLog;
    await using app = await openApp({ cwd, environment, write });
    let work: Promise<CommandOutput> | undefined;
    try {
      if (!runsWhenBroken) checkConfig(app, { reportsTrust, marksWorkspace });
      else if (!reportsIgnoredVariables) warnIgnored(app);
      // A signal ends the command at once. The app then ends the processes that it started.
      const { signal } = signals;
      work = command({ app, signal }, input);
      const result = await unlessAborted(work, signal);
      show(result, input);
      return signals.exitCode ?? result.code ?? 0;
    } catch (error) {
      if (signals.exitCode === undefined) throw error;
      if (work !== undefined) await reportStop(work);
      return signals.exitCode;
    } finally {
      endInput();
    }
  };
}

/**
 * Reports that the user stopped a command at a question. A question ends at the signal. This does not
 * wait for a command that is doing something else.
 */
async function reportStop(work: Promise<CommandOutput>): Promise<void> {
  const stopping = work.then(() => undefined, asPmlError);
  if (!await settlesWithin(stopping, STOP_MS)) return;
  const error = await stopping;
  if (error?.code === "CANCELLED") report(error, commandProcess().args);
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
 * Like `askForTools`, but throws if a named server is unknown or fails.
 *
 * A named server: waits until it answers, also during its installation; only a short time if its last
 * start, some minutes ago, took too long.
 *
 * All servers: `waitsForAll` waits for all of them. This is the default on a terminal, where a user
 * sees the installation. Without it, the note of the command names the command that waits.
 */
export async function prepare(
  { app, signal }: CommandContext,
  server: string | undefined,
  { waitsForAll = isTerminal() }: { readonly waitsForAll?: boolean | undefined } = {},
): Promise<void> {
  if (server === undefined) return await askForTools({ app, signal }, { waitsForAll });
  const { servers } = app;
  const states = servers.states();
  const state = states.find(({ name }) => name === server);
  if (state === undefined) {
    const names = states.map(({ name }) => name);
    throw unknownNameError("find the server", server, {
      why: `it is not among ${names.join(", ")}`,
      known: names,
      otherwise: "See all with `pml tools`",
    });
  }
  if (state.state === "blocked") return;
  const late = await app.directory.get(server).lateStartError?.();
  if (late !== undefined) {
    await askForTools({ app, signal }, { only: server });
    if (servers.states().find(({ name }) => name === server)?.state !== "ready") throw late;
  }
  await withProgress(app, [server], () => unlessAborted(servers.lists.load(server), signal));
}

/**
 * Requests the tools of all servers, or of one. Does not throw if a server fails: the state of the
 * server contains the reason.
 */
export async function askForTools(
  { app, signal }: Pick<CommandContext, "app" | "signal">,
  options: { readonly only?: string; readonly waitsForAll?: boolean },
): Promise<void> {
  const { only } = options;
  const names = app.servers.states()
    .filter(({ name, state }) => state === "unknown" && (only === undefined || name === only))
    .map(({ name }) => name);
  await withProgress(app, names, async () => {
    await unlessAborted(app.servers.lists.prepare("tools", options), signal);
  });
}

/**
 * Shows on a terminal the progress of starting servers during `work`: their messages, and after each
 * second without a message the names of the servers that are still starting.
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
  using _ticks = runEvery(TICK_MS, () => {
    const now = performance.now();
    const waiting = app.servers.states()
      .filter(({ name, state }) => state === "unknown" && names.includes(name))
      .map(({ name }) => name);
    if (waiting.length === 0 || now - quietSince < TICK_MS) return;
    tellProgress(waitLine(`starting ${waiting.join(", ")}`, since));
  });
  // `work` runs inside of one progress listener for each server.
  await names.reduce(
    (next, name) => () => starts.runWithProgress(name, { onProgress, work: next }),
    work,
  )();
}

/**
 * Shows the activity of a command on a terminal, each second during `work`, such as
 * "asking the registries … 2 s".
 */
export async function withWaitLine<T>(activity: string, work: () => Promise<T>): Promise<T> {
  if (!isTerminal()) return await work();
  const since = performance.now();
  using _ticks = runEvery(TICK_MS, () => tellProgress(waitLine(activity, since)));
  return await work();
}

function waitLine(activity: string, since: number): string {
  return `${activity} … ${Math.round((performance.now() - since) / 1_000)} s`;
}

/** Runs a function every `ms` milliseconds until the result is disposed. */
function runEvery(ms: number, run: () => void): Disposable {
  const timer = setInterval(run, ms);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

function show(
  { value, text, paint = fitToTerminal, note = "" }: CommandOutput,
  { json }: CommandInput,
): void {
  if (value === undefined) return;
  if (json || text === undefined) return printJson(value);
  if (text !== "") print(text, paint);
  if (note !== "") tell(note);
}

/** Shows a line for each ignored variable, for example `HOME` if it names the workspace. */
export function warnIgnored(app: App): void {
  for (const warning of app.loaded().environment.warnings) {
    tell(`warning: ${warning}`, { paint: paintFailure });
  }
}

/** Throws if the configuration is broken, and shows its warnings. */
function checkConfig(
  app: App,
  { reportsTrust, marksWorkspace }: {
    readonly reportsTrust: boolean;
    readonly marksWorkspace: boolean;
  },
): void {
  const { problem, warnings, ignored } = app.config();
  if (problem !== undefined) throw problem;
  // A command that marks the folder as a workspace makes the warning that it is not marked wrong.
  const { found, warning: unmarked } = app.loaded().workspace;
  const shown = marksWorkspace && found === "cwd"
    ? warnings.filter((warning) => warning !== unmarked)
    : warnings;
  for (const warning of shown) tell(`warning: ${warning}`, { paint: paintFailure });
  if (ignored.length === 0 || reportsTrust) return;
  const label = "warning: the workspace file is not trusted (`pml trust`), so these are ignored";
  tell(`${label}: ${ignored.join("; ")}`, { paint: paintFailure });
}
