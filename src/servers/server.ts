/**
 * The interface of a server of any kind. Calls, lists, search and explanations use only this
 * interface.
 *
 * @module
 */

import type { Call, Outcome } from "../protocol/call.ts";
import type { ListItem, ListName } from "../protocol/lists.ts";
import type { PmlError } from "../core/errors.ts";
import type { Maybe } from "../core/maybe.ts";
import type { ServerIdentity, Unapproved } from "../policy/server_identity.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { ToolSettings } from "../core/tool_settings.ts";

/** The properties of the source of a server. Other code uses these, not the name of the source. */
export interface Origin {
  /** The name in lists and messages: `builtin`, `private`, `registry` or `cloud`. */
  readonly name: string;
  /**
   * Whether the servers of the source are part of PML. Such servers need no key, and their lists
   * never change while PML runs.
   */
  readonly isShipped: boolean;
  /**
   * Whether the servers of the source are fetched from a registry. Such a server may change or
   * disappear at any time, and works without a network only after it was fetched once.
   */
  readonly isFetched: boolean;
}

/** A server. It is the same object until the configuration is read again. */
export interface Server {
  readonly name: string;
  /** The name to show to users. */
  readonly title?: string | undefined;
  readonly origin: Origin;
  /** The name of its kind: `deno`, `stdio`, `http`, `cloud` or another kind. */
  readonly kind: string;
  /** The definition of the server. A different object means a different server. */
  readonly definition: object | undefined;
  /** The user's settings for the server's tools. */
  readonly settings?: ToolSettings | undefined;
  /**
   * Whether the server notifies PML of changed lists. Its lists may differ from client to client.
   */
  readonly reportsChanges: boolean;
  /**
   * Whether the server checks arguments and results of all its tools itself, so that PML need not.
   */
  readonly checksItself: boolean;
  /**
   * Returns the identity that an approval covers; undefined for servers that ship with PML. An
   * installation can change it.
   */
  identity(): Promise<ServerIdentity | undefined>;
  /** Returns the reason why the server may not run now; undefined if it may. Starts nothing. */
  whyBlocked(): string | undefined;
  /** Returns an approval request for a call; undefined if everything is approved. */
  findUnapproved(call: ResolvedCall): Maybe<Unapproved | undefined>;
  /**
   * Returns the definition of the tool or method of a call. Throws if the call cannot run, such as
   * without a key.
   */
  definitionFor(call: Call): Maybe<ToolDefinition>;
  /**
   * Returns why the arguments of a call do not match the schema of its tool; undefined if they do.
   * A server without this function checks them itself.
   */
  findWrongArguments?(
    call: Pick<Call, "id" | "method" | "arguments" | "cancellation">,
    definition: ToolDefinition,
  ): Maybe<string | undefined>;
  /**
   * Returns the error of a call that the server refuses in any case, so that the user is not asked.
   * Without this function, or without an error, the call itself decides.
   */
  whyRefused?(call: Pick<Call, "id" | "method" | "arguments">): Promise<PmlError | undefined>;
  /** Returns the lines that the user sees before a call. */
  consentLines(call: Pick<Call, "id" | "method">): Promise<readonly string[]>;
  /** Returns lines with the permissions of a tool. PML knows only the permissions of modules. */
  permissionLines(tool: string): Promise<readonly string[]>;
  /**
   * Returns whether a tool can neither write nor use the network or programs; undefined if unknown.
   */
  onlyReads(tool: string): Promise<boolean | undefined>;
  /**
   * Returns whether the permissions of a module prove that its tool only reads. Returns false until
   * the module is loaded, which `onlyReads()` does. Other servers lack this function.
   */
  isReader?(tool: string): boolean;
  /** Returns a short remark about a tool that is not in its definition. */
  remarkOn(tool: string): Promise<string | undefined>;
  /** Returns a list: the same array until it changes. */
  list(list: ListName): Promise<readonly ListItem[]>;
  /**
   * Returns whether `list()` returns without starting or asking the server. If a server lacks this
   * function, its `list()` never starts or asks it.
   */
  hasList?(list: ListName): Promise<boolean>;
  /**
   * Returns the server's list for a client with other capabilities. PML shows it until `list()`
   * returns. Undefined if there is none, or if the list for this client is cached.
   */
  readEarlierList?(list: ListName): Promise<readonly ListItem[] | undefined>;
  /**
   * Returns the error of a recent start, also in another process, that took too long. Servers that
   * need no start, or that always answer or fail soon, lack this function.
   */
  lateStartError?(): Promise<PmlError | undefined>;
  /** Forgets that a start took too long, so that the next start has the whole time limit. */
  forgetLateStart?(): void;
  /**
   * Returns the error of a server that could not be reached a short time ago, also by another process.
   * Servers without an address lack this function.
   */
  unreachedError?(): Promise<PmlError | undefined>;
  /**
   * Maps each tool whose definition differs from the approved one to the approved definition, which
   * clients then get. Servers whose definitions are part of approved code, or are not known here,
   * lack this function.
   */
  approvedDefinitions?(
    tools: readonly ToolDefinition[],
  ): Promise<ReadonlyMap<ToolDefinition, ToolDefinition>>;
  /**
   * Returns the ids of the extensions that the server declared at its start. A server without this
   * function has none.
   */
  extensions?(): readonly string[];
  /** Runs a call that passed all checks. */
  call(call: CheckedCall): Promise<Outcome>;
  /** Clears the given lists from the cache (all by default), so that they are requested again. */
  forget(lists?: readonly ListName[]): void;
}

/** A call whose server was found. It is resolved again when the configuration changes. */
export interface ResolvedCall extends Call {
  /** The server that the id of the tool names. */
  readonly server: Server;
  /** The version of the rules and the configuration when the call was resolved. */
  readonly version: number;
  /** Returns whether the rules and the configuration are unchanged. */
  isCurrent(): boolean;
  /** Returns the definition of the call's tool or method. Loads the definition only once. */
  definition(): Maybe<ToolDefinition>;
}

/**
 * A call that passed all checks, with comparisons that the server makes before it sends the call.
 */
export interface CheckedCall extends Call {
  /** The name of the tool at the server, or the part of MCP to which the request belongs. */
  readonly tool: string;
  /** Throws if the rules or the configuration have changed since the checks. */
  assertCurrent(): void;
  /**
   * Throws if the definition that was checked differs from `listed`, which the server lists now:
   * undefined if it no longer lists the tool. Calls that are not for a tool always pass.
   */
  assertListed(listed: unknown): void;
}

/** Returns an empty definition for a method that is not a tool. */
export function methodDefinition(method: string): ToolDefinition {
  return { name: method, inputSchema: {} };
}
