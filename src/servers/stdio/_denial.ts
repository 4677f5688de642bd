/**
 * Finds the access that a confined server was denied. Its hint shows the missing grant as the user
 * would write it into the configuration file.
 *
 * @module
 */

import { isObject, quoted } from "../../core/json.ts";
import type { Denial } from "../client/wire.ts";
import { readRequestedAccess } from "./_requested_access.ts";
import { mergeGrants, toLesson, type TrialOptions } from "./learn.ts";

const DENIED = /Requires (read|write|net|run|env|sys|ffi) access(?: to "([^"\\]{1,300}))?/;

/** Finds a denied access in the output or an answer of a server; undefined if there is none. */
export function denialIn(text: string, options: TrialOptions): Denial | undefined {
  const match = DENIED.exec(text);
  if (match === null) return undefined;
  const [, permission, value] = match;
  const { name, cwd, grants } = options;
  const record = JSON.stringify({ permission, value });
  // `readRequestedAccess` reads denied programs from texts, because Deno's record lacks them.
  const evidence = permission === "run" ? { record: "", texts: match[0] } : { record, texts: "" };
  const { missing, left } = toLesson(
    readRequestedAccess(evidence.record, { texts: evidence.texts, cwd }),
    options,
  );
  const line = JSON.stringify({ [name]: mergeGrants(grants, missing) });
  const proposes = `\`pml learn ${name}\` finds out what it needs`;
  return {
    why: `it was denied ${permission} access to ${quoted(value ?? "all", 300)}`,
    hint: Object.keys(missing).length > 0
      ? `To allow it, write into .pml.json: "grants": ${line}; ${proposes}`
      : `${
        (left[0]?.replace(/^.*?: /, "") ?? "it has a grant for that")
          .replace(/^[a-z]/, (letter) => letter.toUpperCase())
      }; ${proposes}. Without "confine" it has your rights`,
  };
}

/** Finds denials in texts of a server. */
interface DenialFinder {
  denial(text: string): Denial | undefined;
}

/** Returns an answer of a server. If it reports a denied access, adds the missing grant to it. */
export function withRemark(message: unknown, finder: DenialFinder): unknown {
  if (!isObject(message)) return message;
  const { result, error } = message;
  if (isObject(error)) {
    const denial = finder.denial(String(error.message));
    return denial
      ? { ...message, error: { ...error, message: `${error.message}\n${remark(denial)}` } }
      : message;
  }
  if (!isObject(result) || result.isError !== true || !Array.isArray(result.content)) {
    return message;
  }
  const texts = result.content.map((block) => isObject(block) ? String(block.text) : "");
  const denial = finder.denial(texts.join("\n"));
  if (denial === undefined) return message;
  const content = [...result.content, { type: "text", text: remark(denial) }];
  return { ...message, result: { ...result, content } };
}

function remark({ why, hint }: Denial): string {
  return `PML confines this server, and its answer says that ${why}. ${hint}`;
}
