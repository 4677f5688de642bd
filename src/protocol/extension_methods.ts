/**
 * The extensions of MCP, and which extension a method belongs to.
 *
 * @module
 */

import { type JsonObject, objectOf } from "../core/json.ts";

/** The extension for tasks of 2026-07-28. PML serves it itself and does not pass it on. */
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

/** The extension for pages (MCP Apps). */
export const PAGES_EXTENSION = "io.modelcontextprotocol/ui";

/** The extensions whose methods PML knows. */
const KNOWN_EXTENSIONS = [PAGES_EXTENSION, TASKS_EXTENSION];

/**
 * The extension for skills (SEP-2640). It is not a known extension, because PML passes on those
 * methods of skills that it does not serve itself.
 */
export const SKILLS_EXTENSION = "io.modelcontextprotocol/skills";

/**
 * The extension of PML's own methods. PML does not pass on a server's method with this name,
 * because an attached PML (`transport/attach/window.ts`) would take it for a message of PML.
 */
const PML_EXTENSION = "pml";

/** The beginning of the methods of notifications. */
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

/** Returns whether a method belongs to the extension with the id `id`. */
export function isExtensionOf(id: string, method: string): boolean {
  return id.split("/").at(-1) === extensionNameOf(method);
}

/** Returns the client's extensions that PML declares to servers, by their ids. */
export function passedExtensions({ extensions }: JsonObject): JsonObject {
  const { [TASKS_EXTENSION]: _, ...passed } = objectOf(extensions);
  return passed;
}

/** Returns whether PML knows the methods of an extension. */
export function isKnownExtension(id: string): boolean {
  return KNOWN_EXTENSIONS.includes(id);
}

/** Returns the extensions of a server that PML does not know, by their ids. */
export function unknownExtensions(extensions: JsonObject): JsonObject {
  const unknown = Object.entries(extensions)
    .filter(([id]) => !isKnownExtension(id) && !isExtensionOf(id, PML_EXTENSION));
  return Object.fromEntries(unknown);
}

/** Returns whether a client declares the extension of a method that PML may pass on. */
export function declaresExtensionOf(method: string, capabilities: JsonObject = {}): boolean {
  // guard: extension-own
  if (extensionNameOf(method) === PML_EXTENSION) return false;
  return Object.keys(passedExtensions(capabilities)).some((id) => isExtensionOf(id, method));
}
