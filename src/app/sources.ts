/**
 * Every server that there is, and the way to its lists.
 *
 * @module
 */

import type { ServerDefinition } from "../config/servers.ts";
import type { ServerSource } from "../gateway/servers.ts";
import type { Policy } from "../policy/policy.ts";
import type { Adopted } from "./registry_servers.ts";

/** What ships with PML is the same as long as PML runs. */
const SHIPPED = {};

/** What servers are gathered from. */
export interface SourcesOptions {
  readonly policy: Policy;
  /** The names of the servers that ship with PML. */
  readonly builtins: ReadonlySet<string>;
  /** The servers of registries, once something is known of them. */
  readonly adopted: Adopted | undefined;
  /** Gives a list of a server. */
  readonly listOf: (server: string, ...list: Parameters<ServerSource["load"]>) => ReturnType<
    ServerSource["load"]
  >;
}

/** Gives what ships with PML, what the person approved of registries, and what is defined. */
export function sourcesOf(options: SourcesOptions): readonly ServerSource[] {
  const { policy, builtins, adopted } = options;
  const { config: { servers }, loaded: { file } } = policy.now;
  const taken = new Set(servers.map(({ name }) => name));
  const shipped = [...builtins].filter((name) => !taken.has(name));
  for (const name of shipped) taken.add(name);
  // An untrusted file cannot hide a built-in, or a server of the person's, behind its name.
  const waiting = (file?.servers ?? []).filter(({ name }) => !taken.has(name));
  return [
    ...shipped.map((name): ServerSource => ({
      name,
      origin: "builtin",
      kind: "deno",
      identity: SHIPPED,
      blocked: () => undefined,
      load: (list) => options.listOf(name, list),
    })),
    ...(adopted?.names() ?? []).map((name) => adoptedSource(name, options)),
    ...[...servers, ...waiting].map((server) => ownSource(server, options)),
  ];
}

function adoptedSource(name: string, { adopted, listOf }: SourcesOptions): ServerSource {
  const { kind } = adopted?.manifestOf(name) ?? { kind: "deno" };
  return {
    name,
    origin: "registry",
    kind,
    identity: adopted?.manifestOf(name),
    tells: kind !== "deno",
    blocked: () => adopted?.blocked(name),
    load: (list) => listOf(name, list),
  };
}

function ownSource(
  server: ServerDefinition,
  { policy, listOf }: SourcesOptions,
): ServerSource {
  const { name, title, kind, settings } = server;
  return {
    identity: server,
    name,
    ...(title === undefined ? {} : { title }),
    origin: "private",
    kind,
    settings,
    tells: kind !== "deno",
    blocked: () => policy.blocked(name),
    load: (list) => listOf(name, list),
  };
}
