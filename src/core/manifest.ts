/**
 * What a registry says of a server: its kind, what it runs or reaches, and what it asks for.
 *
 * @module
 */

import type { Permissions, ToolDefinition } from "./tool.ts";

/** A registry entry. */
export type Manifest = DenoManifest | StdioManifest | HttpManifest | CloudManifest;

/** What every entry says. */
interface ManifestBase {
  /** Its name in the registry, without a version: `serena`, `fs:read_json`. */
  readonly fqdn: string;
  /** The name of the server here. */
  readonly name: string;
  readonly version: string;
  readonly description: string | undefined;
  /** Its tools, as far as the registry knows them. */
  readonly tools: readonly ManifestTool[];
  /** The variables of the environment that it needs. */
  readonly envRequired: readonly string[];
  /** What its author wants a person to know, one line each. */
  readonly warnings: readonly string[];
  /** Where it runs, where the registry says so. */
  readonly routing: "local" | "cloud" | undefined;
}

/** A tool of an entry; a registry may know no more than its name. */
export interface ManifestTool {
  readonly name: string;
  readonly definition: ToolDefinition | undefined;
}

/** A module that runs in the sandbox. */
export interface DenoManifest extends ManifestBase {
  readonly kind: "deno";
  /** The hash of its code: `sha256-` and 64 hexadecimal digits. */
  readonly integrity: string;
  /** What its tools ask for, all together. */
  readonly permissions: Permissions;
}

/** A program that is installed, and speaks MCP on its pipes. */
export interface StdioManifest extends ManifestBase {
  readonly kind: "stdio";
  readonly command: string;
  readonly args: readonly string[];
  /** What it finds in its environment; `${NAME}` is filled in when it starts. */
  readonly env: Readonly<Record<string, string>>;
}

/** A server that is spoken to over HTTP. */
export interface HttpManifest extends ManifestBase {
  readonly kind: "http";
  readonly url: string;
  /** What it is sent; `${NAME}` is filled in when a request goes out. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A server that the cloud proxies. */
export interface CloudManifest extends ManifestBase {
  readonly kind: "cloud";
  /** The address that its calls go to. */
  readonly proxyTo: string;
}
