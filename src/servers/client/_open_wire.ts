/**
 * Prepares connections to servers.
 *
 * @module
 */

import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import type { UpstreamServer } from "./upstream_server.ts";
import type { OpenWire } from "./wire.ts";

/** Prepares a connection, which takes long if the server is installed first. */
export async function openWire(
  server: UpstreamServer,
  { closing, now }: {
    readonly closing: AbortSignal;
    /** Returns the present server of a name. */
    readonly now: (name: string) => UpstreamServer;
  },
): Promise<OpenWire> {
  const { name } = server;
  const open = await server.prepare(closing);
  // Meanwhile the user may have removed the server, or made it another one.
  // guard: late-install
  if (now(name).version() === server.version()) return open;
  throw new PmlError("CANCELLED", `Cannot start ${quoted(name)}: it has changed`);
}
