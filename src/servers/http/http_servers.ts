import { memoized } from "../../core/memo.ts";
import type { UpstreamServer } from "../client/upstream_server.ts";
import type { HttpServersOptions, HttpValues } from "./http_options.ts";

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
      prepare: async () => {
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
