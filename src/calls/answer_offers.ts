/**
 * Finds the answers to offer in a question that also decide later calls.
 *
 * @module
 */

import { toolPage } from "../protocol/apps.ts";
import type { AlwaysRules } from "../policy/always_rule.ts";
import type { LastingAnswers } from "../policy/approvals.ts";
import type { Lists } from "../servers/lists/lists.ts";
import type { ResolvedCall } from "../servers/server.ts";
import type { OfferFinder } from "./decisions.ts";
import type { SessionAnswers } from "./session_answers.ts";
import type { ToolSets } from "./tool_sets.ts";

/** The collaborators of `AnswerOffers`. */
export interface AnswerOfferParts {
  readonly always: Pick<AlwaysRules, "denialOf">;
  readonly sessions: Pick<SessionAnswers, "ruleToOffer">;
  readonly toolSets: Pick<ToolSets, "findSets">;
  readonly lists: Pick<Lists, "itemsOf">;
}

/** Finds the answers that a question may offer besides "Yes", "No" and "Always". */
export class AnswerOffers implements OfferFinder {
  readonly #parts: AnswerOfferParts;

  /** Takes the collaborators. */
  constructor(parts: AnswerOfferParts) {
    this.#parts = parts;
  }

  /** Returns the answers that a question about a call may offer. */
  async findAnswers(call: ResolvedCall): Promise<LastingAnswers> {
    const { always, sessions, toolSets } = this.#parts;
    const { connection } = call.client;
    const rule = await sessions.ruleToOffer(call);
    return {
      ...rule && connection && { session: { rule, connection, hasPages: this.#hasPages() } },
      sets: await toolSets.findSets(call),
      never: always.denialOf(call),
    };
  }

  /** Returns whether any server has pages (MCP Apps). A page may call the tools of all servers. */
  #hasPages(): boolean {
    return this.#parts.lists.itemsOf("tools")
      .some(({ items }) => items.some((tool) => toolPage(tool) !== undefined));
  }
}
