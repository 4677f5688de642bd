/**
 * Creates the servers of kind `http`. Each server connects to one address.
 *
 * @module
 */

import { memoized } from "../../core/memo.ts";
import type { UpstreamServer } from "../client/wire.ts";
import type { HttpServersHost, HttpValues } from "./http_options.ts";

/** Creates and caches servers that are reached over HTTP. */
export class HttpServers {
  /** Returns a server: the same one for the same object of values. */
  readonly of: (server: HttpValues) => UpstreamServer = memoized((server) =>
    this.#createServer(server)
  );
  readonly #host: HttpServersHost;
  /** A value for each server. It changes when the user signs in or out at the server. */
  readonly #marks = new Map<string, unknown>();

  /** Sends nothing yet. */
  constructor(host: HttpServersHost) {
    this.#host = host;
  }

  /** Makes the next call open a new connection, because the user signed in or out. */
  renew(name: string, mark: unknown): void {
    this.#marks.set(name, mark);
  }

  #createServer(server: HttpValues): UpstreamServer {
    const { name, tools, definition } = server;
    const key = JSON.stringify({ ...server, named: [...server.named] });
    return {
      name,
      values: server,
      tools,
      definition,
      hasFiles: true,
      isRemote: true,
      version: () => `${key}${this.#marks.get(name)}`,
      prepare: async () => {
        const { openTransport } = await import("./transports.ts");
        // If the definition contains an Authorization header, no sign-in replaces it.
        const hasHeader = Object.keys(server.headers).some((name) => /^authorization$/i.test(name));
        const signIn = hasHeader ? undefined : await this.#host.authorization(server);
        return openTransport({ ...server, authorization: signIn }, this.#host);
      },
    };
  }
}
