/**
 * Checks the entries of skills (SEP-2640), and finds the files that belong to them.
 *
 * @module
 */

import { numberOf } from "../core/exact_number.ts";
import {
  decodePercents,
  isObject,
  type Json,
  type JsonObject,
  listOf,
  objectOf,
  textOf,
  textsIn,
} from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import type { ListItem } from "./lists.ts";
import { safeText } from "./safe_text.ts";
import type { ToolDefinition } from "./tool.ts";

/** The method that lists the children of a directory. */
export const DIRECTORY_READ = "resources/directory/read";

/** The maximum number of skills of one server. */
export const SKILLS_MAX = 1_000;
/** The maximum number and total size in bytes of the files of one skill, by the extension. */
const [FILES_MAX, BYTES_MAX] = [512, 16_777_216];
/** The maximum length in characters and the maximum depth of a frontmatter. */
const [FRONTMATTER_MAX, FRONTMATTER_DEPTH] = [64_000, 32];
/** The maximum length in characters and the maximum number of segments of an address. */
const [URI_MAX, SEGMENTS_MAX] = [2_000, 64];

const SCHEME = "skill://";
const SKILL_PIN = /^@skill\([!-~]{1,2000}\)$/;
/** An address without query and fragment, and with only ASCII characters. */
const URI = /^([a-z][a-z\d+.-]*:(?:\/\/)?)([!$-.0-;=@-[\]_a-z~][!$-;=@-[\]_a-z~]*)$/i;
const MANIFEST = "/SKILL.md";
const NAME = /^[a-z\d]+(?:-[a-z\d]+)*$/;
const DIGEST = /^sha256:[\da-f]{64}$/;
/** The maximum lengths of texts in a frontmatter, in characters, by the Agent Skills standard. */
const [NAME_MAX, DESCRIPTION_MAX, COMPATIBILITY_MAX] = [64, 1_024, 500];

/** A file of a skill. */
export interface SkillFile {
  readonly digest: string;
  readonly size: number;
}

/** The parts of an entry that PML uses. */
interface SkillParts {
  /** The address of the directory, decoded. */
  readonly root: string;
  /** The files by their decoded addresses; undefined if the server generates them. */
  readonly files: ReadonlyMap<string, SkillFile> | undefined;
}

/** Returns whether an address has the scheme for skills, so that rules for skills apply. */
export function isSkillAddress(uri: string): boolean {
  return uri.slice(0, SCHEME.length).toLowerCase() === SCHEME;
}

/**
 * Returns why PML leaves out the entry of a skill; undefined if it is valid. Clients refuse an
 * invalid entry, and some clients then refuse the whole list.
 */
export function skillProblem(
  { uri, frontmatter, resources, _meta }: JsonObject,
): string | undefined {
  const segments = segmentsOf(textOf(uri));
  if (segments === undefined || !textOf(uri).endsWith(MANIFEST) || segments.length < 3) {
    return "its address is not a plain address that ends with /SKILL.md";
  }
  if (_meta !== undefined && !isObject(_meta)) return "its _meta is not an object";
  return frontmatterProblem(frontmatter, segments.at(-2)) ?? filesProblem(textOf(uri), resources);
}

function frontmatterProblem(
  frontmatter: Json | undefined,
  directory: string | undefined,
): string | undefined {
  if (!isObject(frontmatter) || Object.hasOwn(frontmatter, "__proto__")) {
    return "its frontmatter is not a plain object";
  }
  const { name, description, compatibility = "-", metadata = {} } = frontmatter;
  if (typeof name !== "string" || name.length > NAME_MAX || !NAME.test(name)) {
    return "its name is not 1 to 64 lowercase letters, digits and single hyphens";
  }
  if (name !== directory) return "its name is not that of its directory";
  if (!isShortText(description, DESCRIPTION_MAX)) {
    return "its description is not a text of 1 to 1,024 characters";
  }
  if (!isShortText(compatibility, COMPATIBILITY_MAX)) {
    return "its compatibility is not a text of 1 to 500 characters";
  }
  const hasOnlyTexts = isObject(metadata) &&
    Object.values(metadata).every((value) => typeof value === "string");
  if (!hasOnlyTexts) return "its metadata contains values other than texts";
  if (JSON.stringify(frontmatter).length > FRONTMATTER_MAX) {
    return `its frontmatter has over ${FRONTMATTER_MAX} characters`;
  }
  if (depthOf(frontmatter, FRONTMATTER_DEPTH) > FRONTMATTER_DEPTH) {
    return `its frontmatter has over ${FRONTMATTER_DEPTH} levels`;
  }
  // PML cannot replace hidden characters by escapes, because clients compare the entry with the file.
  // guard: skill-hidden
  if (textsIn(frontmatter).some((text) => safeText(text) !== text)) {
    return "its frontmatter has hidden characters";
  }
  return undefined;
}

