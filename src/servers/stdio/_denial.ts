/**
 * Finds the access that a confined server was denied, and the missing grant in the form of the
 * configuration file.
 *
 * @module
 */

import { isObject, quoted } from "../../core/json.ts";
import type { Denial } from "../client/wire.ts";
import { askedFor } from "./_asked_for.ts";
import { lessonOf, merged, type TrialOptions } from "./learn.ts";

const DENIED = /Requires (read|write|net|run|env|sys|ffi) access(?: to "([^"\\]{1,300}))?/;

/** Finds a denial in the output or an answer of a server. */
export function denialIn(text: string, options: TrialOptions): Denial | undefined {
  const match = DENIED.exec(text);
  if (match === null) return undefined;
  const [, permission, value] = match;
  const { name, cwd, grants } = options;
  const record = JSON.stringify({ permission, value });
  // Programs are not in the record.
  const evidence = permission === "run" ? { record: "", texts: match[0] } : { record, texts: "" };
  const { missing, left } = lessonOf(
    askedFor(evidence.record, { texts: evidence.texts, cwd }),
    options,
  );
  const line = JSON.stringify({ [name]: merged(grants, missing) });
  const proposes = `\`pml learn ${name}\` finds out what it needs`;
  return {
    why: `it was denied ${permission} access to ${quoted(value ?? "all", 300)}`,
    hint: Object.keys(missing).length > 0
      ? `To allow it, write into .pml.json: "grants": ${line}; ${proposes}`
      : `${
        left[0]?.replace(/^.*?: /, "") ?? "it has a grant for that"
      }; ${proposes}. Without "confine" it has your rights`,
  };
}

/** Finds denials in texts of a server. */
interface DenialFinder {
  denial(text: string): Denial | undefined;
}

/** Adds the missing grant to an answer that reports a denial. */
export function withRemark(message: unknown, launched: DenialFinder): unknown {
  if (!isObject(message)) return message;
  const { result, error } = message;
  if (isObject(error)) {
    const denial = launched.denial(String(error.message));
    return denial
      ? { ...message, error: { ...error, message: `${error.message}\n${remark(denial)}` } }
      : message;
  }
  if (!isObject(result) || result.isError !== true || !Array.isArray(result.content)) {
    return message;
  }
  const texts = result.content.map((block) => isObject(block) ? String(block.text) : "");
  const denial = launched.denial(texts.join("\n"));
  if (denial === undefined) return message;
  const content = [...result.content, { type: "text", text: remark(denial) }];
  return { ...message, result: { ...result, content } };
}

function remark({ why, hint }: Denial): string {
  return `PML confines this server, and its answer says that ${why}. ${hint}`;
}
