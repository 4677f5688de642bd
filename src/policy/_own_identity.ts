/**
 * Returns the identity of a server of a file, in the form in which servers are pinned.
 *
 * @module
 */

import type { ServerIdentity } from "../core/server_identity.ts";
import type { ServerDefinition } from "../config/servers.ts";
import { serverText } from "../config/shown.ts";
import { variablesOf } from "../registry/lock.ts";

/** The hash of a server's code, and its version if it was installed. */
export interface CodeAtHand {
  readonly version?: string;
  readonly integrity?: string;
}

/** Returns the identity of a server that a file defines. */
export function ownIdentity(
  own: ServerDefinition,
  { origin, ...code }: CodeAtHand & { readonly origin: "workspace" | "person" },
): ServerIdentity {
  const base = { source: "private", kind: own.kind, routing: "local", ...code } as const;
  const facts = [serverText(own)];
  const { name } = own;
  switch (own.kind) {
    case "deno":
      return { name, origin, facts, pinned: base };
    case "stdio": {
      const command = [own.command, ...own.args];
      return { name, origin, facts, pinned: { ...base, command, env: variablesOf(own.env) } };
    }
    case "http": {
      const { url, headers } = own;
      return { name, origin, facts, pinned: { ...base, url, headers: variablesOf(headers) } };
    }
  }
}
