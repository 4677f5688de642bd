/**
 * The lists of a server, and their items.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { type Json, quoted } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import { SKILLS_EXTENSION } from "./extension_methods.ts";

/** A list of a server, by the member that contains it in results. */
export type ListName = "tools" | "resources" | "resourceTemplates" | "prompts" | "skills";

/** How a list is requested, and which member its items must have. */
export interface ListKind {
  /** The MCP method. */
  readonly method: string;
  /** The capability that a server with such a list declares. */
  readonly capability: "tools" | "resources" | "prompts";
  /** The member, a string, that each item must have. */
  readonly key: string;
  /** The extension that a server with such a list must also declare. */
  readonly extension?: string;
}

/** All lists. */
export const LISTS: Readonly<Record<ListName, ListKind>> = {
  tools: { method: "tools/list", capability: "tools", key: "name" },
  resources: { method: "resources/list", capability: "resources", key: "uri" },
  resourceTemplates: {
    method: "resources/templates/list",
    capability: "resources",
    key: "uriTemplate",
  },
  prompts: { method: "prompts/list", capability: "prompts", key: "name" },
  skills: {
    method: "skills/list",
    capability: "resources",
    key: "uri",
    extension: SKILLS_EXTENSION,
  },
};

/** The names of all lists. */
export const LIST_NAMES = Object.keys(LISTS) as readonly ListName[]; // the keys of a literal

/** One item of a list, as its server sent it. */
export interface ListItem {
  /** The value of a member. */
  readonly [key: string]: Json | undefined;
}

/**
 * The name of the item in a list of tools that contains the instructions of the server, so that
 * they are cached and pinned like a definition. It is not a valid tool name.
 */
export const INSTRUCTIONS = "@instructions";

/** The maximum size of a server's instructions, in bytes. */
const INSTRUCTIONS_BYTES = 4_096;

/** Adds the instructions of a server, if they are not empty, to its tools as an internal item. */
export function withInstructions(
  tools: readonly ListItem[],
  instructions: string,
): readonly ListItem[] {
  const serverTools = tools.filter(({ name }) => name !== INSTRUCTIONS);
  if (instructions.trim() === "") return serverTools;
  const bytes = new Uint8Array(INSTRUCTIONS_BYTES);
  const { read } = new TextEncoder().encodeInto(instructions, bytes);
  const cut = read < instructions.length ? "…" : "";
  const description = `${instructions.slice(0, read)}${cut}`;
  return [...serverTools, {
    name: INSTRUCTIONS,
    description,
    inputSchema: {},
    visibility: "internal",
  }];
}

/** Returns the item with the instructions of a server. */
export function instructionsIn<T extends object>(tools: readonly T[]): T | undefined {
  return tools.find((tool) => "name" in tool && tool.name === INSTRUCTIONS);
}

/**
 * Returns the tools of a list that are not internal; the same array for the same list. Tools with
 * `visibility: "internal"` are in no list and no search, and calling one fails as for an unknown
 * tool.
 */
export const externalTools: <T extends object>(tools: readonly T[]) => readonly T[] = memoized(
  <T extends { readonly visibility?: Json }>(tools: readonly T[]) => {
    const visible = tools.filter(({ visibility }) => visibility !== "internal");
    return visible.length === tools.length ? tools : visible;
  },
);

/**
 * Returns the error for reading a list of an unapproved server, because that would run the server.
 */
export function unreadableError(
  list: ListName,
  { server, why }: { readonly server: string; readonly why: string },
): PmlError {
  return new PmlError("APPROVAL_REQUIRED", `Cannot read the ${list} of ${quoted(server)}: ${why}`, {
    hint: "Call the tool itself, so that the user is asked",
  });
}
