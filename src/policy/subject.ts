/**
 * The subject of a question, and the digest that binds an answer to exactly this subject.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import type { OtherMembers } from "../protocol/call.ts";
import { canonicalJson, type Json, type JsonObject } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";

/**
 * One call that needs the user's approval. The digest covers all members except `isRisky`,
 * `definitionLines` and `otherTexts`.
 */
export interface Subject {
  readonly tool: ToolId;
  readonly arguments: JsonObject;
  /** The members of the client's message that `client_meta` does not list; missing if none. */
  readonly members?: OtherMembers | undefined;
  /** The hash of the tool's definition. */
  readonly definition: string;
  /**
   * The decision of the rules about the call, or the kind of the question about its server. The
   * answer binds to it, and not to other rules.
   */
  readonly rules: string;
  readonly actor: string;
  readonly workspace: string;
  /** Set if the user approves saving the tool instead of running it. */
  readonly isSaved?: true;
  /**
   * Set if an approval without reading could do harm: of a destructive tool, of a tool that runs
   * commands, or of a changed definition. The digest covers the definition, which decides this.
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
      { definitionLines: _lines, otherTexts: _texts, isRisky: _isRisky, ...subject },
    ) => subject);
    return sha256(canonicalJson(bound as unknown as Json)); // undefined members are not written
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

/** Returns a digest of the calls that does not change with the rules' decision or a definition. */
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
