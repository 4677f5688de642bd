/**
 * A server as a registry has it: how it is started or reached here, and what an approval of it
 * binds to.
 *
 * @module
 */

import type { Config } from "../config/config.ts";
import type { Environment } from "../config/env.ts";
import type { ServerDefinition } from "../config/servers.ts";
import { confusableWith } from "../core/confusable.ts";
import type { Manifest } from "../core/manifest.ts";
import type { ServerIdentity } from "../core/server_identity.ts";
import { pinnedOf } from "../registry/lock.ts";
import type { Found } from "../registry/registries.ts";
import { isProxy } from "../remote/rpc.ts";
import { definitionOf, factsOf, grantsOf } from "./entry.ts";

/** A server that a registry has. */
export interface RegistryServer {
  readonly found: Found;
  readonly identity: ServerIdentity;
  /** Nothing where it runs in the cloud. */
  readonly definition: ServerDefinition | undefined;
}

/** What such a server is made in. */
export interface RegistryServerOptions {
  readonly config: Config;
  readonly environment: Environment;
  /** Every name that a person may know here. */
  readonly names: readonly string[];
  /** Returns where the code of a module is kept. */
  readonly codePath: Parameters<typeof definitionOf>[1];
}

/** Makes a server of what a registry was found to have. */
export function registryServer(
  found: Found,
  { config, environment, names, codePath }: RegistryServerOptions,
): RegistryServer {
  const { manifest } = found;
  const { name } = manifest;
  const { workspace, grants, cloud } = config;
  const definition = definitionOf(manifest, codePath);
  const facts = factsOf(found, {
    definition,
    environment,
    workspace,
    grants: grantsOf(manifest, grants[name]),
    twin: confusableWith(name, names),
  });
  const identity: ServerIdentity = {
    name,
    pinned: pinnedOf(manifest, found),
    facts: [...facts, ...accountLines(manifest, cloud?.url)],
    origin: "registry",
  };
  return { found, identity, definition };
}

function accountLines(manifest: Manifest, hub: string | undefined): readonly string[] {
  if (manifest.kind !== "cloud" || !isProxy(manifest.proxyTo, hub)) return [];
  return [`Your PML_API_KEY goes with all that is sent to ${new URL(manifest.proxyTo).host}`];
}
