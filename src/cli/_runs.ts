/**
 * The functions of the commands, by name. They are loaded when a command runs: help needs none of
 * them. Large commands are loaded when one of them runs.
 *
 * @module
 */

import { approve } from "./_approve.ts";
import { call } from "./_call.ts";
import { inContext, type Typed } from "./_command_context.ts";
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
export type RunCommand = (typed: Typed) => Promise<number>;

type ContextCommand = Parameters<typeof inContext>[0];

const setup = async () => (await import("./_setup_runs.ts")).SETUP;
const settings = async () => (await import("./_settings_runs.ts")).SETTINGS;

/** The commands that run with PML open, under a configuration that is not broken. */
const USUAL: Readonly<Record<string, ContextCommand>> = {
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
  ...later(["add", "import", "list", "remove"], setup),
  ...later(["allow", "ask", "capability", "config", "deny", "install-model", "key"], settings),
  ...later(["learn", "outdated", "rules", "token", "types", "upgrade"], settings),
  ...later(["dev"], () => import("./_dev.ts")),
};
/** Those that also run under a broken one; the empty name is `pml` without a command. */
const ALWAYS: Readonly<Record<string, ContextCommand>> = {
  logout,
  ...later(["", "doctor", "uninstall"], setup),
  ...later(["check"], () => import("./_check.ts")),
};

/** The function of each command. */
export const RUNS: Readonly<Record<string, RunCommand>> = {
  ...withPml(USUAL),
  ...withPml(ALWAYS, { broken: true }),
  ...withPml({ trust }, { tellsTrust: true }),
  ...withPml(later(["init"], setup), { marksWorkspace: true }),
  audit: async (typed) => (await import("./_audit.ts")).audit(typed),
  completions: async (typed) =>
    (await import("./_completions.ts")).completions(Object.values(COMMANDS).flat(), typed),
  publish: async ({ words }) => await (await import("./publish.ts")).publish(words),
  registry: async (typed) => (await import("./_registry.ts")).serveRegistry(typed),
  serve: async (typed) => (await import("./_serve.ts")).serve(typed),
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
function later<N extends string>(
  names: readonly N[],
  load: () => Promise<Readonly<Record<N, ContextCommand>>>,
): Readonly<Record<string, ContextCommand>> {
  return Object.fromEntries(
    names.map((name): [string, ContextCommand] => [
      name,
      async (at, typed) => await (await load())[name](at, typed),
    ]),
  );
}
