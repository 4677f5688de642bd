/**
 * The approvals of calls: the questions about them, and the facts that the answers bind to.
 *
 * @module
 */

import type { Records } from "../audit/records.ts";
import type { JsonObject } from "../core/json.ts";
import type { AlwaysRules } from "../policy/always_rule.ts";
import type { Approvals, LastingAnswers } from "../policy/approvals.ts";
import type { Policy } from "../policy/policy.ts";
import type { Subject } from "../policy/subject.ts";
import type { Servers } from "../servers/lists/servers.ts";
import type { Machine } from "../servers/machine.ts";
import type { ResolvedCall } from "../servers/server.ts";
import type { AnswerOffers } from "./answer_offers.ts";
import type { CallSubjects } from "./call_subjects.ts";
import type { ApprovalEvent, ApprovalHost, OfferFinder } from "./decisions.ts";
import type { SessionAnswers } from "./session_answers.ts";

/** The collaborators of `CallApprovals`. */
export interface ApprovalParts {
  readonly policy: Policy;
  readonly servers: Servers;
  readonly machine: Machine;
  readonly records: Records;
  readonly approvals: Approvals;
  readonly rules: AlwaysRules;
  readonly sessions: SessionAnswers;
}

/** Asks about calls with the parts of a running PML. The first question loads more of them. */
export class CallApprovals implements ApprovalHost {
  readonly approvals: Approvals;
  readonly sessions: SessionAnswers;
  readonly rules: AlwaysRules;
  readonly offers: OfferFinder;
  readonly #parts: ApprovalParts;
  #subjects: Promise<CallSubjects> | undefined;

  /** Takes the collaborators. Loads nothing yet. */
  constructor(parts: ApprovalParts) {
    this.#parts = parts;
    this.approvals = parts.approvals;
    this.sessions = parts.sessions;
    this.rules = parts.rules;
    this.offers = new LoadedOffers(parts);
  }

  /** The workspace now. */
  get workspace(): string {
    return this.#parts.policy.now.config.workspace;
  }

  /** Returns the configuration that was read: the same object as long as no file changes. */
  read(): object {
    return this.#parts.policy.now.loaded;
  }

  /** Returns the subject of the question about a call. */
  async subjectOf(call: ResolvedCall): Promise<Subject> {
    this.#subjects ??= import("./call_subjects.ts").then(({ CallSubjects }) =>
      new CallSubjects({ ...this.#parts, always: this.rules })
    );
    return await (await this.#subjects).of(call);
  }

  /** Writes to the journal. */
  async record({ event, call, detail }: ApprovalEvent): Promise<void> {
    // Details are plain JSON: names, hashes and lines of text.
    const about = { tool: call.id, callId: call.callId, ...detail } as JsonObject;
    await this.#parts.records.write({ kind: "event", event, actor: call.actor, about });
  }
}

/** Loads the finder of answers with the first question: most calls need none. */
class LoadedOffers implements OfferFinder {
  readonly #parts: ApprovalParts;
  #loading: Promise<AnswerOffers> | undefined;

  constructor(parts: ApprovalParts) {
    this.#parts = parts;
  }

  async of(call: ResolvedCall): Promise<LastingAnswers> {
    return await (await (this.#loading ??= this.#load())).of(call);
  }

  async #load(): Promise<AnswerOffers> {
    const [{ AnswerOffers }, { ToolSets }] = await Promise.all([
      import("./answer_offers.ts"),
      import("./tool_sets.ts"),
    ]);
    const { policy, approvals, rules: always, sessions, servers: { lists } } = this.#parts;
    const toolSets = new ToolSets({ policy, always, approvals });
    return new AnswerOffers({ always, sessions, toolSets, lists });
  }
}