function filesProblem(uri: string, resources: Json | undefined): string | undefined {
  if (resources === "dynamic") return undefined;
  if (!Array.isArray(resources)) return "it has no list of files";
  // guard: skill-files
  if (resources.length > FILES_MAX) return `it has ${resources.length} files, over ${FILES_MAX}`;
  const root = segmentsOf(uri)?.slice(0, -1).join("/");
  const keys = new Set<string>();
  let bytes = 0;
  for (const { uri: file, digest, size } of resources.map(objectOf)) {
    const key = keyOf(textOf(file));
    // guard: skill-outside
    if (key === undefined || !key.startsWith(`${root}/`)) {
      return "a file is outside of its directory";
    }
    if (keys.has(key)) return "it lists a file twice";
    if (!DIGEST.test(textOf(digest))) return "a digest is not a SHA-256";
    const count = numberOf(size) ?? -1;
    if (!Number.isSafeInteger(count) || count < 0) {
      return "the size of a file is not a number of bytes";
    }
    keys.add(key);
    bytes += count;
  }
  if (!keys.has(keyOf(uri) ?? "")) return "its files do not contain its SKILL.md";
  return bytes > BYTES_MAX ? `its files have ${bytes} bytes, over ${BYTES_MAX}` : undefined;
}

/** Returns the skill in whose directory an address is; undefined if there is none. */
export function skillOf(skills: readonly ListItem[], uri: string): ListItem | undefined {
  const key = keyOf(uri);
  if (key === undefined) return undefined;
  let match: ListItem | undefined;
  let longest = 0;
  for (const skill of skills) {
    const { root } = partsOf(skill);
    const isWithin = key === root || key.startsWith(`${root}/`);
    // A skill can be inside the directory of another one, so the longest match wins.
    if (isWithin && root.length > longest) [match, longest] = [skill, root.length];
  }
  return match;
}

/** Returns the digest and the size of a file; undefined if the skill does not list it. */
export function fileOf(skill: ListItem, uri: string): SkillFile | undefined {
  return partsOf(skill).files?.get(keyOf(uri) ?? "");
}

/**
 * Returns whether a skill contains an address: a listed file, or a directory of one. If the server
 * generates the files, they are unknown, and every address in the skill's directory counts.
 */
export function hasAddress(skill: ListItem, uri: string): boolean {
  const { files, root } = partsOf(skill);
  const key = keyOf(uri);
  if (files === undefined || key === undefined || key === root) return key !== undefined;
  return files.has(key) || [...files.keys()].some((file) => file.startsWith(`${key}/`));
}

/**
 * Returns a skill as a definition, so that its digests are pinned like a tool. Returns the same
 * object for the same entry.
 */
export const skillDefinition = memoized((skill: ListItem): ToolDefinition => ({
  name: `@skill(${textOf(skill.uri)})`,
  inputSchema: {},
  skill: skill as JsonObject, // it came as JSON
}));

/** Returns the names and the descriptions of skills as one definition, for an approval request. */
export const skillTexts = memoized((skills: readonly ListItem[]): ToolDefinition => ({
  name: "@skills",
  inputSchema: {},
  skills: skills.map(({ uri, frontmatter }) => {
    const { name, description } = objectOf(frontmatter);
    return `${textOf(name)} (${textOf(uri)}): ${textOf(description)}`;
  }),
}));

/** Returns whether a name is the name of a skill's definition. No tool can have such a name. */
export function isSkillPin(name: string): boolean {
  return SKILL_PIN.test(name);
}

/** Returns the skill of a definition; undefined if the definition is about a tool. */
export function skillIn({ name, skill }: ToolDefinition): ListItem | undefined {
  return isSkillPin(name) && isObject(skill) ? objectOf(skill) : undefined;
}

