/**
 * What an approval of a server binds to, and what is shown before it is given.
 *
 * @module
 */

import type { Manifest } from "./manifest.ts";
import type { Permissions } from "./tool.ts";

/** What is pinned of a server itself. */
export interface Pinned {
  /** `private`, or the address of the registry that it comes from. */
  readonly source: string;
  readonly kind: Manifest["kind"];
  readonly version?: string | undefined;
  readonly routing?: "local" | "cloud" | undefined;
  /** The hash of its code, or of the package that was installed: `sha256-` and 64 digits. */
  readonly integrity?: string | undefined;
  /** The program and its arguments, as they were written: no value of a variable. */
  readonly command?: readonly string[] | undefined;
  readonly url?: string | undefined;
  readonly permissions?: Permissions | undefined;
  /** The variables that it is given: `NAME`, or `NAME=${FROM}` where others go in. */
  readonly env?: readonly string[] | undefined;
  /** The headers that it is sent, in the same form. */
  readonly headers?: readonly string[] | undefined;
  /** The hash of all else that its registry said and that counts. */
  readonly manifest?: string | undefined;
}

/** What an approval binds to. The same object stands for the same server: it is compared once. */
export interface ServerIdentity {
  readonly name: string;
  readonly pinned: Pinned;
  /** What a person has to know before its first use, one line each. */
  readonly facts: readonly string[];
  /**
   * Who names it. What the workspace file or the person's own names is covered by that trust, and
   * pinned as it is first seen; what a registry names is asked about. The person's own servers hold
   * in each workspace, so no lock of one tells of them.
   */
  readonly origin: "workspace" | "person" | "registry";
}

/** What has to be shown, and what a yes then means. */
export interface Unapproved {
  /** What a call fails with where nobody can be asked. */
  readonly code:
    | "WORKSPACE_UNTRUSTED"
    | "APPROVAL_REQUIRED"
    | "APPROVAL_STALE"
    | "NAME_CONFLICT";
  /** Everything that a yes covers, one line each. */
  readonly facts: readonly string[];
  /** Whether a yes covers no more than to find out: then the call itself is asked about anew. */
  readonly isLook?: boolean;
  /** Keeps the yes, if what was shown is still so. */
  readonly accept: () => Promise<void>;
}
