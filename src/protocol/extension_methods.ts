/**
 * The extensions that methods belong to.
 *
 * @module
 */

import { type JsonObject, objectOf } from "../core/json.ts";

/** The extension for tasks of 2026-07-28. PML uses it itself, so it is not passed on. */
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

/** The extension for pages (MCP Apps). */
export const PAGES_EXTENSION = "io.modelcontextprotocol/ui";

/** The extensions whose methods PML knows. */
const KNOWN = [PAGES_EXTENSION, TASKS_EXTENSION];

/** The extension for skills (SEP-2640). PML serves its methods itself. */
export const SKILLS_EXTENSION = "io.modelcontextprotocol/skills";

/** The extension of PML's own methods. A window would treat a server's method in it as PML's. */
const OWN = "pml";

/** How the methods of notifications begin. */
const NOTIFICATIONS = /^notifications\//;

/**
 * Returns the last part of the id of the extension that a method belongs to: its first segment,
 * without `notifications/`.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 *
 * assert.equal(extensionNameOf("skills/list"), "skills");
 * assert.equal(extensionNameOf("notifications/skills/changed"), "skills");
 * ```
 */
export function extensionNameOf(method: string): string {
  const [name = ""] = method.replace(NOTIFICATIONS, "").split("/");
  return name;
}

/** Returns whether the id of an extension is one that a method belongs to. */
export function isExtensionOf(id: string, method: string): boolean {
  return id.split("/").at(-1) === extensionNameOf(method);
}

/** Returns the extensions of a client that are passed on to servers, by their ids. */
export function passedExtensions({ extensions }: JsonObject): JsonObject {
  const { [TASKS_EXTENSION]: _, ...passed } = objectOf(extensions);
  return passed;
}

/** Returns whether PML knows the methods of an extension. */
export function isKnownExtension(id: string): boolean {
  return KNOWN.includes(id);
}

/** Returns the extensions of a server that PML does not know, by their ids. */
export function unknownExtensions(extensions: JsonObject): JsonObject {
  const unknown = Object.entries(extensions)
    .filter(([id]) => !isKnownExtension(id) && !isExtensionOf(id, OWN));
  return Object.fromEntries(unknown);
}

/** Returns whether a client declares the extension of a method, and PML passes it on. */
export function declaresExtensionOf(method: string, capabilities: JsonObject = {}): boolean {
  // guard: extension-own
  if (extensionNameOf(method) === OWN) return false;
  return Object.keys(passedExtensions(capabilities)).some((id) => isExtensionOf(id, method));
}
