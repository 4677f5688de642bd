/**
 * A server, as everything knows it that calls, lists, searches or explains: whatever its kind.
 *
 * @module
 */

import type { Answer, Call, Gate, Outcome } from "./call.ts";
import type { PmlError } from "./errors.ts";
import type { ListItem, ListName } from "./lists.ts";
import type { ServerIdentity, Unapproved } from "./server_identity.ts";
import type { ToolDefinition } from "./tool.ts";
import type { ToolSettings } from "./tool_settings.ts";

/** Where a server comes from: PML itself, a file of the person's, a registry, the hub's list. */
export type Origin = "builtin" | "private" | "registry" | "cloud";

/** A server. One object stands for it until the configuration is read again. */
export interface Server {
  readonly name: string;
  /** Its name for people. */
  readonly title?: string | undefined;
  readonly origin: Origin;
  /** How it runs: `deno`, `stdio`, `http`, `cloud`, and others that may come. */
  readonly kind: string;
  /** What defines it: with another object, it is another server. */
  readonly definition: object | undefined;
  /** What the person says of its tools. */
  readonly settings?: ToolSettings | undefined;
  /** Whether it tells of changed lists, and may show each client others. */
  readonly tells: boolean;
  /** Whether it checks the arguments of its tools itself. */
  readonly checksArguments: boolean;
  /** Returns what an approval binds to; undefined for what ships with PML. An install can change it. */
  identity(): Promise<ServerIdentity | undefined>;
  /** Returns why it may not run now; starts nothing. */
  blocked(): string | undefined;
  /** Returns what nobody has approved yet of what a call needs. */
  unapproved(call: PassCall): Promise<Unapproved | undefined>;
  /** Returns the definition of the tool or method of a call; throws what such a call lacks. */
  definitionFor(call: Call): Promise<ToolDefinition>;
  /** Returns what a person has to know before a call, one line each. */
  consentLines(call: Pick<Call, "id" | "method">): Promise<readonly string[]>;
  /** Returns what a tool may do beyond its server, one line each; of modules alone it is known. */
  permissionLines(tool: string): Promise<readonly string[]>;
  /** Tells whether a tool can change nothing and reach nobody. */
  onlyReads(tool: string): Promise<boolean>;
  /** Returns a list: the same array as long as it is unchanged. */
  list(list: ListName): Promise<readonly ListItem[]>;
  /** Runs a call that passed the gates. */
  call(call: Call): Promise<Outcome>;
  /** Forgets lists, all of them unless told, so that the server is asked again. */
  forget(lists?: readonly ListName[]): void;
}

/** What holds for one pass of a call through the gates; it never travels with an answer. */
export interface Pass {
  /** The server behind the name. */
  readonly server: Server;
  /** The version of the rules and the configuration that judged the call. */
  readonly version: number;
  /** Whether the server was blocked when the call was judged, so that its settings did not count. */
  readonly isBlocked?: boolean;
  /** Why the call cannot be given what the person fixed for its tool. */
  readonly unsettled?: PmlError | undefined;
  /** Returns the definition of the tool or method; it is loaded once. */
  readonly definition: () => Promise<ToolDefinition>;
}

/** A call on its way through the gates. */
export interface PassCall extends Call {
  readonly pass: Pass;
}

/**
 * What comes of a pass: an outcome, or that something changed since it began and it begins again,
 * with what the person said where that was asked.
 */
export type PassOutcome = Outcome | { readonly kind: "changed"; readonly answer?: Answer };

/** Wraps a pass with one concern. */
export type PassGate = Gate<PassCall, PassOutcome>;

/** Returns what stands for the definition of a method that is no tool. */
export function methodDefinition(method: string): ToolDefinition {
  return { name: method, inputSchema: {} };
}
