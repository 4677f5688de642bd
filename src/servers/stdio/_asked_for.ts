/**
 * Reads the accesses that a confined server requested: from the record that Deno writes, and from
 * the server's errors, because programs are not in the record.
 *
 * @module
 */

import { resolve } from "node:path";
import { objectOf } from "../../core/json.ts";
import { parseJson } from "../../core/parse_json.ts";

/** The accesses that a server requested, allowed or not. */
export interface AskedFor {
  readonly read: readonly string[];
  readonly write: readonly string[];
  /** Hosts with their ports. */
  readonly net: readonly string[];
  /** Programs, by name or path. */
  readonly run: readonly string[];
  /** Variables. */
  readonly env: readonly string[];
  /** Accesses that cannot be granted at all. */
  readonly other: readonly string[];
}

const KINDS = ["read", "write", "net", "env"] as const;
type PermissionKind = (typeof KINDS)[number];
/** Node's function that runs a program to its end reports only that the command failed. */
const RUN = /(?:Requires run access to "|Command failed: )([^"\s]{1,300})/g;

/**
 * Reads the record, which has one line of JSON for each request, and the texts. Relative paths
 * start from `cwd`.
 */
export function askedFor(
  record: string,
  { texts, cwd }: { readonly texts: string; readonly cwd: string },
): AskedFor {
  const requests: Record<PermissionKind | "other", Set<string>> = {
    read: new Set(),
    write: new Set(),
    net: new Set(),
    env: new Set(),
    other: new Set(),
  };
  for (const line of record.split("\n")) {
    const { permission, value } = parsed(line);
    const kind = KINDS.find((one) => one === permission);
    if (kind === undefined) {
      // Information about the system is not restricted, and imports from the server's own folder
      // are recorded as reads.
      if (permission !== undefined && permission !== "sys") requests.other.add(String(permission));
    } else if (typeof value !== "string") {
      if (kind !== "env") requests.other.add(`${kind} without a bound`);
    } else if (kind === "net") requests.net.add(hostOf(value));
    else requests[kind].add(kind === "env" ? value : resolve(cwd, value));
  }
  const run = new Set([...texts.matchAll(RUN)].map(([, program = ""]) => program));
  const lists = Object.entries(requests).map(([kind, items]) => [kind, [...items].sort()]);
  return { ...Object.fromEntries(lists), run: [...run].sort() };
}

/** Returns a host. The record also contains whole URLs of requests, which may contain a secret. */
function hostOf(value: string): string {
  const url = value.includes("://") ? URL.parse(value) : null;
  if (url === null) return value.toLowerCase();
  return `${url.hostname}:${url.port || (url.protocol === "http:" ? "80" : "443")}`;
}

function parsed(line: string): Record<string, unknown> {
  try {
    const json: unknown = parseJson(line);
    return objectOf(json);
  } catch {
    return {}; // half a line, or none
  }
}
