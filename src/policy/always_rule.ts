/**
 * The rules that lasting answers add to the workspace file or the user's file, and which calls a
 * workspace file that `PML_TRUST` lists allows.
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
import { mayReadWorkspace } from "./snapshot.ts";

const ALLOWED: Verdict = { kind: "allow", rule: "Always", source: "Always" };

type AskedCall = Pick<Call, "id" | "arguments" | "fixed" | "members">;

/** Makes the rules of "Always" and "Never", and adds them to the workspace file or the user's. */
export class AlwaysRules {
  /** The rules that an answer wrote for several tools. */
  readonly multiTool: MultiToolRules;
  readonly #policy: Policy;
  readonly #exact: ReadonlySet<string>;

  /** Takes the `exact` tools, which run commands or code: "Always" allows only equal arguments. */
  constructor(policy: Policy, exact: ReadonlySet<string>) {
    this.#policy = policy;
    this.multiTool = new MultiToolRules(policy.home);
    this.#exact = exact;
  }

  /** Returns the rule that "Always" would add for a call, if it would have an effect. */
  offeredRule(call: AskedCall): string | undefined {
    const { id, arguments: args } = call;
    const { loaded, config, known, variablesOf } = this.#policy.now;
    const readers = this.#policy;
    const rule = this.#ruleOf(call);
    if (rule === undefined || loaded.file !== undefined && !config.trusted) return undefined;
    if (loaded.isWide && mayReadWorkspace(config, id)) return undefined;
    if (config.askForKeys && containsKnownKey(call.fixed?.callerArguments ?? args)) {
      return undefined;
    }
    const { workspace, restrictions } = config;
    const rules = this.#policy.now.users.rulesFor(id, config.rules);
    const judgeOfPart = (rules: Rules) =>
      makeJudge(rules, { known, workspace, variablesOf, readers, isPart: true });
    // A rule of the user never overrides an ask rule of the company.
    const company = restrictions?.company?.judge(() => ALLOWED, judgeOfPart);
    // guard: company-always
    if (company?.(id, args).kind === "ask") return undefined;
    const addition = { rule, id, args, source: this.#policy.fileFor(id).path };
    return alwaysWins(rules, { ...addition, known, workspace, variablesOf, readers })
      ? rule
      : undefined;
  }

  /** Returns where lasting answers write the rules of a call, and where the rules apply. */
  reachOf({ id }: Pick<AskedCall, "id">): string {
    return reachText(this.#policy.fileFor(id), this.#policy.now.loaded);
  }

  /** Returns the deny rule that "Never" would add for a call, if it can be written. */
  denialOf({ id }: Pick<AskedCall, "id">): string | undefined {
    const { loaded, config } = this.#policy.now;
    const isWritable = (loaded.file === undefined || config.trusted) && !loaded.isWide;
    const isForIdentity = config.restrictions?.identity !== undefined;
    // No rule can name the listing of a server's tools.
    return isWritable && !isForIdentity && !id.endsWith(":@tools") ? id : undefined;
  }

  /** Adds the "Always" rule of a call to the file for it. */
  async add(call: AskedCall): Promise<void> {
    const rule = this.#ruleOf(call);
    if (rule === undefined) throw new TypeError("no rule can be written for these arguments");
    await this.#write(call.id, { rules: [rule] });
    // The user answered about the current definition, so an earlier record in `multiTool` must not
    // end this rule.
    await this.multiTool.remove({ rule, source: this.#policy.fileFor(call.id).path });
    await this.#policy.reload();
  }

  /** Adds an allow rule for each of several tools of a server, in one edit. */
  async addTools(tools: readonly CoveredTool[]): Promise<void> {
    const [first] = tools;
    if (first === undefined) return;
    // guard: set-again
    if (tools.some(({ id }) => this.offeredRule({ id, arguments: {} }) !== id)) {
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
    const { addUserRules, WorkspaceRules } = await import("./rule_writer.ts");
    const { path, isOfUser } = this.#policy.fileFor(id);
    const trusted = this.#policy.store;
    if (isOfUser) return await addUserRules(path, { rules, list, trusted });
    const isListed = isTrustedByVariable(this.#policy.now.loaded);
    await new WorkspaceRules(trusted, DEFAULT_TEXTS, isListed).add(path, { rules, list });
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

/** Returns whether the verdict is an allow rule of a workspace file that `PML_TRUST` lists. */
export function isAllowedByListedFile(
  { now: { loaded } }: Policy,
  verdict: Verdict | undefined,
): boolean {
  // A bare `*` does not cover the first use of a server, so such a rule names the server.
  return verdict?.kind === "allow" && verdict.source === loaded.file?.path &&
    isTrustedByVariable(loaded);
}
