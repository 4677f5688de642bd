/**
 * The rules that "Always" adds to the workspace file, and which calls a listed file allows.
 *
 * @module
 */

import { DEFAULT_TEXTS, type Rules } from "../config/rules.ts";
import type { Call } from "../protocol/call.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { containsKnownKey } from "../core/key_kinds.ts";
import { argumentsRule } from "../core/pattern.ts";
import { splitToolId } from "../core/tool_id.ts";
import { alwaysWins } from "./always_wins.ts";
import { MultiToolRules } from "./multi_tool_rules.ts";
import { makeJudge } from "./rules.ts";
import { isTrustedByVariable, type Policy } from "./policy.ts";
import { reads } from "./snapshot.ts";

const ALLOWED: Verdict = { kind: "allow", rule: "Always", source: "Always" };

type AskedCall = Pick<Call, "id" | "arguments" | "fixed" | "members">;

/** Makes the rules of "Always", and adds them to the workspace file. */
export class AlwaysRules {
  /** The rules that an answer wrote for several tools. */
  readonly multiTool: MultiToolRules;
  readonly #policy: Policy;
  readonly #exact: ReadonlySet<string>;

  /** For `exact` tools, which run commands or code, "Always" covers equal arguments only. */
  constructor(policy: Policy, exact: ReadonlySet<string>) {
    this.#policy = policy;
    this.multiTool = new MultiToolRules(policy.home);
    this.#exact = exact;
  }

  /** Returns the rule that "Always" would add for a call, if it would have an effect. */
  offered(call: AskedCall): string | undefined {
    const { id, arguments: args } = call;
    const { loaded, config, known, variablesOf } = this.#policy.now;
    const readers = this.#policy;
    const rule = this.#ruleOf(call);
    if (rule === undefined || loaded.file !== undefined && !config.trusted) return undefined;
    if (loaded.wide && reads(config, id)) return undefined;
    if (config.askForKeys && containsKnownKey(call.fixed?.given ?? args)) return undefined;
    const { workspace, rules, narrowing } = config;
    const partOf = (rules: Rules) =>
      makeJudge(rules, { known, workspace, variablesOf, readers, isPart: true });
    // No rule of the user overrides an ask rule of a company.
    const company = narrowing?.company?.judge(() => ALLOWED, partOf);
    // guard: company-always
    if (company?.(id, args).kind === "ask") return undefined;
    const wanted = { rule, id, args, source: this.#policy.rulesFile };
    return alwaysWins(rules, { ...wanted, known, workspace, variablesOf, readers })
      ? rule
      : undefined;
  }

  /** Adds the "Always" rule of a call to the workspace file. */
  async add(call: AskedCall): Promise<void> {
    const rule = this.#ruleOf(call);
    if (rule === undefined) throw new TypeError("no rule can be written for these arguments");
    const { addAllow } = await import("./always.ts");
    await addAllow(this.#policy.rulesFile, {
      rule,
      trusted: this.#policy.store,
      defaults: DEFAULT_TEXTS,
      listed: isTrustedByVariable(this.#policy.now.loaded),
    });
    // Unlike an answer for several tools, this one was about the present definition of the tool.
    await this.multiTool.remove({ rule, source: this.#policy.rulesFile });
    await this.#policy.reload();
  }

  #ruleOf({ id, arguments: args, fixed, members }: AskedCall): string | undefined {
    // No rule can name the listing of a server's tools.
    if (id.endsWith(":@tools")) return undefined;
    const { run = [] } = this.#policy.now.config.grants[splitToolId(id).server] ?? {};
    if (run.length === 0 && !this.#exact.has(id)) return id;
    // A rule for arguments does not cover other members of the call.
    if (members !== undefined) return undefined;
    // The rule must not contain the value of a variable, because it is written to the file.
    const hasSecret = fixed !== undefined && JSON.stringify(fixed.shown) !== JSON.stringify(args);
    return hasSecret ? undefined : argumentsRule(id, args);
  }
}

/** Returns whether a file that `PML_TRUST` lists has an allow rule that names the tool's server. */
export function allowsBeforehand(
  { now: { loaded } }: Policy,
  verdict: Verdict | undefined,
): boolean {
  // A bare `*` does not cover a first use, so a rule that allows it names the server.
  return verdict?.kind === "allow" && verdict.source === loaded.file?.path &&
    isTrustedByVariable(loaded);
}
