/**
 * Types for the manifest of a server in a registry: its kind, its code or address, and its
 * requirements.
 *
 * @module
 */

import type { Permissions, ToolDefinition } from "../protocol/tool.ts";

/** The members that every manifest has. Each kind of servers adds its own members. */
export interface Manifest {
  /** The name of its kind. */
  readonly kind: string;
  /** The name in the registry, without a version, such as `serena` or `fs:read_json`. */
  readonly fqdn: string;
  /** The name of the server in PML. */
  readonly name: string;
  readonly version: string;
  readonly description: string | undefined;
  /** The tools that the registry lists. */
  readonly tools: readonly ManifestTool[];
  /** The environment variables that the server needs. */
  readonly envRequired: readonly string[];
  /** The author's warnings for the user, one line each. */
  readonly warnings: readonly string[];
  /** Where the server runs, if the registry states it. */
  readonly routing: "local" | "cloud" | undefined;
}

/** A tool of a manifest. A registry may list only its name. */
export interface ManifestTool {
  readonly name: string;
  readonly definition: ToolDefinition | undefined;
}

/** The manifest of a server whose code comes from the registry and runs in the sandbox. */
export interface CodeManifest extends Manifest {
  /** The hash of the code: `sha256-` and 64 hexadecimal digits. */
  readonly integrity: string;
  /** The permissions that all tools of the server need together. */
  readonly permissions: Permissions;
}
