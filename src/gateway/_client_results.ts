/**
 * Adapts results for certain clients, which PML knows by their names: they show results to their
 * models in an unusual way.
 *
 * @module
 */

import { ERROR_CODES } from "../core/errors.ts";
import { isObject, type Json, type JsonObject, listOf, objectOf, textOf } from "../core/json.ts";

/** Clients that show both the content and the structured content of an error. */
const CLIENTS_SHOWING_BOTH: readonly string[] = ["copilot-cli", "@cline/core", "Cline"];
/** Clients that do not show links to resources. */
const CLIENTS_DROPPING_LINKS: readonly string[] = ["copilot-cli", "opencode"];
/** The members of a PML error that the text of the failed result repeats. */
const REPEATED_MEMBERS = ["message", "hint"];

/** Returns a result in a form that the client `name` shows completely and without repetitions. */
export function adaptToClient(name: string, result: JsonObject): JsonObject {
  const shortened = CLIENTS_SHOWING_BOTH.includes(name) ? withoutRepeats(result) : result;
  return CLIENTS_DROPPING_LINKS.includes(name) ? withLinkTexts(shortened) : shortened;
}

/** Returns a failed result whose structured content does not repeat the text of PML's error. */
function withoutRepeats(result: JsonObject): JsonObject {
  const { structuredContent, isError } = result;
  const { error } = objectOf(structuredContent);
  const { code } = objectOf(error);
  const isPmlError = isError === true && isObject(error) &&
    (ERROR_CODES as readonly unknown[]).includes(code);
  if (!isPmlError) return result;
  const texts = textsIn(result).join("\n");
  const rest = Object.entries(objectOf(error))
    .filter(([name, value]) => !REPEATED_MEMBERS.includes(name) || !texts.includes(textOf(value)));
  return { ...result, structuredContent: { error: Object.fromEntries(rest) } };
}

/** Adds a line of text after each link whose address is in no text. */
function withLinkTexts(result: JsonObject): JsonObject {
  const { content } = result;
  const texts = textsIn(result);
  const isUnnamedLink = (block: Json) => {
    const { type, uri } = objectOf(block);
    return type === "resource_link" && !texts.some((text) => text.includes(textOf(uri)));
  };
  const blocks = listOf(content);
  if (!blocks.some(isUnnamedLink)) return result;
  const all = blocks.flatMap((block) => isUnnamedLink(block) ? [block, linkText(block)] : [block]);
  return { ...result, content: all };
}

function linkText(block: Json): JsonObject {
  const { name, title, uri, description } = objectOf(block);
  const about = textOf(description);
  const text = `Resource ${textOf(title) || textOf(name)}: ${textOf(uri)}${about && ` (${about})`}`;
  return { type: "text", text };
}

function textsIn({ content }: JsonObject): readonly string[] {
  return listOf(content).map(objectOf).flatMap(({ type, text }) =>
    type === "text" ? [textOf(text)] : []
  );
}
