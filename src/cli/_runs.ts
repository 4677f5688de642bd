/**
 * Maps the names of commands to the functions that run them. Help does not load this module, and
 * large commands are in modules that are loaded only when one of them runs.
 *
 * @module
 */

import { approve } from "./_approve.ts";
import { call } from "./_call.ts";
import { type CommandInput, inContext } from "./_command_context.ts";
import { COMMANDS } from "./_commands.ts";
import { search, toolsCommand, why } from "./_find.ts";
import { install } from "./_install.ts";
import { lock } from "./_lock.ts";
import { login, logout } from "./_login.ts";
import { logs } from "./_logs.ts";
import { memory } from "./_memory.ts";
import { trust } from "./_trust.ts";
import { update } from "./_update.ts";

/** Runs a command. Returns the exit code. */
export type RunCommand = (input: CommandInput) => Promise<number>;

type ContextCommand = Parameters<typeof inContext>[0];

const setup = async () => (await import("./_setup_runs.ts")).SETUP;
const settings = async () => (await import("./_settings_runs.ts")).SETTINGS;

/** The commands that run with PML open, and only with a valid configuration. */
const WITH_VALID_CONFIG: Readonly<Record<string, ContextCommand>> = {
  ...{
    approve,
    call,
    install,
    lock,
    login,
    logs,
    memory,
    search,
    tools: toolsCommand,
    update,
    why,
  },
  ...lazyCommands(["add", "import", "list", "remove"], setup),
  ...lazyCommands(
    ["allow", "ask", "capability", "config", "deny", "install-model", "key"],
    settings,
  ),
  ...lazyCommands(["learn", "outdated", "rules", "token", "types", "upgrade"], settings),
  ...lazyCommands(["dev"], () => import("./_dev.ts")),
  ...lazyCommands(["pause", "resume"], () => import("./_pause.ts")),
  ...lazyCommands(["metrics"], () => import("./_metrics.ts")),
};
/** The commands that also run with a broken configuration. */
const WITH_ANY_CONFIG: Readonly<Record<string, ContextCommand>> = {
  logout,
  ...lazyCommands(["uninstall"], setup),
  ...lazyCommands(["check"], () => import("./_check.ts")),
};

/** The commands that report the configuration; the empty name is `pml` without a command. */
const STATUS = lazyCommands(["", "doctor"], setup);

/** The function of each command. */
export const RUNS: Readonly<Record<string, RunCommand>> = {
  ...withPml(WITH_VALID_CONFIG),
  ...withPml(WITH_ANY_CONFIG, { runsWhenBroken: true }),
  ...withPml(STATUS, { runsWhenBroken: true, reportsIgnoredVariables: true }),
  ...withPml({ trust }, { reportsTrust: true }),
  ...withPml(lazyCommands(["init"], setup), { marksWorkspace: true }),
  audit: async (input) => (await import("./_audit.ts")).audit(input),
  completions: async (input) =>
    (await import("./_completions.ts")).completions(Object.values(COMMANDS).flat(), input),
  page: async (input) => (await import("./_page.ts")).page(input),
  publish: async ({ words }) => await (await import("./publish.ts")).publish(words),
  registry: async (input) => (await import("./_registry.ts")).serveRegistry(input),
  serve: async (input) => (await import("./_serve.ts")).serve(input),
  stdio: async () => (await import("./_stdio.ts")).stdio(),
};

/** Returns functions that run commands with PML open. */
function withPml(
  commands: Readonly<Record<string, ContextCommand>>,
  options?: Parameters<typeof inContext>[1],
): Readonly<Record<string, RunCommand>> {
  return Object.fromEntries(
    Object.entries(commands).map(([name, command]) => [name, inContext(command, options)]),
  );
}

/** Returns commands of a module that is loaded when one of them runs. */
function lazyCommands<N extends string>(
  names: readonly N[],
  load: () => Promise<Readonly<Record<N, ContextCommand>>>,
): Readonly<Record<string, ContextCommand>> {
  return Object.fromEntries(
    names.map((name): [string, ContextCommand] => [
      name,
      async (context, input) => await (await load())[name](context, input),
    ]),
  );
}
