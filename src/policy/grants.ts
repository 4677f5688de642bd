/**
 * Computes the access of a module from the permissions that it requests and the grants of the user.
 *
 * @module
 */

import { resolve } from "node:path";
import { isLiteral } from "../core/address.ts";
import { PmlError } from "../core/errors.ts";
import { isOwnVariable } from "../core/steering.ts";
import type { Manifest } from "../servers/manifest.ts";
import type { Permissions } from "../protocol/tool.ts";
import { isInside, realPathIfAny, staysInside } from "../io/path_info.ts";
import { kindOf } from "../servers/kinds.ts";

/**
 * The access of a sandbox child: absolute paths, hosts with ports, names of programs and variables.
 */
export interface Access extends Permissions {
  /** The granted paths. A file with a protected name is open only through one of these. */
  readonly granted: readonly string[];
}

/** The grants of the user for a server, as `.pml.json` has them. */
export type ServerGrants = Partial<Permissions>;

/** The workspace in which a tool runs, and the user's grants for its server. */
export interface AccessPlace {
  readonly workspace: string;
  readonly grants: ServerGrants | undefined;
}

/**
 * Returns the access of a tool: the requested paths in the workspace, and all granted paths. A tool
 * that requests no path to read gets no granted path to read, and the same for write. A requested
 * path outside of the workspace alone opens nothing.
 *
 * Hosts, programs and variables must be both requested and granted; `*` on one side matches all
 * names of the other. IP addresses must be granted by themselves. Variables must be named on one
 * side, and PML's own variables are never included.
 */
export function accessOf(permissions: Permissions, place: AccessPlace): Access {
  return new ToolAccess(permissions, place).now();
}

type PathKind = "read" | "write";

/** The access of one tool. Each call of `now()` follows the links in paths, which can change. */
export class ToolAccess {
  readonly #workspace: string;
  readonly #requested: Readonly<Record<PathKind, readonly string[]>>;
  readonly #granted: Readonly<Record<PathKind, readonly string[]>>;
  readonly #names: Pick<Access, "net" | "run" | "env">;
  #last: Access | undefined;

  /**
   * Makes the paths absolute, and finds the names that are both requested and granted. Throws
   * SANDBOX_DENIED if these contain both IP addresses and host names.
   */
  constructor(requested: Permissions, { workspace, grants }: AccessPlace) {
    const toAbsolute = (paths: readonly string[] = []) =>
      paths.map((path) => resolve(workspace, path));
    this.#workspace = workspace;
    this.#requested = { read: toAbsolute(requested.read), write: toAbsolute(requested.write) };
    this.#granted = { read: toAbsolute(grants?.read), write: toAbsolute(grants?.write) };
    this.#names = {
      net: checkHosts(intersectionOfHosts(requested.net, grants?.net)),
      run: intersectionOf(requested.run, grants?.run),
      env: intersectionOf(requested.env, grants?.env).filter((name) =>
        name !== "*" && !isOwnVariable(name)
      ),
    };
  }

  /** Returns the current access: the same object until a link changes. */
  now(): Access {
    const grantedToRead = this.#grantedPaths("read");
    const grantedToWrite = this.#grantedPaths("write");
    const read = this.#accessiblePaths("read", grantedToRead);
    const write = this.#accessiblePaths("write", grantedToWrite);
    const granted = sortPaths(grantedToRead.concat(grantedToWrite));
    const last = this.#last;
    const isSame = last !== undefined && isEqual(last.read, read) && isEqual(last.write, write) &&
      isEqual(last.granted, granted);
    return isSame ? last : this.#last = { read, write, ...this.#names, granted };
  }

  /**
   * Returns the granted paths, with links followed. Leaves out paths in the workspace that a link
   * leads outside.
   */
  #grantedPaths(kind: PathKind): readonly string[] {
    const folder = this.#workspace;
    const granted = this.#granted[kind];
    if (granted.length === 0) return granted;
    return granted
      .filter((path) => !isInside(folder, path) || staysInside(folder, path))
      .map(realPath);
  }

  /** Returns the requested paths in the workspace and the granted ones; none if none is requested. */
  #accessiblePaths(kind: PathKind, granted: readonly string[]): readonly string[] {
    const requested = this.#requested[kind];
    if (requested.length === 0) return requested;
    const inside = requested.filter((path) => staysInside(this.#workspace, path));
    return sortPaths(granted.length === 0 ? inside : inside.concat(granted));
  }
}

function sortPaths(paths: readonly string[]): readonly string[] {
  return paths.length < 2 ? paths : [...new Set(paths)].sort();
}

function isEqual(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((item, index) => item === others[index]);
}

/**
 * Returns the names that are both requested and granted, sorted. `*` on one side matches the names
 * of the other for which `isMatch` returns true.
 */
function intersectionOf(
  requested: readonly string[],
  granted: readonly string[] = [],
  isMatch: (name: string) => boolean = () => true,
): readonly string[] {
  const all = requested.includes("*") ? [...requested, ...granted] : requested;
  const isGranted = (name: string) =>
    granted.includes(name) || granted.includes("*") && isMatch(name);
  return [...new Set(all.filter(isGranted))].sort();
}

function intersectionOfHosts(
  requested: readonly string[],
  granted: readonly string[] = [],
): readonly string[] {
  return intersectionOf(requested.map(withPort), granted.map(withPort), isHostName);
}

function isHostName(host: string): boolean {
  // A requested address may be private, so `*` does not grant it.
  // guard: grant-address
  return !isLiteral(host);
}

/** Returns a host with its port, in lower case. The default port is that of https. */
export function withPort(host: string): string {
  return host === "*" || /:\d+$/.test(host) ? host.toLowerCase() : `${host.toLowerCase()}:443`;
}

/**
 * Returns the hosts. Throws if both addresses and host names are granted: DNS could resolve a name
 * to one of the addresses.
 */
function checkHosts(net: readonly string[]): readonly string[] {
  const hostName = net.find(isHostName);
  const address = net.find(isLiteral);
  if (hostName === undefined || address === undefined) return net;
  const message = `Cannot grant the address "${address}" together with the name "${hostName}"`;
  const hint = "Grant a server either addresses or names under net in .pml.json";
  throw new PmlError("SANDBOX_DENIED", message, { hint });
}

function realPath(path: string): string {
  // A granted path that does not exist yet is used as it is written.
  return realPathIfAny(path) ?? path;
}

/** Returns the grants of a registry's module: the user's, and the variables that it requires. */
export function grantsOf(
  manifest: Manifest,
  grants: ServerGrants | undefined,
): ServerGrants | undefined {
  if (!kindOf(manifest).isSandboxed || manifest.envRequired.length === 0) return grants;
  return { ...grants, env: [...grants?.env ?? [], ...manifest.envRequired] };
}

/** Returns the permissions that a module has only with a grant. */
export function permissionsBeyond(
  permissions: Permissions,
  workspace: string,
): Partial<Permissions> {
  const outside = (paths: readonly string[]) =>
    paths.filter((path) => !isInside(workspace, resolve(workspace, path)));
  const lists = {
    ...permissions,
    read: outside(permissions.read),
    write: outside(permissions.write),
  };
  return Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0));
}
