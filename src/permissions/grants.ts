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
import type { Permissions } from "../core/tool.ts";
import { isInside, realPathIfAny, staysInside } from "../io/place.ts";

/**
 * The access of a sandbox child: absolute paths, hosts with ports, names of programs and variables.
 */
export interface Access extends Permissions {
  /** The paths that grants name. Only these may open a protected name. */
  readonly granted: readonly string[];
}

/** The grants of the person for a server, as `.pml.json` has them. */
export type Grants = Partial<Permissions>;

/**
 * Returns the access of a tool. It gets all paths in the workspace that it asks for; paths outside
 * only if a grant names them. A read grant applies to tools that read at all, a write grant to
 * those that write. It gets the hosts, programs and variables that it asks for and that are
 * granted; `*` on either side stands for all names of the other.
 */
export function accessOf(
  asked: Permissions,
  where: { readonly workspace: string; readonly grants: Grants | undefined },
): Access {
  const { workspace, grants } = where;
  // A grant within the workspace means a path there, so it may not be a link that leads out.
  const paths = (kind: "read" | "write") =>
    (grants?.[kind] ?? []).map((path) => resolve(workspace, path))
      .filter((path) => !isInside(workspace, path) || staysInside(workspace, path))
      .map(realPath);
  const roots = (kind: "read" | "write") => {
    if (asked[kind].length === 0) return [];
    const inside = asked[kind].map((path) => resolve(workspace, path))
      .filter((path) => staysInside(workspace, path));
    return [...new Set([...inside, ...paths(kind)])].sort();
  };
  return {
    read: roots("read"),
    write: roots("write"),
    net: hosts(both(asked.net.map(withPort), grants?.net?.map(withPort))),
    run: both(asked.run, grants?.run),
    env: both(asked.env, grants?.env).filter((name) => name !== "*" && !isOwn(name)),
    granted: [...new Set([...paths("read"), ...paths("write")])].sort(),
  };
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
