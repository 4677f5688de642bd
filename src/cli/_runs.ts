/**
 * What runs each command, by the command's name. It is loaded when a command runs: help needs none
 * of it.
 *
 * @module
 */

import { add, list, remove } from "./_add.ts";
import { approve } from "./_approve.ts";
import { audit } from "./_audit.ts";
import { call } from "./_call.ts";
import { capability } from "./_capability.ts";
import { check } from "./_check.ts";
import { inContext, type Typed } from "./_command_context.ts";
import { COMMANDS } from "./_commands.ts";
import { completions } from "./_completions.ts";
import { config } from "./_config.ts";
import { types } from "./_declare.ts";
import { doctor } from "./_doctor.ts";
import { search, tools, why } from "./_find.ts";
import { importServers } from "./_import.ts";
import { init } from "./_init.ts";
import { install } from "./_install.ts";
import { installModel } from "./_install_model.ts";
import { key } from "./_key.ts";
import { learn } from "./_learn.ts";
import { lock } from "./_lock.ts";
import { login, logout } from "./_login.ts";
import { logs } from "./_logs.ts";
import { memory } from "./_memory.ts";
import { registry } from "./_registry.ts";
import { ruleCommand } from "./_rules.ts";
import { serve } from "./_serve.ts";
import { status } from "./_status.ts";
import { stdio } from "./_stdio.ts";
import { token } from "./_token.ts";
import { trust } from "./_trust.ts";
import { uninstall } from "./_uninstall.ts";
import { update } from "./_update.ts";
import { outdated, upgrade } from "./_upgrade.ts";

/** Runs a command with what the person typed. Returns the exit code. */
export type Run = (typed: Typed) => Promise<number>;

const BROKEN = { broken: true };

/** The commands that run with PML open, under a configuration that is not broken. */
const USUAL: Readonly<Record<string, Parameters<typeof inContext>[0]>> = {
  add,
  allow: ruleCommand("allow"),
  approve,
  ask: ruleCommand("ask"),
  call,
  capability,
  config,
  deny: ruleCommand("deny"),
  import: importServers,
  init,
  install,
  "install-model": installModel,
  key,
  learn,
  list,
  lock,
  login,
  logout,
  logs,
  memory,
  outdated,
  remove,
  search,
  token,
  tools,
  types,
  update,
  upgrade,
  why,
};

/** What runs each command; the empty name is `pml` alone. */
export const RUNS: Readonly<Record<string, Run>> = {
  ...Object.fromEntries(Object.entries(USUAL).map(([name, run]) => [name, inContext(run)])),
  "": inContext(status, BROKEN),
  audit,
  check: inContext(check, BROKEN),
  completions: (typed) => completions(Object.values(COMMANDS).flat(), typed),
  dev: inContext(async (at, typed) => await (await import("./_dev.ts")).dev(at, typed)),
  doctor: inContext(doctor, BROKEN),
  publish: async ({ words }) => await (await import("../app/publish.ts")).publish(words),
  registry,
  serve,
  stdio,
  trust: inContext(trust, { tellsTrust: true }),
  uninstall: inContext(uninstall, BROKEN),
};
