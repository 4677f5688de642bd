/**
 * The manifest of a server in a registry: its kind, what it runs or connects to, and what it needs.
 *
 * @module
 */

import type { Permissions, ToolDefinition } from "./tool.ts";

/** The manifest of a server. */
export type Manifest = DenoManifest | StdioManifest | HttpManifest | CloudManifest;

/** The fields of every manifest. */
interface ManifestBase {
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
  /** The author's warnings for the person, one line each. */
  readonly warnings: readonly string[];
  /** Where the server runs, if the registry says so. */
  readonly routing: "local" | "cloud" | undefined;
}

/** A tool of a manifest. A registry may list its name only. */
export interface ManifestTool {
  readonly name: string;
  readonly definition: ToolDefinition | undefined;
}

/** The manifest of a module that runs in the sandbox, or of a capability that somebody saved. */
export interface DenoManifest extends ManifestBase {
  readonly kind: "deno";
  /** The hash of its code: `sha256-` and 64 hexadecimal digits. */
  readonly integrity: string;
  /** The permissions that all of its tools need together. */
  readonly permissions: Permissions;
  /**
   * The tools that a saved capability says it calls. Its code is then what `pml capability export`
   * writes, and no module.
   */
  readonly calls?: readonly string[];
}

/** The manifest of a program that is installed and speaks MCP on its pipes. */
export interface StdioManifest extends ManifestBase {
  readonly kind: "stdio";
  readonly command: string;
  readonly args: readonly string[];
  /** The environment of the program. `${NAME}` is replaced when it starts. */
  readonly env: Readonly<Record<string, string>>;
}

/** The manifest of a server that is reached over HTTP. */
export interface HttpManifest extends ManifestBase {
  readonly kind: "http";
  readonly url: string;
  /** The headers of each request. `${NAME}` is replaced when a request is sent. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The manifest of a server that the cloud runs. */
export interface CloudManifest extends ManifestBase {
  readonly kind: "cloud";
  /** The URL that calls are sent to. */
  readonly proxyTo: string;
  /** Where the hub at that URL passes calls on to. */
  readonly upstream?: ManifestUpstream;
}

/** A server behind a hub, as far as the hub publishes it. */
export interface ManifestUpstream {
  readonly host: string;
  /** The names of the headers that the hub sends. */
  readonly headers: readonly string[];
  /** The hash of the whole address and of all headers. */
  readonly hash: string;
}
