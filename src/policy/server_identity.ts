/**
 * The identity of a server, which an approval binds to, and the lines that are shown before the
 * approval.
 *
 * @module
 */

import type { Permissions, ToolDefinition } from "../protocol/tool.ts";

/** The `source` in the pin of a server that a file defines. */
export const OWN_SOURCE = "private";

/** The facts of a server that an approval fixes. */
export interface Pinned {
  /** `OWN_SOURCE`, or the URL of the registry that the server comes from. */
  readonly source: string;
  /** The name of the server's kind: `deno`, `stdio`, `http` or `cloud`. */
  readonly kind: string;
  readonly version?: string | undefined;
  readonly routing?: "local" | "cloud" | undefined;
  /** The hash of the code, or of the installed package: `sha256-` and 64 digits. */
  readonly integrity?: string | undefined;
  /** The program and its arguments as written in the file, without replacing variables. */
  readonly command?: readonly string[] | undefined;
  readonly url?: string | undefined;
  readonly permissions?: Permissions | undefined;
  /**
   * The variables that the server gets: `NAME`, or `NAME=${FROM}` if another variable is its value.
   */
  readonly env?: readonly string[] | undefined;
  /** The headers that are sent to the server, in the same form. */
  readonly headers?: readonly string[] | undefined;
  /** The names of the variables in the `envFile` of the definition. Not part of `pml.lock`. */
  readonly envFile?: readonly string[] | undefined;
  /** The address with its resolved host, if its host has variables. Not part of `pml.lock`. */
  readonly address?: string | undefined;
  /** The manifest hash of a registry's entry. */
  readonly manifest?: string | undefined;
}

/**
 * The identity that an approval binds to. The same object is the same server and need not be
 * compared again.
 */
export interface ServerIdentity {
  readonly name: string;
  readonly pinned: Pinned;
  /** The facts that the user must know before the first use, one line each. */
  readonly facts: readonly string[];
  /**
   * Whether the trust in the defining file covers the first use, which pins the server. The first
   * use of a registry's server needs a question.
   */
  readonly isCoveredByTrust: boolean;
  /**
   * Whether `pml.lock` pins it. The servers of the user's own file are the same in all workspaces,
   * so no workspace's lock contains them.
   */
  readonly isInLock: boolean;
  /** The tools of a registry's module. Their definitions are approved together with its code. */
  readonly tools?: readonly ToolDefinition[];
}

/** Returns whether a file defines a pinned server. All others come from registries. */
export function isOwnPin({ source }: { readonly source?: unknown }): boolean {
  return source === OWN_SOURCE;
}

/** A change that needs an approval: the facts to show, and the effect of the approval. */
export interface Unapproved {
  /** The error code of the call if the user cannot be asked. */
  readonly code:
    | "WORKSPACE_UNTRUSTED"
    | "APPROVAL_REQUIRED"
    | "APPROVAL_STALE"
    | "NAME_CONFLICT";
  /** Everything that the approval covers, one line each. */
  readonly facts: readonly string[];
  /** The line of the question that names the effect of a yes, if the facts do not name it. */
  readonly effect?: string;
  /**
   * Whether the approval only allows PML to read the server's definitions. The call itself then
   * needs another approval.
   */
  readonly isOnlyForReading?: boolean;
  /** Whether it is about the workspace file, or the code of modules that the file names. */
  readonly isOfFile?: true;
  /** The hash of the tool's definition, if the question shows the definition or its changes. */
  readonly definition?: string;
  /** The hash of the earlier definition, if the question shows only the changes. */
  readonly changedFrom?: string;
  /** The texts of that definition, if the user has not read them. */
  readonly definitionLines?: readonly string[];
  /** The modules of the workspace file whose code is not the approved code, if there are some. */
  readonly changedCode?: readonly ChangedCode[];
  /** Saves the approval, if nothing changed since it was shown. */
  readonly accept: () => Promise<void>;
}

/**
 * A module whose code has changed, or was never approved. The hashes are `sha256-` and 64 digits.
 */
export interface ChangedCode {
  readonly name: string;
  readonly path: string;
  readonly integrity: string;
  /** The hash of the approved code; undefined if no code of the module was approved. */
  readonly approved: string | undefined;
}
