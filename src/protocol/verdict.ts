/**
 * The decision of the rules about a call.
 *
 * @module
 */

/** The decision of the rules about a call, and the rule that decided. */
export interface Verdict {
  /** Whether the call runs, needs a question first, or is refused. */
  readonly kind: "allow" | "ask" | "deny";
  /** The rule that decided, as the user wrote it, or a text such as "no rule". */
  readonly rule: string;
  /** The place of the rule: a file, a tool set, or "defaults". */
  readonly source: string;
  /** The first rules of the tool that depend on arguments. Set only if no arguments were given. */
  readonly depends?: readonly string[];
  /** Set if the rule that allows the call depends on its arguments. */
  readonly isConditional?: true;
  /**
   * The environment variable that caused a deny: it changes how programs run, and no rule names it.
   */
  readonly steering?: string;
}
