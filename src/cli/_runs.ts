/**
 * What runs each command, by the command's name. It is loaded when a command runs: help needs none
 * of it. Commands with much code of their own are loaded when one of them runs.
 *
 * @module
 */

import { approve } from "./_approve.ts";
import { call } from "./_call.ts";
import { inContext, type Typed } from "./_command_context.ts";
import { COMMANDS } from "./_commands.ts";
import { search, tools, why } from "./_find.ts";
import { install } from "./_install.ts";
import { lock } from "./_lock.ts";
import { login, logout } from "./_login.ts";
import { logs } from "./_logs.ts";
import { memory } from "./_memory.ts";
import { trust } from "./_trust.ts";
import { update } from "./_update.ts";

/** Runs a command with what the person typed. Returns the exit code. */
export type Run = (typed: Typed) => Promise<number>;

type Command = Parameters<typeof inContext>[0];

const BROKEN = { broken: true };
const setup = later(() => import("./_setup_runs.ts"));
const settings = later(() => import("./_settings_runs.ts"));

/** The commands that run with PML open, under a configuration that is not broken. */
const USUAL: Readonly<Record<string, Command>> = {
  add: setup("add"),
  allow: settings("allow"),
  approve,
  ask: settings("ask"),
  call,
  capability: settings("capability"),
  config: settings("config"),
  deny: settings("deny"),
  dev: later(() => import("./_dev.ts"))("dev"),
  import: setup("imports"),
  init: setup("init"),
  install,
  "install-model": settings("model"),
  key: settings("key"),
  learn: settings("learn"),
  list: setup("list"),
  lock,
  login,
  logs,
  memory,
  outdated: settings("outdated"),
  remove: setup("remove"),
  search,
  token: settings("token"),
  tools,
  types: settings("types"),
  update,
  upgrade: settings("upgrade"),
  why,
};

/** What runs each command; the empty name is `pml` alone. */
export const RUNS: Readonly<Record<string, Run>> = {
  ...Object.fromEntries(Object.entries(USUAL).map(([name, run]) => [name, inContext(run)])),
  "": inContext(setup("status"), BROKEN),
  audit: async (typed) => (await import("./_audit.ts")).audit(typed),
  check: inContext(later(() => import("./_check.ts"))("check"), BROKEN),
  completions: async (typed) =>
    (await import("./_completions.ts")).completions(Object.values(COMMANDS).flat(), typed),
  doctor: inContext(setup("doctor"), BROKEN),
  logout: inContext(logout, BROKEN),
  publish: async ({ words }) => await (await import("../app/publish.ts")).publish(words),
  registry: async (typed) => (await import("./_registry.ts")).registry(typed),
  serve: async (typed) => (await import("./_serve.ts")).serve(typed),
  stdio: async () => (await import("./_stdio.ts")).stdio(),
  trust: inContext(trust, { tellsTrust: true }),
  uninstall: inContext(setup("uninstall"), BROKEN),
};

/** Returns what gives a command of a module, which is loaded when the command runs. */
function later<N extends string>(load: () => Promise<Readonly<Record<N, Command>>>) {
  return (name: N): Command => async (at, typed) => await (await load())[name](at, typed);
}
