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
  /** The paths of grants. Only these may open files with a protected name. */
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
 * Returns the access of a tool: all requested paths in the workspace, and paths outside it only if
 * a grant names them. A read grant applies only to tools that request read access, a write grant
 * only to tools that request write access. Hosts, programs and variables must be both requested and
 * granted; `*` on one side matches all names of the other.
 */
export function accessOf(permissions: Permissions, place: AccessPlace): Access {
  return new ToolAccess(permissions, place).now();
}

type PathKind = "read" | "write";

/** The access of one tool. Each call of `now()` resolves the paths, because links can change. */
export class ToolAccess {
  readonly #workspace: string;
  readonly #asked: Readonly<Record<PathKind, readonly string[]>>;
  readonly #granted: Readonly<Record<PathKind, readonly string[]>>;
  readonly #names: Pick<Access, "net" | "run" | "env">;
  #last: Access | undefined;

  /** Resolves the paths and names. Throws SANDBOX_DENIED if the hosts cannot be combined. */
  constructor(asked: Permissions, { workspace, grants }: AccessPlace) {
    const resolved = (paths: readonly string[] = []) =>
      paths.map((path) => resolve(workspace, path));
    this.#workspace = workspace;
    this.#asked = { read: resolved(asked.read), write: resolved(asked.write) };
    this.#granted = { read: resolved(grants?.read), write: resolved(grants?.write) };
    this.#names = {
      net: checkHosts(intersectionOf(asked.net.map(withPort), grants?.net?.map(withPort))),
      run: intersectionOf(asked.run, grants?.run),
      env: intersectionOf(asked.env, grants?.env).filter((name) =>
        name !== "*" && !isOwnVariable(name)
      ),
    };
  }

  /** Returns the current access: the same object until a link changes. */
  now(): Access {
    const toRead = this.#pathsOf("read");
    const toWrite = this.#pathsOf("write");
    const read = this.#rootsOf("read", toRead);
    const write = this.#rootsOf("write", toWrite);
    const granted = sortPaths(toRead.concat(toWrite));
    const last = this.#last;
    const isSame = last !== undefined && isEqual(last.read, read) && isEqual(last.write, write) &&
      isEqual(last.granted, granted);
    return isSame ? last : this.#last = { read, write, ...this.#names, granted };
  }

  /**
   * Returns the granted paths. A grant inside the workspace must not be a link to a path outside.
   */
  #pathsOf(kind: PathKind): readonly string[] {
    const folder = this.#workspace;
    const granted = this.#granted[kind];
    if (granted.length === 0) return granted;
    return granted
      .filter((path) => !isInside(folder, path) || staysInside(folder, path))
      .map(realPath);
  }

  #rootsOf(kind: PathKind, granted: readonly string[]): readonly string[] {
    const asked = this.#asked[kind];
    if (asked.length === 0) return asked;
    const inside = asked.filter((path) => staysInside(this.#workspace, path));
    return sortPaths(granted.length === 0 ? inside : inside.concat(granted));
  }
}

function sortPaths(paths: readonly string[]): readonly string[] {
  return paths.length < 2 ? paths : [...new Set(paths)].sort();
}

function isEqual(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((item, index) => item === others[index]);
}

function intersectionOf(
  asked: readonly string[],
  granted: readonly string[] = [],
): readonly string[] {
  const all = asked.includes("*") ? granted : asked;
  return [...new Set(all.filter((name) => granted.includes("*") || granted.includes(name)))].sort();
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
  const hostName = net.find((host) => !isLiteral(host));
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
