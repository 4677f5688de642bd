/**
 * What a question is about, and the digest that binds an answer to exactly that.
 *
 * @module
 */

import canonicalize from "canonicalize";
import { PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import type { JsonObject } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";

/** One call as a person is asked about it. Everything in it is bound by the digest. */
export interface Subject {
  readonly tool: ToolId;
  readonly arguments: JsonObject;
  /** The hash of the tool's definition. */
  readonly definition: string;
  /** The version of the rules that asked. */
  readonly rules: string;
  readonly actor: string;
  readonly workspace: string;
  /** What else the person has to know: kind, command, permissions, keys, warnings; one line each. */
  readonly facts?: readonly string[];
}

/** Hashes what is asked about: any change to it gives another digest. */
export function digestOf(subjects: readonly Subject[]): string {
  try {
    // The package says that it may give nothing, which is so for `undefined` alone.
    return sha256(canonicalize(subjects) ?? "");
  } catch (cause) {
    throw new PmlError("BAD_ARGUMENTS", "Cannot ask about this call: its arguments are no JSON", {
      hint: "Send finite numbers, well-formed text and fewer levels",
      cause,
    });
  }
}
