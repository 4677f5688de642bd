/**
 * Reads which accesses a confined server requested: from the record that Deno writes, and from the
 * server's error messages, because the record does not contain programs.
 *
 * @module
 */

import { resolve } from "node:path";
import { objectOf } from "../../core/json.ts";
import { parseJson } from "../../core/parse_json.ts";

/** The accesses that a server requested, allowed or not. */
export interface RequestedAccess {
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
/**
 * Matches the error messages for denied programs. Node's functions that wait for a program report
 * only "Command failed".
 */
const DENIED_PROGRAM = /(?:Requires run access to "|Command failed: )([^"\s]{1,300})/g;

/**
 * Returns the accesses in `record`, which has one line of JSON for each request, and the denied
 * programs in `texts`, the output of the server. Relative paths are relative to `cwd`.
 */
export function readRequestedAccess(
  record: string,
  { texts, cwd }: { readonly texts: string; readonly cwd: string },
): RequestedAccess {
  const requests: Record<PermissionKind | "other", Set<string>> = {
    read: new Set(),
    write: new Set(),
    net: new Set(),
    env: new Set(),
    other: new Set(),
  };
  for (const line of record.split("\n")) {
    const { permission, value } = parseRecordLine(line);
    const kind = KINDS.find((known) => known === permission);
    if (kind === undefined) {
      // Confined servers may read all information about the system ("sys").
      if (permission !== undefined && permission !== "sys") requests.other.add(String(permission));
    } else if (typeof value !== "string") {
      if (kind !== "env") requests.other.add(`${kind} without a bound`);
    } else if (kind === "net") requests.net.add(hostOf(value));
    else requests[kind].add(kind === "env" ? value : resolve(cwd, value));
  }
  const run = new Set([...texts.matchAll(DENIED_PROGRAM)].map(([, program = ""]) => program));
  const lists = Object.entries(requests).map(([kind, items]) => [kind, [...items].sort()]);
  return { ...Object.fromEntries(lists), run: [...run].sort() };
}

/** Returns host and port of a value. Some values are whole URLs, which may contain a secret. */
function hostOf(value: string): string {
  const url = value.includes("://") ? URL.parse(value) : null;
  if (url === null) return value.toLowerCase();
  return `${url.hostname}:${url.port || (url.protocol === "http:" ? "80" : "443")}`;
}

function parseRecordLine(line: string): Record<string, unknown> {
  try {
    const json: unknown = parseJson(line);
    return objectOf(json);
  } catch {
    return {}; // an incomplete or empty line
  }
}
