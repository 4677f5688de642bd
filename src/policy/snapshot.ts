/**
 * The policy at one moment: the configuration, the trust in it, and the resulting rules.
 *
 * @module
 */

import { type LoadedConfig, settle } from "../config/config.ts";
import type { Config } from "../config/current_config.ts";
import { DEFAULTS_SOURCE, type RuleLine, type Rules } from "../config/rules.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { containsKnownKey } from "../core/key_kinds.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { kindOf } from "../servers/kinds.ts";
import { type Judge, type JudgeOptions, makeJudge, type Readers, rulesVersion } from "./rules.ts";
import type { TrustState } from "./workspace_trust.ts";
import { pathVariables } from "./path_variables.ts";
import { UserRules } from "./user_rules.ts";

/** The policy at one moment. It is replaced as a whole, so that no call sees a partial change. */
export interface PolicySnapshot {
  /** A number that changes with each snapshot. */
  readonly version: number;
  readonly loaded: LoadedConfig;
  readonly config: Config;
  readonly trust: TrustState;
  readonly judge: Judge;
  /** Returns whether a name is that of a server. */
  readonly known: (server: string) => boolean;
  /** Returns the variables of a server that may expand the paths it gets. */
  readonly variablesOf: NonNullable<JudgeOptions["variablesOf"]>;
  /** The servers that a rule for their tools that read names. */
  readonly readsRules: ReadonlySet<string>;
  /** Returns a hash of the rules. An approval is valid only for equal rules. */
  readonly rules: () => string;
  /** The reach of the allow rules in the user's file. */
  readonly users: UserRules;
}

/** The capabilities as the rules see them. */
export interface CapabilityPolicy {
  /** The whole names of the capabilities. */
  readonly names: readonly string[];
  /** Returns a judge for capabilities, from a judge by the rules alone and one for other tools. */
  judge(plain: Judge, judge: Judge): Judge;
}

/** The source of an ask verdict for tools that may read an unconfigured workspace. */
const WIDE = "the workspace, which config.yaml does not name";

/** Makes a snapshot from the configuration and the trust in it. */
export function snapshotOf(
  loaded: LoadedConfig,
  from: Pick<PolicySnapshot, "trust" | "version"> & {
    readonly readers: Readers;
    /** The registries of the approved servers and capabilities, by their names. */
    readonly registries: ReadonlyMap<string, string>;
    readonly builtins: ReadonlySet<string>;
    readonly capabilities: CapabilityPolicy | undefined;
  },
): PolicySnapshot {
  const { trust, version } = from;
  const config = settle(loaded, trust.trusted);
  const taken = new Set(config.servers.map(({ name }) => name));
  const rules = withoutDefaultsFor(taken, config.rules);
  const ownNames = [...from.builtins, ...from.capabilities?.names ?? []];
  const all = new Set([...taken, ...ownNames, ...from.registries.keys()]);
  // A namespace is known as soon as one of its capabilities is.
  const names = new Set([...all].map((name) => name.split(":", 1)[0]));
  const known = (server: string) => names.has(server);
  const variables = pathVariables({
    config,
    environment: loaded.environment,
    builtins: from.builtins,
  });
  const options: JudgeOptions = {
    variablesOf: variables,
    known: (server, id) => all.has(server) || all.has(id),
    readers: from.readers,
    workspace: config.workspace,
  };
  const users = new UserRules({ config, loaded, ownNames, registries: from.registries });
  const unscoped = makeJudge(rules, options);
  const own = scopedJudge(rules, { users, options, unscoped });
  const partOf = (rules: Rules) => makeJudge(rules, { ...options, isPart: true });
  const plain = config.narrowing?.company?.judge(own, partOf) ?? own;
  const wide: Judge = loaded.wide
    ? (id, args) => reads(config, id) ? asking(plain(id, args)) : plain(id, args)
    : plain;
  const narrowed = (judge: Judge): Judge => config.narrowing?.judge(judge) ?? judge;
  const judge = narrowed(wide);
  // A capability is a tool of a set by its own name, too.
  const whole = from.capabilities && narrowed(from.capabilities.judge(plain, judge));
  let hash: string | undefined;
  return {
    version,
    loaded,
    config,
    trust,
    known,
    variablesOf: variables,
    readsRules: new Set(
      [rules.deny, rules.ask, rules.allow].flat()
        .flatMap(({ pattern }) => pattern.kind === "reads" ? [pattern.server] : []),
    ),
    judge: config.askForKeys ? askingForKeys(whole ?? judge) : whole ?? judge,
    rules: () => hash ??= rulesVersion(rules),
    users,
  };
}

/**
 * Returns the judge that leaves out allow rules of the user's file for the servers that they do not
 * cover.
 */
function scopedJudge(
  rules: Rules,
  { users, options, unscoped }: {
    readonly users: UserRules;
    readonly options: JudgeOptions;
    readonly unscoped: Judge;
  },
): Judge {
  const scoped = users.without(rules);
  if (scoped.allow.length === rules.allow.length) return unscoped;
  const uncovered = makeJudge(scoped, options);
  return (id, args) => {
    // guard: user-allow
    if (users.whyUncovered(id) !== undefined) return uncovered(id, args);
    return unscoped(id, args);
  };
}

/**
 * Returns whether a tool may read the workspace: every tool in a sandbox may. `shell` always asks.
 */
export function reads({ servers }: Config, id: ToolId): boolean {
  const { server } = splitToolId(id);
  const own = servers.find(({ name }) => name === server);
  return server !== "shell" &&
    (own === undefined || own.confine === true || kindOf(own).isSandboxed);
}

/**
 * Returns a judge that asks about calls with an argument that looks like a key. Keys that the user
 * fixed in a definition are meant to be sent.
 */
function askingForKeys(judge: Judge): Judge {
  return (id, args, given = args) => {
    const verdict = judge(id, args);
    return verdict.kind === "allow" && containsKnownKey(given)
      ? { ...verdict, kind: "ask", rule: "ask_for_keys", source: "config.yaml" }
      : verdict;
  };
}

function asking(verdict: Verdict): Verdict {
  return verdict.kind === "allow" ? { ...verdict, kind: "ask", source: WIDE } : verdict;
}

/** Removes the default allow rules of built-in servers whose names other servers took. */
function withoutDefaultsFor(own: ReadonlySet<string>, rules: Rules): Rules {
  const meant = ({ pattern, source }: RuleLine) =>
    source !== DEFAULTS_SOURCE || pattern.kind === "any" || !own.has(pattern.server);
  return { deny: rules.deny, ask: rules.ask, allow: rules.allow.filter(meant) };
}
