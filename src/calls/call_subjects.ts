/**
 * Creates the subject of the question about a call: all facts for which the user's answer is valid.
 *
 * @module
 */

import { SKILLS_EXTENSION } from "../protocol/extension_methods.ts";
import { skillTexts } from "../protocol/skills.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { shownArguments } from "../protocol/call.ts";
import { withoutUndefined } from "../core/json.ts";
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
import { boundDecision } from "./decisions.ts";
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

/** Creates the subjects of questions about calls. */
export class CallSubjects {
  readonly #parts: SubjectParts;
  /** Whether the remark about the sandbox layer of this machine was requested. */
  #isRemarkKnown = false;

  /** Takes the collaborators. */
  constructor(parts: SubjectParts) {
    this.#parts = parts;
  }

  /** Returns the subject of the question about a call. */
  async createSubject(call: ResolvedCall): Promise<Subject> {
    const { policy, servers, approvals, machine } = this.#parts;
    const { now } = policy;
    const { config, judge } = now;
    const { server } = call;
    const definition = await call.definition();
    if (!this.#isRemarkKnown) {
      const remark = await machine.layerRemark();
      if (remark !== undefined && !this.#isRemarkKnown) approvals.addRemark(remark);
      this.#isRemarkKnown = true;
    }
    // The answer to a question about all resources also covers requests for other addresses, so the
    // subject must not contain this address.
    const isForAll = isAboutAll(call);
    const hash = definitionHash(
      isForAll ? methodDefinition(splitToolId(call.id).tool) : definition,
    );
    const isKnown = call.method !== undefined || isKnownToUser(server, hash, approvals);
    const skills = await this.#unreadSkills(call);
    const lines = [
      ...isKnown ? [] : definitionLines(definition),
      ...skills === undefined ? [] : definitionLines(skills),
    ];
    const shownCall = {
      tool: call.id,
      arguments: isForAll ? {} : shownArguments(call),
      ...withoutUndefined({ members: call.members }),
    };
    // guard: subject-grants
    return {
      ...shownCall,
      definition: hash,
      rules: boundDecision(now, shownCall),
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

  /**
   * Returns whether PML asks only because a rule has ended: the user's answer for several tools
   * added the rule, and the tool has changed since.
   */
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
    // The question does not wait for a server that has not started.
    const isListed = server.extensions?.().includes(SKILLS_EXTENSION) === true ||
      await server.hasList("skills");
    if (!isListed) return undefined;
    const skills = await server.list("skills").catch(() => []);
    if (skills.length === 0) return undefined;
    const texts = skillTexts(skills);
    return this.#parts.approvals.hasRead(definitionHash(texts)) ? undefined : texts;
  }
}
