/**
 * The subject of a question, and the digest that binds an answer to exactly this subject.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import type { OtherMembers } from "../protocol/call.ts";
import { canonical, type Json, type JsonObject } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";

/** One call that needs the user's approval. The digest covers all but the texts. */
export interface Subject {
  readonly tool: ToolId;
  readonly arguments: JsonObject;
  /** The unlisted members of the client's message; missing if there are none. */
  readonly members?: OtherMembers | undefined;
  /** The hash of the tool's definition. */
  readonly definition: string;
  /** The version of the rules that required the question. */
  readonly rules: string;
  readonly actor: string;
  readonly workspace: string;
  /** Set if the user approves saving the tool instead of running it. */
  readonly isSaved?: true;
  /**
   * Set if a quick yes could do harm: a destructive tool, one that runs commands, or a changed
   * definition. The digest covers the definition instead.
   */
  readonly isRisky?: boolean | undefined;
  /**
   * Everything else the user must know: kind, command, permissions, keys, warnings; one line
   * each.
   */
  readonly facts?: readonly string[];
  /**
   * The texts of the tool's definition, if the user has not read them yet. The digest does not
   * cover them: it covers the hash of the definition.
   */
  readonly definitionLines?: readonly string[] | undefined;
  /** The hashes of other texts in `definitionLines`, which an approval marks as read. */
  readonly otherTexts?: readonly string[] | undefined;
}

/**
 * Returns the digest of subjects. Any change results in another digest. Throws BAD_ARGUMENTS if
 * they are not valid JSON.
 */
export function digestOf(subjects: readonly Subject[]): string {
  try {
    // Numbers are compared as text: `1` and `1.0` are different subjects.
    const bound = subjects.map((
      { definitionLines: _, otherTexts: _o, isRisky: _r, ...subject },
    ) => subject);
    return sha256(canonical(bound as unknown as Json)); // undefined members are not written
  } catch (cause) {
    throw new PmlError(
      "BAD_ARGUMENTS",
      "Cannot ask about this call: its arguments are not valid JSON",
      {
        hint: "Send finite numbers, well-formed text and fewer levels",
        cause,
      },
    );
  }
}

/** Returns the digest of the calls alone: it is the same under other rules and definitions. */
export function callDigestOf(subjects: readonly Subject[]): string {
  return digestOf(subjects.map((subject) => ({
    tool: subject.tool,
    arguments: subject.arguments,
    members: subject.members,
    isSaved: subject.isSaved,
    actor: subject.actor,
    workspace: subject.workspace,
    definition: "",
    rules: "",
  })));
}
