/**
 * The answers that a question of PML offers, and their names in a client's form.
 *
 * @module
 */

/**
 * The replies to a question. `Yes` covers the call once, `Session` its tool until the client
 * disconnects, `Always` its tool, `Reads` and `All` several tools of its server: those that read, and
 * all that were shown. `Never` denies the tool from now on.
 * `cancelled` is no answer.
 */
export type ApprovalReply =
  | "Yes"
  | "Session"
  | "Always"
  | "Reads"
  | "All"
  | "No"
  | "Never"
  | "cancelled";

/** An answer that a question offers. */
export interface OfferedAnswer {
  readonly reply: Exclude<ApprovalReply, "cancelled">;
  /** How many tools it covers, if it covers several. */
  readonly tools?: number | undefined;
}

/** The answers of a question that offers a yes, once, and a no. */
export const YES_OR_NO: readonly OfferedAnswer[] = [{ reply: "Yes" }, { reply: "No" }];

const SESSION = "For this session";
const READS = /^Always for these \d+ tools that read$/;
const ALL = /^Always for these \d+ tools$/;

/** Returns the name of an answer in a form. */
export function answerLabel({ reply, tools }: OfferedAnswer): string {
  if (reply === "Session") return SESSION;
  if (reply === "Reads") return `Always for these ${tools} tools that read`;
  return reply === "All" ? `Always for these ${tools} tools` : reply;
}

/** Returns the reply of a name that a client picked in a form. Unknown names mean no. */
export function replyOfLabel(label: unknown): ApprovalReply {
  if (label === "Yes" || label === "Always") return label;
  if (label === SESSION) return "Session";
  if (typeof label !== "string") return "No";
  if (READS.test(label)) return "Reads";
  return ALL.test(label) ? "All" : "No";
}

/** Returns the answers that a client's form shows: a user chooses "Never" by its key, on a terminal. */
export function answersInForm(answers: readonly OfferedAnswer[]): readonly OfferedAnswer[] {
  return answers.filter(({ reply }) => reply !== "Never");
}
