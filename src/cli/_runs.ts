/**
 * What runs each command, by the command's name. It is loaded when a command runs: help needs none
 * of it. Commands with much code of their own are loaded when one of them runs.
 *
 * @module
 */

import { approve } from "./_approve.ts";
import { audit } from "./_audit.ts";
import { call } from "./_call.ts";
import { check } from "./_check.ts";
import { inContext, type Typed } from "./_command_context.ts";
import { COMMANDS } from "./_commands.ts";
import { completions } from "./_completions.ts";
import { search, tools, why } from "./_find.ts";
import { install } from "./_install.ts";
import { lock } from "./_lock.ts";
import { login, logout } from "./_login.ts";
import { logs } from "./_logs.ts";
import { memory } from "./_memory.ts";
import { registry } from "./_registry.ts";
import { serve } from "./_serve.ts";
import { stdio } from "./_stdio.ts";
import { trust } from "./_trust.ts";
import { update } from "./_update.ts";

/** Runs a command with what the person typed. Returns the exit code. */
export type Run = (typed: Typed) => Promise<number>;

type Command = Parameters<typeof inContext>[0];

const BROKEN = { broken: true };
const setup = later(() => import("./_setup_runs.ts"));
const settings = later(() => import("./_settings_runs.ts"));

/** What runs each command; the empty name is `pml` alone. */
export const RUNS: Readonly<Record<string, Run>> = {
  "": inContext(setup("status"), BROKEN),
  add: inContext(setup("add")),
  allow: inContext(settings("allow")),
  approve: inContext(approve),
  ask: inContext(settings("ask")),
  audit,
  call: inContext(call),
  capability: inContext(settings("capability")),
  check: inContext(check, BROKEN),
  completions: (typed) => completions(Object.values(COMMANDS).flat(), typed),
  config: inContext(settings("config")),
  deny: inContext(settings("deny")),
  dev: inContext(later(() => import("./_dev.ts"))("dev")),
  doctor: inContext(setup("doctor"), BROKEN),
  import: inContext(setup("imports")),
  init: inContext(setup("init")),
  install: inContext(install),
  "install-model": inContext(settings("model")),
  key: inContext(settings("key")),
  learn: inContext(settings("learn")),
  list: inContext(setup("list")),
  lock: inContext(lock),
  login: inContext(login),
  logout: inContext(logout),
  logs: inContext(logs),
  memory: inContext(memory),
  outdated: inContext(settings("outdated")),
  registry,
  remove: inContext(setup("remove")),
  search: inContext(search),
  serve,
  stdio,
  token: inContext(settings("token")),
  tools: inContext(tools),
  trust: inContext(trust, { tellsTrust: true }),
  types: inContext(settings("types")),
  uninstall: inContext(setup("uninstall"), BROKEN),
  update: inContext(update),
  upgrade: inContext(settings("upgrade")),
  why: inContext(why),
};

/** Returns what gives a command of a module, which is loaded when the command runs. */
function later<N extends string>(load: () => Promise<Readonly<Record<N, Command>>>) {
  return (name: N): Command => async (at, typed) => await (await load())[name](at, typed);
}
