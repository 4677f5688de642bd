/**
 * The skill of PML itself: how to use PML well. The first request for skills loads its text.
 *
 * @module
 */

import file from "../../config/skills/using-pml/SKILL.md" with { type: "text" };
import { sha256 } from "../core/hash.ts";
import type { JsonObject } from "../core/json.ts";
import { childrenOf } from "../protocol/skills.ts";

/** The file with "\n" as line ends, so that its digest is the same after a checkout on Windows. */
const text = file.replaceAll("\r\n", "\n");
const DIRECTORY = "skill://pml/using-pml";
const SKILL_URI = `${DIRECTORY}/SKILL.md`;
const MIME = "text/markdown";
/** Lets a client cache an answer for an hour, because only another version of PML changes it. */
const CACHE_MEMBERS: JsonObject = { ttlMs: 3_600_000, cacheScope: "public" };
const [, name = "", description = ""] = /^---\nname: (.*)\ndescription: (.*)\n---\n/.exec(text) ??
  [];

/** The entry of the skill. */
export const OWN_SKILL: JsonObject = {
  uri: SKILL_URI,
  frontmatter: { name, description },
  resources: [
    {
      uri: SKILL_URI,
      digest: `sha256:${sha256(text)}`,
      size: new TextEncoder().encode(text).length,
    },
  ],
};

/** Returns the answer to a request for the skill; undefined if the address is not part of it. */
export function ownSkillAnswer(method: string, uri: unknown): JsonObject | undefined {
  if (uri === SKILL_URI && method === "skills/get") return { skill: OWN_SKILL, ...CACHE_MEMBERS };
  if (uri === SKILL_URI && method === "resources/read") {
    return { contents: [{ uri: SKILL_URI, mimeType: MIME, text }], ...CACHE_MEMBERS };
  }
  if (uri !== DIRECTORY || method !== "resources/directory/read") return undefined;
  const resources = childrenOf(OWN_SKILL, DIRECTORY) ?? [];
  return { resources: resources.map((one) => ({ ...one, mimeType: MIME })), ...CACHE_MEMBERS };
}
