/**
 * The interface of a server of any kind. Calls, lists, search and explanations use only this.
 *
 * @module
 */

import type { Call, Outcome } from "../protocol/call.ts";
import type { ListItem, ListName } from "../protocol/lists.ts";
import type { Maybe } from "../core/maybe.ts";
import type { ServerIdentity, Unapproved } from "../policy/server_identity.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { ToolSettings } from "../core/tool_settings.ts";

/** The traits of the source of a server. Lists and calls use them in place of its name. */
export interface Origin {
  /** The name in lists and messages: `builtin`, `private`, `registry` or `cloud`. */
  readonly name: string;
  /**
   * Whether its servers are part of PML. Such servers have a description by PML and need no key, and
   * their lists never change while PML runs.
   */
  readonly isShipped: boolean;
  /**
   * Whether its servers are fetched: each may be changed or gone at any time, and works without a
   * network only after it was listed once.
   */
  readonly isFetched: boolean;
}

/** A server. It is the same object until the configuration is read again. */
export interface Server {
  readonly name: string;
  /** The name to show to users. */
  readonly title?: string | undefined;
  readonly origin: Origin;
  /** How it runs: `deno`, `stdio`, `http`, `cloud`, and others that may come. */
  readonly kind: string;
  /** The definition of the server. If this is another object, it is another server. */
  readonly definition: object | undefined;
  /** The user's settings for its tools. */
  readonly settings?: ToolSettings | undefined;
  /**
   * Whether the server notifies PML of changed lists. Its lists may differ from client to client.
   */
  readonly tells: boolean;
  /** Whether the server checks arguments and results of all its tools itself, so that PML need not. */
  readonly checksItself: boolean;
  /**
   * Returns the identity that an approval binds to; undefined for servers that ship with PML. An
   * install can change it.
   */
  identity(): Promise<ServerIdentity | undefined>;
  /** Returns the reason why the server may not run now; undefined if it may. Starts nothing. */
  blocked(): string | undefined;
  /** Returns an approval request for a call; undefined if everything is approved. */
  unapproved(call: ResolvedCall): Maybe<Unapproved | undefined>;
  /**
   * Returns the definition of the tool or method of a call. Throws if the call lacks something,
   * such as a key.
   */
  definitionFor(call: Call): Maybe<ToolDefinition>;
  /**
   * Returns why the arguments of a call do not match the schema of its tool; undefined if they do. A
   * server without this function checks them itself.
   */
  wrongArguments?(
    call: Pick<Call, "id" | "method" | "arguments" | "cancellation">,
    definition: ToolDefinition,
  ): Maybe<string | undefined>;
  /** Returns the lines that the user sees before a call. */
  consentLines(call: Pick<Call, "id" | "method">): Promise<readonly string[]>;
  /** Returns lines with the permissions of a tool. They are known for modules only. */
  permissionLines(tool: string): Promise<readonly string[]>;
  /**
   * Returns whether a tool can neither write nor use the network or programs; undefined if unknown.
   */
  onlyReads(tool: string): Promise<boolean | undefined>;
  /**
   * Returns whether PML derives from the permissions of a module that its tool only reads. False
   * until the module is loaded, which `onlyReads()` does. If it is missing, PML derives nothing.
   */
  isReader?(tool: string): boolean;
  /** Returns a short remark about a tool that is not in its definition. */
  remark(tool: string): Promise<string | undefined>;
  /** Returns a list: the same array as long as it is unchanged. */
  list(list: ListName): Promise<readonly ListItem[]>;
  /**
   * Returns whether `list()` returns without starting or asking the server. Without this function,
   * `list()` always does so.
   */
  hasList?(list: ListName): Promise<boolean>;
  /**
   * Returns the server's list for a client with other capabilities. PML shows it until `list()`
   * returns. Undefined if there is none, or if the list for this client is cached.
   */
  earlierList?(list: ListName): Promise<readonly ListItem[] | undefined>;
  /**
   * Returns, for each tool whose definition differs from the approved one, the definition to show.
   * Servers whose definitions are part of approved code, or are not known here, lack this function.
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
  /** Clears the given cached lists, by default all, so that the server is asked again. */
  forget(lists?: readonly ListName[]): void;
}

/** A call whose server was found. It is resolved again when the configuration changes. */
export interface ResolvedCall extends Call {
  /** The server that the id of the tool names. */
  readonly server: Server;
  /** The version of the rules and the configuration that the decision belongs to. */
  readonly version: number;
  /** Returns whether the rules and the configuration are unchanged. */
  readonly isCurrent: () => boolean;
  /** Returns the definition of its tool or method. It is loaded once. */
  readonly definition: () => Maybe<ToolDefinition>;
}

/** A call that passed all checks, with the comparisons that its server makes before it sends it. */
export interface CheckedCall extends Call {
  /** The name of its tool at the server, or the part of MCP that the request belongs to. */
  readonly tool: string;
  /** Throws if the rules or the configuration have changed since the checks. */
  readonly assertCurrent: () => void;
  /**
   * Throws if the definition that was checked is not the one that the server lists now. A tool that
   * the server does not list is undefined. Calls that are not for a tool always pass.
   */
  readonly assertListed: (listed: unknown) => void;
}

/** Returns an empty definition for a method that is not a tool. */
export function methodDefinition(method: string): ToolDefinition {
  return { name: method, inputSchema: {} };
}
