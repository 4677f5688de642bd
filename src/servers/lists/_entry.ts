/**
 * The cached lists of one server, and the state that they show.
 *
 * @module
 */

import type { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import type { ListItem, ListName } from "../../protocol/lists.ts";
import type { Server } from "../server.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import type { CatalogServer, RejectedTool } from "../../search/catalog.ts";

/** How many of the rejected tools a state names. */
const REJECTED_MAX = 5;

/** The state of a server, for users and models. */
export interface ServerState {
  readonly name: string;
  readonly kind: string;
  readonly origin: string;
  readonly state: "ready" | "unknown" | "blocked" | "failed";
  /** Why it is blocked or failed. */
  readonly why: string | undefined;
  readonly tools: number;
  /** The names of tools and skills that changed without an approval, if there are some. */
  readonly changed?: readonly string[];
}

/** Why tools of a server may be missing. The text contains no names of the server's tools. */
export type Trouble = Pick<ServerState, "name" | "state"> & { readonly why: string };

/** The cached facts about a server. */
export interface ListedServer {
  readonly source: Server;
  readonly lists: Map<ListName, readonly ListItem[]>;
  readonly failures: Map<ListName, PmlError>;
  /** Promises that resolve when a list is known, or its time limit has passed. */
  readonly waits: Map<ListName, Promise<void>>;
  /** Whether the tools have changed since they were loaded, as the server reported. */
  isOutdated: boolean;
  /** Resolves when changed tools are loaded again. */
  renewing: Promise<void> | undefined;
  /** The set of client capabilities that each list was requested for. */
  readonly ages: Map<ListName, number>;
  /** The number of the request whose answer each list is. */
  readonly requests: Map<ListName, number>;
  /** The tools whose definitions changed without an approval. */
  unapproved: readonly string[];
  /** The skills that clients are shown: of a skill that changed, the entry that is approved. */
  skills: readonly ListItem[];
  /** The skills that changed without an approval, by the names of their pins. */
  changedSkills: readonly string[];
  /** The instructions of the server as it sent them, and those that are approved. */
  sentInstructions: ToolDefinition | undefined;
  instructions: string | undefined;
  /** The tools that the catalog did not take, and why. */
  rejected: readonly RejectedTool[];
  /** How many tools the user left out. */
  omittedCount: number;
  /** Names in the user's settings that no tool of the server has. */
  unmet: readonly string[];
}

/** Creates the entry of a server whose lists were not requested yet. */
export function newEntry(source: Server): ListedServer {
  return {
    source,
    lists: new Map(),
    failures: new Map(),
    waits: new Map(),
    ages: new Map(),
    requests: new Map(),
    isOutdated: false,
    renewing: undefined,
    unapproved: [],
    skills: [],
    changedSkills: [],
    sentInstructions: undefined,
    instructions: undefined,
    rejected: [],
    omittedCount: 0,
    unmet: [],
  };
}

/** Returns a server as the catalog shows it. */
export function catalogServerOf({ name, title, origin }: Server): CatalogServer {
  return { name, origin: origin.name, isShipped: origin.isShipped, ...title && { title } };
}

/** Returns whether a list was requested from this server, so that clients may have an older one. */
export function isAsked({ lists, failures }: ListedServer, list: ListName): boolean {
  return lists.has(list) || failures.has(list);
}

/** Returns why lists of a server are incomplete; `left` is the reason for rejected tools. */
function whyOf({ source, failures }: ListedServer, omitted: string): string | undefined {
  const others = [...failures].filter(([list]) => list !== "tools")
    .map(([list, { message }]) => `no ${list}: ${message}`).join("; ");
  return source.blocked() ?? failures.get("tools")?.message ??
    ([others, omitted].filter(Boolean).join("; ") || undefined);
}

/** Returns the state of a server. */
export function stateOf(entry: ListedServer): ServerState {
  const { source, lists, failures, rejected, unmet } = entry;
  const reasons = rejected.slice(0, REJECTED_MAX)
    .map(({ name, reason }) => `left out ${quoted(name)}: ${reason}`).join("; ") +
    (rejected.length > REJECTED_MAX ? ` and ${rejected.length - REJECTED_MAX} more` : "");
  const tools = lists.get("tools");
  const state = tools === undefined ? "unknown" : "ready";
  const changed = [...entry.unapproved, ...entry.changedSkills];
  const trouble = failures.has("tools") ? "failed" : state;
  return {
    name: source.name,
    kind: source.kind,
    origin: source.origin.name,
    state: source.blocked() === undefined ? trouble : "blocked",
    why: whyOf(entry, [reasons, unmetText(unmet)].filter(Boolean).join("; ")),
    tools: (tools?.length ?? 0) - rejected.length - entry.omittedCount,
    ...(changed.length > 0 && { changed }),
  };
}

/** Returns the problem of a server; undefined if it has none. */
export function troubleOf(entry: ListedServer): Trouble | undefined {
  const { rejected: { length } } = entry;
  const note = length === 0 ? "" : `${length} of its tools ${length === 1 ? "is" : "are"} left out`;
  const why = whyOf(entry, note);
  const { name, state } = stateOf(entry);
  return why === undefined ? undefined : { name, state, why };
}

function unmetText(names: readonly string[]): string {
  if (names.length === 0) return "";
  return `its definition names tools that it does not list: ${
    names.map((name) => quoted(name)).join(", ")
  }`;
}
