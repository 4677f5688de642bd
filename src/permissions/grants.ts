/**
 * Turns what a module asks for into what it gets: files within the workspace, and what the person
 * granted beyond it.
 *
 * @module
 */

import { resolve } from "node:path";
import { isLiteral } from "../core/address.ts";
import { PmlError } from "../core/errors.ts";
import { isOwn } from "../core/steering.ts";
import type { Permissions } from "../core/tool.ts";
import { isInside, realPathIfAny, staysInside } from "../io/place.ts";

/** What a sandbox child may use: absolute folders and files, hosts with ports, names. */
export interface Access extends Permissions {
  /** What grants name: the only way to open a protected name. */
  readonly granted: readonly string[];
}

/** What the person granted to a server, as written in `.pml.json`. */
export type Grants = Partial<Permissions>;

/**
 * Gives the access of a tool. What it asks for inside the workspace it gets; beyond that only what
 * a grant names. A read grant reaches tools that read at all, a write grant those that write; of
 * hosts, programs and variables it gets what it both asks for and was granted, where `*` on either
 * side stands for all that the other names.
 */
export function accessOf(
  asked: Permissions,
  where: { readonly workspace: string; readonly grants: Grants | undefined },
): Access {
  const { workspace, grants } = where;
  // What was granted within the workspace is shown as that: a link may not lead it out.
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

/** Gives a host its port: where none is said, that of https. */
export function withPort(host: string): string {
  return host === "*" || /:\d+$/.test(host) ? host.toLowerCase() : `${host.toLowerCase()}:443`;
}

/** An address beside names could be reached by any of them, whatever a name server says it is. */
function hosts(net: readonly string[]): readonly string[] {
  const named = net.find((host) => !isLiteral(host));
  const literal = net.find(isLiteral);
  if (named === undefined || literal === undefined) return net;
  const message = `Cannot grant the address "${literal}" beside the name "${named}"`;
  const hint = "Grant a server either addresses or names under net in .pml.json";
  throw new PmlError("SANDBOX_DENIED", message, { hint });
}

function realPath(path: string): string {
  // A granted path that does not exist yet is granted as it is written.
  return realPathIfAny(path) ?? path;
}
