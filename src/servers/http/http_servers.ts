/**
 * Makes the servers of kind `http`: each connects to one address.
 *
 * @module
 */

import { memoized } from "../../core/memo.ts";
import type { UpstreamServer } from "../client/upstream_server.ts";
import type { HttpServersHost, HttpValues } from "./http_options.ts";

/** Reaches servers over HTTP. */
export class HttpServers {
  /** Returns a server. Returns the same object for equal values. */
  readonly of: (server: HttpValues) => UpstreamServer = memoized((server) => this.#made(server));
  readonly #host: HttpServersHost;
  /** A mark for each server that changes when the user signs in or out there. */
  readonly #marks = new Map<string, unknown>();

  /** Sends nothing yet. */
  constructor(host: HttpServersHost) {
    this.#host = host;
  }

  /** Makes the next call open a new connection: the user signed in or out. */
  renew(name: string, mark: unknown): void {
    this.#marks.set(name, mark);
  }

  #made(server: HttpValues): UpstreamServer {
    const { name, tools, definition } = server;
    const key = JSON.stringify({ ...server, named: [...server.named] });
    return {
      name,
      values: server,
      tools,
      definition,
      isKept: true,
      isRemote: true,
      version: () => `${key}${this.#marks.get(name)}`,
      prepare: async () => {
        const { openTransport } = await import("./transports.ts");
        // A definition with that header controls its value.
        const isOwn = Object.keys(server.headers).some((each) => /^authorization$/i.test(each));
        const signIn = isOwn ? undefined : await this.#host.authorization(server);
        return openTransport({ ...server, authorization: signIn }, this.#host);
      },
    };
  }
}
