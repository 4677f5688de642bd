/**
 * Computes the access of a module from what it asks for: files in the workspace, and what the
 * person granted beyond it.
 *
 * @module
 */

import { resolve } from "node:path";
import { isLiteral } from "../core/address.ts";
import { PmlError } from "../core/errors.ts";
import { isOwn } from "../core/steering.ts";
import type { Manifest } from "../servers/manifest.ts";
import type { Permissions } from "../protocol/tool.ts";
import { isInside, realPathIfAny, staysInside } from "../io/place.ts";
import { kindOf } from "../servers/kinds.ts";

/**
 * The access of a sandbox child: absolute paths, hosts with ports, names of programs and variables.
 */
export interface Access extends Permissions {
  /** The paths that grants name. Only these may open a protected name. */
  readonly granted: readonly string[];
}

/** The grants of the person for a server, as `.pml.json` has them. */
export type Grants = Partial<Permissions>;

/** The workspace of a tool, and its grants. */
export interface AccessPlace {
  readonly workspace: string;
  readonly grants: Grants | undefined;
}

/**
 * Returns the access of a tool. It gets all paths in the workspace that it asks for; paths outside
 * only if a grant names them. A read grant applies to tools that read at all, a write grant to
 * those that write. It gets the hosts, programs and variables that it asks for and that are
 * granted; `*` on either side stands for all names of the other.
 */
export function accessOf(asked: Permissions, place: AccessPlace): Access {
  return new ToolAccess(asked, place).now();
}

type PathKind = "read" | "write";

/** The access of one tool. Only what links can change is computed again. */
export class ToolAccess {
  readonly #workspace: string;
  readonly #asked: Readonly<Record<PathKind, readonly string[]>>;
  readonly #granted: Readonly<Record<PathKind, readonly string[]>>;
  readonly #names: Pick<Access, "net" | "run" | "env">;
  #last: Access | undefined;

  /** Resolves the paths and names. Throws `SANDBOX_DENIED` if the hosts cannot be granted together. */
  constructor(asked: Permissions, { workspace, grants }: AccessPlace) {
    const resolved = (paths: readonly string[] = []) =>
      paths.map((path) => resolve(workspace, path));
    this.#workspace = workspace;
    this.#asked = { read: resolved(asked.read), write: resolved(asked.write) };
    this.#granted = { read: resolved(grants?.read), write: resolved(grants?.write) };
    this.#names = {
      net: hosts(both(asked.net.map(withPort), grants?.net?.map(withPort))),
      run: both(asked.run, grants?.run),
      env: both(asked.env, grants?.env).filter((name) => name !== "*" && !isOwn(name)),
    };
  }

  /** Returns the access by the links of this moment: the same object as long as it is the same. */
  now(): Access {
    const toRead = this.#pathsOf("read");
    const toWrite = this.#pathsOf("write");
    const read = this.#rootsOf("read", toRead);
    const write = this.#rootsOf("write", toWrite);
    const granted = sorted(toRead.concat(toWrite));
    const last = this.#last;
    const isSame = last !== undefined && isEqual(last.read, read) && isEqual(last.write, write) &&
      isEqual(last.granted, granted);
    return isSame ? last : this.#last = { read, write, ...this.#names, granted };
  }

  /**
   * Returns the paths that were granted. A grant within the workspace means a path there, so it may
   * not be a link that leads out.
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
    return sorted(granted.length === 0 ? inside : inside.concat(granted));
  }
}

function sorted(paths: readonly string[]): readonly string[] {
  return paths.length < 2 ? paths : [...new Set(paths)].sort();
}

function isEqual(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((one, at) => one === others[at]);
}

function both(asked: readonly string[], granted: readonly string[] = []): readonly string[] {
  const all = asked.includes("*") ? granted : asked;
  return [...new Set(all.filter((one) => granted.includes("*") || granted.includes(one)))].sort();
}

/** Returns a host with its port, in lower case; without a port, that of https. */
export function withPort(host: string): string {
  return host === "*" || /:\d+$/.test(host) ? host.toLowerCase() : `${host.toLowerCase()}:443`;
}

/**
 * Throws if addresses and names are granted together: any of the names could lead to such an
 * address, if its name server says so.
 */
function hosts(net: readonly string[]): readonly string[] {
  const named = net.find((host) => !isLiteral(host));
  const literal = net.find(isLiteral);
  if (named === undefined || literal === undefined) return net;
  const message = `Cannot grant the address "${literal}" beside the name "${named}"`;
  const hint = "Grant a server either addresses or names under net in .pml.json";
  throw new PmlError("SANDBOX_DENIED", message, { hint });
}

function realPath(path: string): string {
  // A granted path that does not exist yet is used as it is written.
  return realPathIfAny(path) ?? path;
}

/** Returns the grants of a module of a registry: those of the user, and the variables that it requires. */
export function grantsOf(manifest: Manifest, grants: Grants | undefined): Grants | undefined {
  if (!kindOf(manifest).isSandboxed || manifest.envRequired.length === 0) return grants;
  return { ...grants, env: [...grants?.env ?? [], ...manifest.envRequired] };
}
