/**
 * The rules that lasting answers add to the workspace file, and which calls a listed file allows.
 *
 * @module
 */

import { DEFAULT_TEXTS, type Rules } from "../config/rules.ts";
import type { Call } from "../protocol/call.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { containsKnownKey } from "../core/key_kinds.ts";
import { argumentsRule } from "../core/pattern.ts";
import { splitToolId } from "../core/tool_id.ts";
import type { AddedRules } from "./_rule_text.ts";
import { alwaysWins } from "./always_wins.ts";
import { type CoveredTool, MultiToolRules } from "./multi_tool_rules.ts";
import { makeJudge } from "./rules.ts";
import { isTrustedByVariable, type Policy } from "./policy.ts";
import { reads } from "./snapshot.ts";

const ALLOWED: Verdict = { kind: "allow", rule: "Always", source: "Always" };

type AskedCall = Pick<Call, "id" | "arguments" | "fixed" | "members">;

/** Makes the rules of "Always" and "Never", and adds them to the workspace file. */
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

  /** Returns the deny rule that "Never" would add for a call, if it can be written. */
  denialOf({ id }: Pick<AskedCall, "id">): string | undefined {
    const { loaded, config } = this.#policy.now;
    const isWritable = (loaded.file === undefined || config.trusted) && !loaded.wide;
    const isOfOther = config.narrowing?.identity !== undefined;
    // No rule can name the listing of a server's tools.
    return isWritable && !isOfOther && !id.endsWith(":@tools") ? id : undefined;
  }

  /** Adds the "Always" rule of a call to the workspace file. */
  async add(call: AskedCall): Promise<void> {
    const rule = this.#ruleOf(call);
    if (rule === undefined) throw new TypeError("no rule can be written for these arguments");
    await this.#write({ rules: [rule] });
    // Unlike an answer for several tools, this one was about the present definition of the tool.
    await this.multiTool.remove({ rule, source: this.#policy.rulesFile });
    await this.#policy.reload();
  }

  /** Adds an allow rule for each of several tools, in one edit. */
  async addTools(tools: readonly CoveredTool[]): Promise<void> {
    // guard: set-again
    if (tools.some(({ id }) => this.offered({ id, arguments: {} }) !== id)) {
      throw new TypeError("a rule for one of the tools would have no effect now");
    }
    await this.multiTool.add(this.#policy.rulesFile, tools);
    await this.#write({ rules: tools.map(({ id }) => id) });
    await this.#policy.reload();
  }

  /** Denies the tool of a call from now on. */
  async deny(call: Pick<AskedCall, "id">): Promise<void> {
    const rule = this.denialOf(call);
    if (rule === undefined) throw new TypeError("no deny rule can be written here");
    await this.#write({ rules: [rule], list: "deny" });
    await this.#policy.reload();
  }

  async #write(added: AddedRules): Promise<void> {
    const { addRules } = await import("./always.ts");
    await addRules(this.#policy.rulesFile, {
      ...added,
      trusted: this.#policy.store,
      defaults: DEFAULT_TEXTS,
      listed: isTrustedByVariable(this.#policy.now.loaded),
    });
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
