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

/** One call as a person is asked about it. The digest covers all of it. */
export interface Subject {
  readonly tool: ToolId;
  readonly arguments: JsonObject;
  /** The members of the client's message that no list knows. Left out if there are none. */
  readonly members?: OtherMembers | undefined;
  /** The hash of the tool's definition. */
  readonly definition: string;
  /** The version of the rules that required the question. */
  readonly rules: string;
  readonly actor: string;
  readonly workspace: string;
  /** Whether the tool is not to run, but to be saved. */
  readonly isSaved?: true;
  /**
   * Everything else the person must know: kind, command, permissions, keys, warnings; one line
   * each.
   */
  readonly facts?: readonly string[];
  /**
   * The texts of the tool's definition, if the user has not read them yet. The digest does not
   * cover them: it covers the hash of the definition.
   */
  readonly definitionLines?: readonly string[] | undefined;
}

/**
 * Returns the digest of subjects. Any change gives another digest. Throws BAD_ARGUMENTS if they are
 * not valid JSON.
 */
export function digestOf(subjects: readonly Subject[]): string {
  try {
    // Numbers are covered by their texts: `1` and `1.0` are two subjects.
    const bound = subjects.map(({ definitionLines: _, ...subject }) => subject);
    return sha256(canonical(bound as unknown as Json)); // undefined members are not written
  } catch (cause) {
    throw new PmlError("BAD_ARGUMENTS", "Cannot ask about this call: its arguments are no JSON", {
      hint: "Send finite numbers, well-formed text and fewer levels",
      cause,
    });
  }
}
