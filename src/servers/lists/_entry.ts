/**
 * What is known of one server, and how that is told.
 *
 * @module
 */

import type { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import type { ListItem, ListName } from "../../protocol/lists.ts";
import type { Server } from "../server.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import type { CatalogServer, RejectedTool } from "../../search/catalog.ts";

/** How many of the tools that were left out are told of. */
const REJECTED_MAX = 5;

/** How a server stands, for people and models. */
export interface ServerState {
  readonly name: string;
  readonly kind: string;
  readonly origin: string;
  readonly state: "ready" | "unknown" | "blocked" | "failed";
  /** Why it is blocked or failed. */
  readonly why: string | undefined;
  readonly tools: number;
  /** The names of tools whose definitions changed without an approval, if there are some. */
  readonly changed?: readonly string[];
}

/** Why tools of a server may be missing, in none of the names that it gives them. */
export type Trouble = Pick<ServerState, "name" | "state"> & { readonly why: string };

/** What is known of a server. */
export interface Entry {
  readonly source: Server;
  readonly lists: Map<ListName, readonly ListItem[]>;
  readonly failures: Map<ListName, PmlError>;
  /** Over when a list is known, or once it was waited for long enough. */
  readonly waits: Map<ListName, Promise<void>>;
  /** Whether the tools have changed since they were loaded, as the server reported. */
  isOutdated: boolean;
  /** Over when tools that have changed are loaded again. */
  renewing: Promise<void> | undefined;
  /** For which client each list was asked for. */
  readonly ages: Map<ListName, number>;
  /** The tools whose definitions changed without an approval. */
  unapproved: readonly string[];
  /** The instructions of the server as it sent them, and those that are approved. */
  said: ToolDefinition | undefined;
  instructions: string | undefined;
  /** The tools that the catalog did not take, and why. */
  rejected: readonly RejectedTool[];
  /** How many tools the person left out. */
  left: number;
  /** What the person says of tools that it does not have. */
  unmet: readonly string[];
}

/** Makes the entry of a server that nobody has asked yet. */
export function newEntry(source: Server): Entry {
  return {
    source,
    lists: new Map(),
    failures: new Map(),
    waits: new Map(),
    ages: new Map(),
    isOutdated: false,
    renewing: undefined,
    unapproved: [],
    said: undefined,
    instructions: undefined,
    rejected: [],
    left: 0,
    unmet: [],
  };
}

/** Returns a server as the catalog shows it. */
export function catalogServerOf({ name, title, origin }: Server): CatalogServer {
  return { name, origin: origin.name, isShipped: origin.isShipped, ...title && { title } };
}

/** Tells whether clients may have been given a list without what this server has now. */
export function isAsked({ lists, failures }: Entry, list: ListName): boolean {
  return lists.has(list) || failures.has(list);
}

/** Says why lists of a server are not whole; `left` says it of the tools that were left out. */
function whyOf({ source, failures }: Entry, left: string): string | undefined {
  const others = [...failures].filter(([list]) => list !== "tools")
    .map(([list, { message }]) => `no ${list}: ${message}`).join("; ");
  return source.blocked() ?? failures.get("tools")?.message ??
    ([others, left].filter(Boolean).join("; ") || undefined);
}

/** Tells how a server stands. */
export function stateOf(entry: Entry): ServerState {
  const { source, lists, failures, rejected, unmet } = entry;
  const left = rejected.slice(0, REJECTED_MAX)
    .map(({ name, reason }) => `left out ${quoted(name)}: ${reason}`).join("; ") +
    (rejected.length > REJECTED_MAX ? ` and ${rejected.length - REJECTED_MAX} more` : "");
  const tools = lists.get("tools");
  const known = tools === undefined ? "unknown" : "ready";
  const trouble = failures.has("tools") ? "failed" : known;
  return {
    name: source.name,
    kind: source.kind,
    origin: source.origin.name,
    state: source.blocked() === undefined ? trouble : "blocked",
    why: whyOf(entry, [left, unmetText(unmet)].filter(Boolean).join("; ")),
    tools: (tools?.length ?? 0) - rejected.length - entry.left,
    ...(entry.unapproved.length > 0 && { changed: entry.unapproved }),
  };
}

/** Tells which problem a server has; undefined where it has none. */
export function troubleOf(entry: Entry): Trouble | undefined {
  const { rejected: { length } } = entry;
  const left = length === 0 ? "" : `${length} of its tools ${length === 1 ? "is" : "are"} left out`;
  const why = whyOf(entry, left);
  const { name, state } = stateOf(entry);
  return why === undefined ? undefined : { name, state, why };
}

function unmetText(names: readonly string[]): string {
  if (names.length === 0) return "";
  return `its definition names tools that it does not list: ${
    names.map((name) => quoted(name)).join(", ")
  }`;
}
