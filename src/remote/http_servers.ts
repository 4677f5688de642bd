/**
 * The servers of kind http: what they are reached with, and the way to each.
 *
 * @module
 */

import type { Fetch } from "../core/fetch.ts";
import { memoized } from "../core/memo.ts";
import type { Room } from "../io/backlog.ts";
import type { UpstreamServer } from "../mcp_client/upstreams.ts";
import type { HttpWireOptions } from "./_http_session.ts";

/** A server as it is reached; values are filled in. */
export interface HttpValues {
  readonly name: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The same headers as they were written, with the names of variables in place of their values. */
  readonly written: Readonly<Record<string, string>>;
  /** What goes with a call of a tool and with nothing else. */
  readonly keyHeaders?: Readonly<Record<string, string>> | undefined;
  /** The hosts that the person named. */
  readonly named: ReadonlySet<string>;
  /** The only tools of it that count, where they are named. */
  readonly tools: readonly string[] | undefined;
  /** Its definition as it was written: without the values of variables. */
  readonly definition: unknown;
}

/** What reaching servers needs from outside. */
export interface HttpServersOptions {
  readonly fetch: Fetch;
  readonly limits: () => HttpWireOptions["limits"];
  readonly room?: Room | undefined;
}

/** Reaches servers over HTTP. */
export class HttpServers {
  /** Gives the way to a server: the same object for the same one. */
  readonly of: (server: HttpValues) => UpstreamServer = memoized((server) => this.#made(server));
  readonly #options: HttpServersOptions;
  /** The addresses that took the handshake of the older revisions. */
  readonly #older = new Set<string>();

  /** Takes the way out; nothing is sent yet. */
  constructor(options: HttpServersOptions) {
    this.#options = options;
  }

  #made(server: HttpValues): UpstreamServer {
    const { name, url, tools, definition } = server;
    const key = JSON.stringify({ ...server, named: [...server.named] });
    return {
      name,
      tools,
      definition,
      isKept: true,
      isRemote: true,
      version: () => key,
      way: async () => {
        const { HttpWire } = await import("./http_wire.ts");
        const { fetch, limits, room } = this.#options;
        const options = {
          ...server,
          fetch,
          limits: limits(),
          room,
          isOlder: this.#older.has(url),
          onOlder: () => void this.#older.add(url),
        };
        return (ends) => new HttpWire(options, ends);
      },
    };
  }
}
