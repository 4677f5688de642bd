/**
 * The answers that a question of PML offers, and their labels in a client's form.
 *
 * @module
 */

/**
 * The replies to a question. `Yes` allows the call once, `Session` allows its tool until the client
 * disconnects, and `Always` allows its tool. `Reads` and `All` allow several tools of its server:
 * the shown tools that only read, and all shown tools. `Never` denies the tool from now on.
 * `cancelled` means that the user dismissed the question. `unoffered` is an answer of a client that
 * no question offers, so it is not a decision of the user.
 */
export type ApprovalReply =
  | "Yes"
  | "Session"
  | "Always"
  | "Reads"
  | "All"
  | "No"
  | "Never"
  | "cancelled"
  | "unoffered";

/** An answer that a question offers. */
export interface OfferedAnswer {
  readonly reply: Exclude<ApprovalReply, "cancelled" | "unoffered">;
  /** How many tools it covers, if it covers several. */
  readonly tools?: number | undefined;
}

/** The answers of a question that offers only "Yes" and "No". */
export const YES_OR_NO: readonly OfferedAnswer[] = [{ reply: "Yes" }, { reply: "No" }];

const SESSION_LABEL = "For this session";
const READS_LABEL = /^Always for these \d+ tools that read$/;
const ALL_LABEL = /^Always for these \d+ tools$/;

/** Returns the label of an answer in a form. */
export function answerLabel({ reply, tools }: OfferedAnswer): string {
  if (reply === "Session") return SESSION_LABEL;
  if (reply === "Reads") return `Always for these ${tools} tools that read`;
  return reply === "All" ? `Always for these ${tools} tools` : reply;
}

/** Returns the reply for a label that the user picked in a form; `unoffered` for any other value. */
export function replyOfLabel(label: unknown): ApprovalReply {
  if (label === "Yes" || label === "Always" || label === "No") return label;
  if (label === SESSION_LABEL) return "Session";
  if (typeof label !== "string") return "unoffered";
  if (READS_LABEL.test(label)) return "Reads";
  return ALL_LABEL.test(label) ? "All" : "unoffered";
}

/** Returns the answers in a client's form: all except "Never", which only the terminal offers. */
export function answersInForm(answers: readonly OfferedAnswer[]): readonly OfferedAnswer[] {
  return answers.filter(({ reply }) => reply !== "Never");
}
