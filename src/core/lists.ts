/**
 * The lists that a server answers, and what stands in them.
 *
 * @module
 */

import type { Json } from "./json.ts";
import { memoized } from "./memo.ts";

/** A list of a server: the field of the result that holds it. */
export type ListName = "tools" | "resources" | "resourceTemplates" | "prompts";

/** How a list is asked for, and what makes an item one. */
export interface ListKind {
  /** The method of MCP. */
  readonly method: string;
  /** The capability without which a server has no such list. */
  readonly capability: string;
  /** The member that each item must have, a text. */
  readonly key: string;
}

/** Every list that there is. */
export const LISTS: Readonly<Record<ListName, ListKind>> = {
  tools: { method: "tools/list", capability: "tools", key: "name" },
  resources: { method: "resources/list", capability: "resources", key: "uri" },
  resourceTemplates: {
    method: "resources/templates/list",
    capability: "resources",
    key: "uriTemplate",
  },
  prompts: { method: "prompts/list", capability: "prompts", key: "name" },
};

/** The names of all lists. */
export const LIST_NAMES = Object.keys(LISTS) as readonly ListName[]; // its own keys

/** One entry of a list, as its server has it. */
export interface ListItem {
  /** The value of a member. */
  readonly [key: string]: Json | undefined;
}

/**
 * Returns the tools of a list that others than their server may know of: the same array for the
 * same list. A tool whose `visibility` is `internal` is in no list and no search, and who calls it
 * is told that there is none.
 */
export const externalTools: <T extends object>(tools: readonly T[]) => readonly T[] = memoized(
  <T extends { readonly visibility?: Json }>(tools: readonly T[]) => {
    const shown = tools.filter(({ visibility }) => visibility !== "internal");
    return shown.length === tools.length ? tools : shown;
  },
);
