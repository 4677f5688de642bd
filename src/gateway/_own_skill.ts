/**
 * The skill of PML itself: how to use PML well. The first request for skills loads its text.
 *
 * @module
 */

import file from "../../config/skills/using-pml/SKILL.md" with { type: "text" };
import { sha256 } from "../core/hash.ts";
import type { JsonObject } from "../core/json.ts";
import { childrenOf } from "../protocol/skills.ts";

/** A checkout on Windows may have other line ends. */
const text = file.replaceAll("\r\n", "\n");
const ROOT = "skill://pml/using-pml";
const URI = `${ROOT}/SKILL.md`;
const MIME = "text/markdown";
/** How long a client may cache an answer, in milliseconds: the text changes with the version. */
const CACHE: JsonObject = { ttlMs: 3_600_000, cacheScope: "public" };
const [, name = "", description = ""] = /^---\nname: (.*)\ndescription: (.*)\n---\n/.exec(text) ??
  [];

/** The entry of the skill. */
export const OWN_SKILL: JsonObject = {
  uri: URI,
  frontmatter: { name, description },
  resources: [
    { uri: URI, digest: `sha256:${sha256(text)}`, size: new TextEncoder().encode(text).length },
  ],
};

/** Returns the answer to a request for the skill; undefined if the address is not part of it. */
export function ownSkillAnswer(method: string, uri: unknown): JsonObject | undefined {
  if (uri === URI && method === "skills/get") return { skill: OWN_SKILL, ...CACHE };
  if (uri === URI && method === "resources/read") {
    return { contents: [{ uri: URI, mimeType: MIME, text }], ...CACHE };
  }
  if (uri !== ROOT || method !== "resources/directory/read") return undefined;
  const resources = childrenOf(OWN_SKILL, ROOT) ?? [];
  return { resources: resources.map((one) => ({ ...one, mimeType: MIME })), ...CACHE };
}
