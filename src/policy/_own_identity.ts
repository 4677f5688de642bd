/**
 * What a server of a file is, in the form in which servers are pinned.
 *
 * @module
 */

import type { ServerIdentity } from "../core/server_identity.ts";
import type { ServerDefinition } from "../config/servers.ts";
import { serverText } from "../config/shown.ts";
import { variablesOf } from "../registry/lock.ts";

/** What is known of a server's code: its hash, and the version where it was installed. */
export interface CodeAtHand {
  readonly version?: string;
  readonly integrity?: string;
}

/** Gives a server that a person defined, as it is pinned. */
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