/** Returns the children of a skill's directory; undefined if the files of the skill are unknown. */
export function childrenOf(skill: ListItem, uri: string): readonly JsonObject[] | undefined {
  const { files } = partsOf(skill);
  const key = keyOf(uri);
  const isDirectory = files !== undefined && key !== undefined && !files.has(key);
  if (!isDirectory || !hasAddress(skill, uri)) return undefined;
  const { length } = uri.split("/");
  const children = new Map<string, JsonObject>();
  for (const { uri: fileUri, size } of listOf(skill.resources).map(objectOf)) {
    if (keyOf(textOf(fileUri))?.startsWith(`${key}/`) !== true) continue;
    const parts = textOf(fileUri).split("/");
    const child = {
      uri: parts.slice(0, length + 1).join("/"),
      name: decodePercents(parts[length] ?? ""),
    };
    const isFile = parts.length === length + 1;
    const kind: JsonObject = isFile ? { size: size ?? 0 } : { mimeType: "inode/directory" };
    children.set(child.name, { ...child, ...kind });
  }
  return [...children.values()];
}

/** Returns whether an address is a direct child of a directory. */
export function isChildOf(directory: string, uri: string): boolean {
  const segments = segmentsOf(uri);
  // guard: skill-children
  return segments !== undefined && segments.slice(0, -1).join("/") === keyOf(directory);
}

/** Returns a skill whose addresses `rename` has changed. */
export function renameSkill(skill: ListItem, rename: (uri: string) => string): JsonObject {
  const { uri, resources } = skill;
  return {
    ...skill,
    uri: rename(textOf(uri)),
    ...Array.isArray(resources) && { resources: renameSkills(resources, rename) },
  } as JsonObject; // it came as JSON
}

/** Returns objects, such as contents and resources, whose addresses `rename` has changed. */
export function renameSkills(
  all: readonly Json[],
  rename: (uri: string) => string,
): readonly JsonObject[] {
  return all.map(objectOf).map((one) =>
    typeof one.uri === "string" ? { ...one, uri: rename(one.uri) } : one
  );
}

const partsOf = memoized(({ uri, resources }: ListItem): SkillParts => {
  const root = segmentsOf(textOf(uri))?.slice(0, -1).join("/") ?? "";
  if (!Array.isArray(resources)) return { root, files: undefined };
  const files = resources.map(objectOf).map(({ uri, digest, size }) => {
    return [keyOf(textOf(uri)) ?? "", {
      digest: textOf(digest),
      size: numberOf(size) ?? -1,
    }] as const;
  });
  return { root, files: new Map(files) };
});

/** Returns the same key for all spellings of an address; undefined if it is not a plain address. */
function keyOf(uri: string): string | undefined {
  return segmentsOf(uri)?.join("/");
}

/** Returns the scheme and the decoded segments of an address; undefined if it is not plain. */
function segmentsOf(uri: string): readonly string[] | undefined {
  if (uri.length > URI_MAX) return undefined;
  const [, scheme = "pml:", path = ""] = URI.exec(uri) ?? [];
  const segments = path.split("/").map(segmentOf);
  // guard: skill-of-pml
  if (scheme.toLowerCase().startsWith("pml:") || segments.length > SEGMENTS_MAX) return undefined;
  return segments.every((segment) => segment !== undefined)
    ? [scheme.toLowerCase(), ...segments]
    : undefined;
}

/** Returns a decoded segment; undefined if it could lead to another directory. */
function segmentOf(segment: string): string | undefined {
  try {
    const decoded = decodeURIComponent(segment);
    const isPlain = !["", ".", ".."].includes(decoded) && !/[/\\\p{Cc}]/u.test(decoded);
    return isPlain ? decoded : undefined;
  } catch {
    return undefined; // a percent code is not valid
  }
}

function isShortText(value: unknown, maxLength: number): boolean {
  return typeof value === "string" && value !== "" &&
    [...value.slice(0, 2 * maxLength + 1)].length <= maxLength;
}

/** Returns the depth of JSON; any number above `most` if it is deeper than `most`. */
function depthOf(json: unknown, maxDepth: number): number {
  if (typeof json !== "object" || json === null) return 0;
  if (maxDepth === 0) return 1;
  return 1 + Math.max(0, ...Object.values(json).map((value) => depthOf(value, maxDepth - 1)));
}
