/**
 * Returns the subject of the question about a call: all facts that the user's answer binds to.
 *
 * @module
 */

import { SKILLS_EXTENSION } from "../protocol/extension_methods.ts";
import { skillTexts } from "../protocol/skills.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { shownArguments } from "../protocol/call.ts";
import { defined } from "../core/json.ts";
import { splitToolId } from "../core/tool_id.ts";
import type { AlwaysRules } from "../policy/always_rule.ts";
import type { Approvals } from "../policy/approvals.ts";
import { definitionLines, isKnownToUser } from "../policy/definition_texts.ts";
import { definitionHash } from "../policy/integrity.ts";
import { ENDED } from "../policy/multi_tool_rules.ts";
import type { Policy } from "../policy/policy.ts";
import { isRisky } from "../policy/risky.ts";
import type { Subject } from "../policy/subject.ts";
import type { Servers } from "../servers/lists/servers.ts";
import type { Machine } from "../servers/machine.ts";
import { methodDefinition, type ResolvedCall } from "../servers/server.ts";
import { isAboutAll, offerFacts } from "./offer_access.ts";
import { pageFacts } from "./page_tools.ts";
import { requestFacts } from "./server_requests.ts";

/** The collaborators of `CallSubjects`. */
export interface SubjectParts {
  readonly policy: Policy;
  readonly servers: Servers;
  readonly approvals: Approvals;
  readonly machine: Pick<Machine, "layerRemark">;
  readonly always: Pick<AlwaysRules, "multiTool">;
}

/** Makes the subjects of questions. */
export class CallSubjects {
  readonly #parts: SubjectParts;
  #isRemarkKnown = false;

  /** Takes the collaborators. */
  constructor(parts: SubjectParts) {
    this.#parts = parts;
  }

  /** Returns the subject of the question about a call. */
  async of(call: ResolvedCall): Promise<Subject> {
    const { policy, servers, approvals, machine } = this.#parts;
    const { rules, config, judge } = policy.now;
    const { server } = call;
    const definition = await call.definition();
    if (!this.#isRemarkKnown) {
      const remark = await machine.layerRemark();
      if (remark !== undefined && !this.#isRemarkKnown) approvals.addRemark(remark);
      this.#isRemarkKnown = true;
    }
    // The answer to a question about all resources covers requests for other addresses, so it must
    // not depend on this one.
    const isAll = isAboutAll(call);
    const hash = definitionHash(
      isAll ? methodDefinition(splitToolId(call.id).tool) : definition,
    );
    const isKnown = call.method !== undefined || isKnownToUser(server, hash, approvals);
    const skills = await this.#unreadSkills(call);
    const lines = [
      ...isKnown ? [] : definitionLines(definition),
      ...skills === undefined ? [] : definitionLines(skills),
    ];
    // guard: subject-grants
    return {
      tool: call.id,
      arguments: isAll ? {} : shownArguments(call),
      ...defined({ members: call.members }),
      definition: hash,
      // Another token is another user.
      rules: rules() + (config.narrowing?.identity?.token ?? ""),
      actor: call.actor,
      workspace: config.workspace,
      facts: [
        ...await server.consentLines(call),
        ...call.method === undefined ? pageFacts(server.name, { servers, judge }) : [],
        ...requestFacts(call),
        ...this.#hasEndedRule(call, definition) ? [ENDED] : [],
        ...offerFacts(call),
      ],
      ...lines.length === 0 ? {} : { definitionLines: lines },
      ...isRisky(call.id, definition) && { isRisky: true },
      ...skills === undefined ? {} : { otherTexts: [definitionHash(skills)] },
    };
  }

  /** Returns whether a rule of an answer for several tools would allow a call, but ended. */
  #hasEndedRule({ id, method, verdict }: ResolvedCall, definition: ToolDefinition): boolean {
    return method === undefined && verdict?.kind === "ask" && verdict.rule === id &&
      this.#parts.always.multiTool.hasEnded(verdict, definition);
  }

  /**
   * Returns the names and descriptions of the skills of a server for its first question, because
   * they steer the model. Undefined if there are none, the user has read them, or the server cannot
   * list them.
   */
  async #unreadSkills({ server, method, id }: ResolvedCall): Promise<ToolDefinition | undefined> {
    const isAboutServer = method === undefined || splitToolId(id).tool === "@skills";
    if (!isAboutServer || server.hasList === undefined) return undefined;
    // The question does not wait for a server that is not started.
    const isListed = server.extensions?.().includes(SKILLS_EXTENSION) === true ||
      await server.hasList("skills");
    if (!isListed) return undefined;
    const skills = await server.list("skills").catch(() => []);
    if (skills.length === 0) return undefined;
    const texts = skillTexts(skills);
    return this.#parts.approvals.hasRead(definitionHash(texts)) ? undefined : texts;
  }
}
