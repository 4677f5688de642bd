/**
 * The cached lists of one server, and the state of the server that PML shows because of them.
 *
 * @module
 */

import type { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import type { ListItem, ListName } from "../../protocol/lists.ts";
import type { Server } from "../server.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import type { CatalogServer, RejectedTool } from "../../search/catalog.ts";

/** The maximum number of rejected tools that the text of a state names. */
const REJECTED_MAX = 5;

/** The state of a server, for users and models. */
export interface ServerState {
  readonly name: string;
  readonly kind: string;
  readonly origin: string;
  readonly state: "ready" | "unknown" | "blocked" | "failed";
  /** Why the server is blocked or failed, or why lists of it are incomplete. */
  readonly why: string | undefined;
  /** The number of tools that clients can get. */
  readonly tools: number;
  /** The names of tools and skills that changed without an approval, if there are some. */
  readonly changed?: readonly string[];
}

/** Why tools of a server may be missing. `why` contains no names of the server's tools. */
export type Trouble = Pick<ServerState, "name" | "state"> & { readonly why: string };

/** The cached facts about a server. */
export interface ListedServer {
  readonly source: Server;
  readonly lists: Map<ListName, readonly ListItem[]>;
  /** The errors of the lists whose last request failed. */
  readonly failures: Map<ListName, PmlError>;
  /**
   * For each list that is being waited for: a promise that resolves to whether the request ended
   * within its time limit. Later requests for the list share this limit.
   */
  readonly waits: Map<ListName, Promise<boolean>>;
  /** Whether the server has reported a change of its tools since they were loaded. */
  isOutdated: boolean;
  /** Resolves when changed tools are loaded again. */
  reloading: Promise<void> | undefined;
  /** For which set of client capabilities each list was requested: the number of the set. */
  readonly capabilitySets: Map<ListName, number>;
  /** Which request returned each list: requests have increasing numbers. */
  readonly requests: Map<ListName, number>;
  /** The tools whose definitions changed without an approval. */
  unapproved: readonly string[];
  /** The skills that clients get: for a changed skill, the approved entry. */
  skills: readonly ListItem[];
  /** The skills that changed without an approval, by the names of their pins. */
  changedSkills: readonly string[];
  /** The instructions as the server sent them. */
  sentInstructions: ToolDefinition | undefined;
  /** The approved instructions. */
  instructions: string | undefined;
  /** The tools that the catalog rejected, with the reasons. */
  rejected: readonly RejectedTool[];
  /** How many tools the user disabled in the settings of the server. */
  omittedCount: number;
  /** The names in the user's settings that no tool of the server has. */
  unusedNames: readonly string[];
}

/** Creates the entry of a server whose lists were not requested yet. */
export function newEntry(source: Server): ListedServer {
  return {
    source,
    lists: new Map(),
    failures: new Map(),
    waits: new Map(),
    capabilitySets: new Map(),
    requests: new Map(),
    isOutdated: false,
    reloading: undefined,
    unapproved: [],
    skills: [],
    changedSkills: [],
    sentInstructions: undefined,
    instructions: undefined,
    rejected: [],
    omittedCount: 0,
    unusedNames: [],
  };
}

/** Returns the facts about a server that the catalog shows. */
export function catalogServerOf({ name, title, origin }: Server): CatalogServer {
  return { name, origin: origin.name, isShipped: origin.isShipped, ...title && { title } };
}

/** Returns whether a list of this server was requested before, so that clients may have got one. */
export function wasRequested({ lists, failures }: ListedServer, list: ListName): boolean {
  return lists.has(list) || failures.has(list);
}

/**
 * Returns why lists of a server are missing or incomplete; `omitted` is the text about left out
 * tools.
 */
function whyOf({ source, failures }: ListedServer, omitted: string): string | undefined {
  const others = [...failures].filter(([list]) => list !== "tools")
    .map(([list, { message }]) => `no ${list}: ${message}`).join("; ");
  return source.whyBlocked() ?? failures.get("tools")?.message ??
    ([others, omitted].filter(Boolean).join("; ") || undefined);
}

/** Returns the state of a server. */
export function stateOf(entry: ListedServer): ServerState {
  const { source, lists, failures, rejected, unusedNames } = entry;
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
    state: source.whyBlocked() === undefined ? trouble : "blocked",
    why: whyOf(entry, [reasons, unusedNamesText(unusedNames)].filter(Boolean).join("; ")),
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

function unusedNamesText(names: readonly string[]): string {
  if (names.length === 0) return "";
  return `its definition names tools that it does not list: ${
    names.map((name) => quoted(name)).join(", ")
  }`;
}
