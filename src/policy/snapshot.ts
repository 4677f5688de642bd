/**
 * The policy at one moment: the configuration, the trust in it, and the resulting rules.
 *
 * @module
 */

import { type LoadedConfig, settleConfig } from "../config/config.ts";
import type { Config } from "../config/current_config.ts";
import { DEFAULTS_SOURCE, type RuleLine, type Rules } from "../config/rules.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { containsKnownKey } from "../core/key_kinds.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { kindOf } from "../servers/kinds.ts";
import { type Judge, type JudgeOptions, makeJudge, type Readers } from "./rules.ts";
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
  /** Returns whether there is a server with a name. */
  readonly known: (server: string) => boolean;
  /** Returns the variables of a server that may expand the paths it gets. */
  readonly variablesOf: NonNullable<JudgeOptions["variablesOf"]>;
  /** The servers for which a rule covers all tools that only read. */
  readonly readsRules: ReadonlySet<string>;
  /** The reach of the allow rules in the user's file. */
  readonly users: UserRules;
}

/** The capabilities as the rules see them. */
export interface CapabilityPolicy {
  /** The whole names of the capabilities. */
  readonly names: readonly string[];
  /**
   * Returns a judge for capabilities and tools. `plain` judges a capability by the rules for its
   * name, and `judge` judges tools.
   */
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
  const config = settleConfig(loaded, trust.trusted);
  const definedNames = new Set(config.servers.map(({ name }) => name));
  const rules = withoutDefaultsFor(definedNames, config.rules);
  const ownNames = [...from.builtins, ...from.capabilities?.names ?? []];
  const knownNames = new Set([...definedNames, ...ownNames, ...from.registries.keys()]);
  // A namespace is known as soon as one of its capabilities is.
  const serverNames = new Set([...knownNames].map((name) => name.split(":", 1)[0]));
  const known = (server: string) => serverNames.has(server);
  const variables = pathVariables({
    config,
    environment: loaded.environment,
    builtins: from.builtins,
  });
  const options: JudgeOptions = {
    variablesOf: variables,
    known: (server, id) => knownNames.has(server) || knownNames.has(id),
    readers: from.readers,
    workspace: config.workspace,
  };
  const users = new UserRules({ config, loaded, ownNames, registries: from.registries });
  const unscoped = makeJudge(rules, options);
  const byRules = scopedJudge(rules, { users, options, unscoped });
  const judgeOfPart = (rules: Rules) => makeJudge(rules, { ...options, isPart: true });
  const byCompany = config.restrictions?.company?.judge(byRules, judgeOfPart) ?? byRules;
  const byWorkspace: Judge = loaded.isWide
    ? (id, args) => mayReadWorkspace(config, id) ? toAsk(byCompany(id, args)) : byCompany(id, args)
    : byCompany;
  const restrict = (judge: Judge): Judge => config.restrictions?.judge(judge) ?? judge;
  const judge = restrict(byWorkspace);
  // The tools of a restriction can also be capabilities, so it applies to both.
  const withCapabilities = from.capabilities &&
    restrict(from.capabilities.judge(byCompany, judge));
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
    judge: config.askForKeys ? askForKeys(withCapabilities ?? judge) : withCapabilities ?? judge,
    users,
  };
}

/**
 * Returns a judge that ignores allow rules of the user's file for calls of servers that these rules
 * do not cover.
 */
function scopedJudge(
  rules: Rules,
  { users, options, unscoped }: {
    readonly users: UserRules;
    readonly options: JudgeOptions;
    readonly unscoped: Judge;
  },
): Judge {
  const scoped = users.withoutUserRules(rules);
  if (scoped.allow.length === rules.allow.length) return unscoped;
  const uncovered = makeJudge(scoped, options);
  return (id, args) => {
    // guard: user-allow
    if (users.whyUncovered(id) !== undefined) return uncovered(id, args);
    return unscoped(id, args);
  };
}

/**
 * Returns whether a tool may read the workspace, as every tool in a sandbox may. False for `shell`,
 * which always asks.
 */
export function mayReadWorkspace({ servers }: Config, id: ToolId): boolean {
  const { server } = splitToolId(id);
  const own = servers.find(({ name }) => name === server);
  return server !== "shell" &&
    (own === undefined || own.confine === true || kindOf(own).isSandboxed);
}

/**
 * Returns a judge that asks about calls with an argument that looks like a key. Keys that the user
 * fixed in a definition are meant to be sent.
 */
function askForKeys(judge: Judge): Judge {
  return (id, args, given = args) => {
    const verdict = judge(id, args);
    return verdict.kind === "allow" && containsKnownKey(given)
      ? { ...verdict, kind: "ask", rule: "ask_for_keys", source: "config.yaml" }
      : verdict;
  };
}

function toAsk(verdict: Verdict): Verdict {
  return verdict.kind === "allow" ? { ...verdict, kind: "ask", source: WIDE } : verdict;
}

/**
 * Removes the default allow rules for names that a file defines. The rules are about the built-in
 * servers with these names, which the definitions replace.
 */
function withoutDefaultsFor(definedNames: ReadonlySet<string>, rules: Rules): Rules {
  const isAboutServer = ({ pattern, source }: RuleLine) =>
    source !== DEFAULTS_SOURCE || pattern.kind === "any" || !definedNames.has(pattern.server);
  return { deny: rules.deny, ask: rules.ask, allow: rules.allow.filter(isAboutServer) };
}
