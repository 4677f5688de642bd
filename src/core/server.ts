/**
 * The interface of a server, of whatever kind. Calls, lists, search and explanations use only this.
 *
 * @module
 */

import type { Answer, Call, Gate, Outcome } from "./call.ts";
import type { PmlError } from "./errors.ts";
import type { ListItem, ListName } from "./lists.ts";
import type { Maybe } from "./maybe.ts";
import type { FindQuickTool } from "./quick_tool.ts";
import type { ServerIdentity, Unapproved } from "./server_identity.ts";
import type { ToolDefinition } from "./tool.ts";
import type { ToolSettings } from "./tool_settings.ts";

/** Where a server comes from: PML itself, a file of the person, a registry, or the hub's list. */
export type Origin = "builtin" | "private" | "registry" | "cloud";

/** A server. The same object stands for it until the configuration is read again. */
export interface Server {
  readonly name: string;
  /** The name for people. */
  readonly title?: string | undefined;
  readonly origin: Origin;
  /** How it runs: `deno`, `stdio`, `http`, `cloud`, and others that may come. */
  readonly kind: string;
  /** The definition of the server. If this is another object, it is another server. */
  readonly definition: object | undefined;
  /** The person's settings for its tools. */
  readonly settings?: ToolSettings | undefined;
  /**
   * Whether it notifies clients of changed lists. Such a server may show each client other lists.
   */
  readonly tells: boolean;
  /** Whether the server checks the arguments of all its tools itself. */
  readonly checksArguments: boolean;
  /**
   * Returns the identity that an approval binds to; undefined for servers that ship with PML. An
   * install can change it.
   */
  identity(): Promise<ServerIdentity | undefined>;
  /** Returns the reason why the server may not run now; undefined if it may. Starts nothing. */
  blocked(): string | undefined;
  /** Returns what a call needs and nobody has approved yet. */
  unapproved(call: PassCall): Promise<Unapproved | undefined>;
  /**
   * Returns the definition of the tool or method of a call. Throws if the call lacks something,
   * such as a key.
   */
  definitionFor(call: Call): Promise<ToolDefinition>;
  /**
   * Returns why the arguments of a call do not match the schema of its tool; undefined if they do. If
   * it is missing, the server checks them itself.
   */
  readonly wrongArguments?: (
    call: Pick<Call, "id" | "method" | "arguments" | "signal">,
    definition: ToolDefinition,
  ) => Maybe<string | undefined>;
  /** Returns what a person must know before a call, one line each. */
  consentLines(call: Pick<Call, "id" | "method">): Promise<readonly string[]>;
  /** Returns what a tool may do, one line each. This is known for modules only. */
  permissionLines(tool: string): Promise<readonly string[]>;
  /** Tells whether a tool can change nothing and reach nobody; undefined where nobody can tell. */
  onlyReads(tool: string): Promise<boolean | undefined>;
  /** Returns what must be known of a tool beside its definition, in a few words. */
  remark(tool: string): Promise<string | undefined>;
  /** Returns a list: the same array as long as it is unchanged. */
  list(list: ListName): Promise<readonly ListItem[]>;
  /**
   * Returns whether `list()` returns without starting or asking the server. If it is missing, it
   * always does.
   */
  readonly hasList?: (list: ListName) => Promise<boolean>;
  /**
   * Returns, for each tool of its list whose definition is not the approved one, the definition to
   * show. Undefined if its definitions are part of code that is approved, or are not known here.
   */
  readonly approvedDefinitions?: (
    tools: readonly ToolDefinition[],
  ) => Promise<ReadonlyMap<ToolDefinition, ToolDefinition>>;
  /** Runs a call that passed all gates. */
  call(call: Call): Promise<Outcome>;
  /**
   * Returns the tool with this definition, if it can be called at once: its server runs, and is
   * approved. Asks nobody.
   */
  readonly quick?: FindQuickTool;
  /** Clears the given cached lists, by default all, so that the server is asked again. */
  forget(lists?: readonly ListName[]): void;
}

/** The state of one pass of a call through the gates. It is never kept with an answer. */
export interface Pass {
  /** The server that the name stands for. */
  readonly server: Server;
  /** The version of the rules and the configuration that judged the call. */
  readonly version: number;
  /** Whether the server was blocked when the call was judged. Its settings did not count then. */
  readonly isBlocked?: boolean;
  /** The error if the arguments that the person fixed for this tool cannot be added. */
  readonly unsettled?: PmlError | undefined;
  /** Returns the definition of the tool or method. It is loaded once. */
  readonly definition: () => Promise<ToolDefinition>;
}

/** A call on its way through the gates. */
export interface PassCall extends Call {
  readonly pass: Pass;
}

/**
 * The outcome of a pass. `changed` means that the configuration or the definition changed, so the
 * pass begins again, with the person's answer if there was one.
 */
export type PassOutcome = Outcome | { readonly kind: "changed"; readonly answer?: Answer };

/** Wraps a pass with one concern. */
export type PassGate = Gate<PassCall, PassOutcome>;

/** Returns a definition that stands for a method that is not a tool. */
export function methodDefinition(method: string): ToolDefinition {
  return { name: method, inputSchema: {} };
}
