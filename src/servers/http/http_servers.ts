/**
 * Reaches the servers of kind http.
 *
 * @module
 */

import type { Authorization, OAuthSettings } from "../../core/authorization.ts";
import type { Certificates, Fetch } from "../../core/fetch.ts";
import { memoized } from "../../core/memo.ts";
import type { Room } from "../../io/backlog.ts";
import type { UpstreamServer } from "../client/upstream_server.ts";
import type { HttpWireOptions } from "./_http_session.ts";

/** How a server is reached. Variables are replaced by their values. */
export interface HttpValues {
  readonly name: string;
  /** The address without the values of keys: what errors, files and sign-ins contain. */
  readonly url: string;
  /** The address that requests are sent to, if it is another one. It may contain keys. */
  readonly requestUrl?: string | undefined;
  /** Whether its definition says that it is an address of HTTP+SSE. */
  readonly isSse?: boolean | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** The same headers as they were written, with the names of variables instead of their values. */
  readonly written: Readonly<Record<string, string>>;
  /** Headers that are sent only with a call of a tool. */
  readonly keyHeaders?: Readonly<Record<string, string>> | undefined;
  /** The hosts that the person named. */
  readonly named: ReadonlySet<string>;
  /** The only tools that may be used, if they are named. */
  readonly tools: readonly string[] | undefined;
  /** Settings of the sign-in, with the values of variables. */
  readonly oauth?: OAuthSettings | undefined;
  /** The certificates for its origin. */
  readonly certificates?: Certificates | undefined;
  /** Its definition as it was written, without the values of variables. */
  readonly definition: unknown;
}

/** The options of `HttpServers`. */
export interface HttpServersOptions {
  readonly fetch: Fetch;
  readonly limits: () => HttpWireOptions["limits"];
  readonly room?: Room | undefined;
  /** The PML home, where it is remembered which addresses are of HTTP+SSE. */
  readonly home: string;
  /** Returns the sign-in of a server. */
  readonly authorization?: (server: HttpValues) => Promise<Authorization | undefined>;
}

/** Reaches servers over HTTP. */
export class HttpServers {
  /** Returns the way to a server. Equal servers give the same object. */
  readonly of: (server: HttpValues) => UpstreamServer = memoized((server) => this.#made(server));
  readonly #options: HttpServersOptions;
  /** A mark that is another one when the person signed in at a server, or out. */
  readonly #marks = new Map<string, unknown>();

  /** Sends nothing yet. */
  constructor(options: HttpServersOptions) {
    this.#options = options;
  }

  /** Has a server reached anew: the person signed in there, or out. */
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
      way: async () => {
        const { openTransport } = await import("./transports.ts");
        const { authorization } = this.#options;
        // Who writes that header says what goes in it.
        const isOwn = Object.keys(server.headers).some((each) => /^authorization$/i.test(each));
        const signIn = isOwn ? undefined : await authorization?.(server);
        return openTransport({ ...server, authorization: signIn }, this.#options);
      },
    };
  }
}
