/**
 * The rules that lasting answers add to the workspace file or the user's file, and which calls a
 * listed file allows.
 *
 * @module
 */

import { DEFAULT_TEXTS, type Rules } from "../config/rules.ts";
import type { Call } from "../protocol/call.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { containsKnownKey } from "../core/key_kinds.ts";
import { argumentsRule } from "../core/pattern.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import type { AddedRules } from "./_rule_text.ts";
import { alwaysWins } from "./always_wins.ts";
import { type CoveredTool, MultiToolRules } from "./multi_tool_rules.ts";
import { makeJudge } from "./rules.ts";
import { isTrustedByVariable, type Policy } from "./policy.ts";
import { reachText } from "./rule_file.ts";
import { reads } from "./snapshot.ts";

const ALLOWED: Verdict = { kind: "allow", rule: "Always", source: "Always" };

type AskedCall = Pick<Call, "id" | "arguments" | "fixed" | "members">;

/** Makes the rules of "Always" and "Never", and adds them to the file for them. */
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
    const { workspace, narrowing } = config;
    const rules = this.#policy.now.users.rulesFor(id, config.rules);
    const partOf = (rules: Rules) =>
      makeJudge(rules, { known, workspace, variablesOf, readers, isPart: true });
    // No rule of the user overrides an ask rule of a company.
    const company = narrowing?.company?.judge(() => ALLOWED, partOf);
    // guard: company-always
    if (company?.(id, args).kind === "ask") return undefined;
    const wanted = { rule, id, args, source: this.#policy.fileFor(id).path };
    return alwaysWins(rules, { ...wanted, known, workspace, variablesOf, readers })
      ? rule
      : undefined;
  }

  /** Returns where lasting answers write the rules of a call, and where the rules apply. */
  reach({ id }: Pick<AskedCall, "id">): string {
    return reachText(this.#policy.fileFor(id), this.#policy.now.loaded);
  }

  /** Returns the deny rule that "Never" would add for a call, if it can be written. */
  denialOf({ id }: Pick<AskedCall, "id">): string | undefined {
    const { loaded, config } = this.#policy.now;
    const isWritable = (loaded.file === undefined || config.trusted) && !loaded.wide;
    const isOfOther = config.narrowing?.identity !== undefined;
    // No rule can name the listing of a server's tools.
    return isWritable && !isOfOther && !id.endsWith(":@tools") ? id : undefined;
  }

  /** Adds the "Always" rule of a call to the file for it. */
  async add(call: AskedCall): Promise<void> {
    const rule = this.#ruleOf(call);
    if (rule === undefined) throw new TypeError("no rule can be written for these arguments");
    await this.#write(call.id, { rules: [rule] });
    // Unlike an answer for several tools, this one was about the present definition of the tool.
    await this.multiTool.remove({ rule, source: this.#policy.fileFor(call.id).path });
    await this.#policy.reload();
  }

  /** Adds an allow rule for each of several tools of a server, in one edit. */
  async addTools(tools: readonly CoveredTool[]): Promise<void> {
    const [first] = tools;
    if (first === undefined) return;
    // guard: set-again
    if (tools.some(({ id }) => this.offered({ id, arguments: {} }) !== id)) {
      throw new TypeError("a rule for one of the tools would have no effect now");
    }
    await this.multiTool.add(this.#policy.fileFor(first.id).path, tools);
    await this.#write(first.id, { rules: tools.map(({ id }) => id) });
    await this.#policy.reload();
  }

  /** Denies the tool of a call from now on. */
  async deny(call: Pick<AskedCall, "id">): Promise<void> {
    const rule = this.denialOf(call);
    if (rule === undefined) throw new TypeError("no deny rule can be written here");
    await this.#write(call.id, { rules: [rule], list: "deny" });
    await this.#policy.reload();
  }

  async #write(id: ToolId, { rules, list = "allow" }: AddedRules): Promise<void> {
    const { addRules, addUserRules } = await import("./always.ts");
    const { path, isOfUser } = this.#policy.fileFor(id);
    const trusted = this.#policy.store;
    if (isOfUser) return await addUserRules(path, { rules, list, trusted });
    const listed = isTrustedByVariable(this.#policy.now.loaded);
    await addRules(path, { rules, list, trusted, defaults: DEFAULT_TEXTS, listed });
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
