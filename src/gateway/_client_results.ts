/**
 * Results as certain clients show them to their models: by the names that the clients send.
 *
 * @module
 */

import { ERROR_CODES } from "../core/errors.ts";
import { isObject, type Json, type JsonObject, listOf, objectOf, textOf } from "../core/json.ts";

/** Clients that show both the content and the structured content of an error. */
const SHOWS_BOTH: readonly string[] = ["copilot-cli", "@cline/core", "Cline"];
/** Clients that leave out links to resources. */
const DROPS_LINKS: readonly string[] = ["copilot-cli", "opencode"];
/** The members of an error of PML that its text repeats. */
const REPEATED = ["message", "hint"];

/** Returns the result of a tool as the client of this name shows all of it, once. */
export function forNamedClient(name: string, result: JsonObject): JsonObject {
  const shortened = SHOWS_BOTH.includes(name) ? withoutRepeats(result) : result;
  return DROPS_LINKS.includes(name) ? withLinkTexts(shortened) : shortened;
}

/** Returns a failed result whose structured content does not repeat the text of PML's error. */
function withoutRepeats(result: JsonObject): JsonObject {
  const { structuredContent, isError } = result;
  const { error } = objectOf(structuredContent);
  const { code } = objectOf(error);
  const isOfPml = isError === true && isObject(error) &&
    (ERROR_CODES as readonly unknown[]).includes(code);
  if (!isOfPml) return result;
  const texts = textsIn(result).join("\n");
  const rest = Object.entries(objectOf(error))
    .filter(([name, value]) => !REPEATED.includes(name) || !texts.includes(textOf(value)));
  return { ...result, structuredContent: { error: Object.fromEntries(rest) } };
}

/** Adds a line of text after each link whose address is in no text. */
function withLinkTexts(result: JsonObject): JsonObject {
  const { content } = result;
  const texts = textsIn(result);
  const isMissing = (block: Json) => {
    const { type, uri } = objectOf(block);
    return type === "resource_link" && !texts.some((text) => text.includes(textOf(uri)));
  };
  const blocks = listOf(content);
  if (!blocks.some(isMissing)) return result;
  const all = blocks.flatMap((block) => isMissing(block) ? [block, linkText(block)] : [block]);
  return { ...result, content: all };
}

function linkText(block: Json): JsonObject {
  const { name, title, uri, description } = objectOf(block);
  const more = textOf(description);
  const text = `Resource ${textOf(title) || textOf(name)}: ${textOf(uri)}${more && ` (${more})`}`;
  return { type: "text", text };
}

function textsIn({ content }: JsonObject): readonly string[] {
  return listOf(content).map(objectOf).flatMap(({ type, text }) =>
    type === "text" ? [textOf(text)] : []
  );
}
