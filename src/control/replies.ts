/**
 * The answers to questions, as the page names them.
 *
 * @module
 */

import { answerLabel, type ApprovalReply, type OfferedAnswer } from "../protocol/answers.ts";
import { withoutUndefined } from "../core/json.ts";
import type { OfferedReply, Reply } from "./api.ts";

const REPLIES: Readonly<Record<Reply, OfferedAnswer["reply"]>> = {
  once: "Yes",
  session: "Session",
  always: "Always",
  "always-reads": "Reads",
  "always-all": "All",
  no: "No",
  never: "Never",
};
const NAMES = new Map(Object.entries(REPLIES).map(([name, reply]) => [reply, name as Reply]));

/** Returns the answer with this name; undefined if there is none. */
export function approvalReplyOf(name: unknown): OfferedAnswer["reply"] | undefined {
  return typeof name === "string" && Object.hasOwn(REPLIES, name)
    ? REPLIES[name as Reply]
    : undefined;
}

/** Returns the answers of a question, with the effect of each on later calls. */
export function offeredReplies(
  answers: readonly OfferedAnswer[],
  effects: Readonly<Partial<Record<ApprovalReply, string>>> = {},
): readonly OfferedReply[] {
  return answers.flatMap((answer) => {
    const reply = NAMES.get(answer.reply);
    if (reply === undefined) return [];
    const reach = effects[answer.reply]?.trim();
    return [{ reply, label: answerLabel(answer), ...withoutUndefined({ reach }) }];
  });
}
