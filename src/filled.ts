/**
 * Fills in definitions: what a server is started with, or reached with.
 *
 * @module
 */

import type { Redactor } from "./audit/redact.ts";
import type { HttpServer } from "./cloud/http_servers.ts";
import type { Keys } from "./config/keys.ts";
import type { HttpDefinition, StdioDefinition } from "./config/servers.ts";
import { memoized } from "./core/memo.ts";
import type { StdioServer } from "./local/stdio_servers.ts";
import type { Policy } from "./policy/policy.ts";

/** What values are found in. */
export interface FilledOptions {
  readonly policy: Policy;
  readonly keys: Keys;
  readonly redactor: Redactor;
}

const SECRET_HEADER = /auth|key|token|secret|cookie/i;

/** Gives servers with their values: the same object as long as nothing of one changes. */
export class Filled {
  readonly #options: FilledOptions;

  /** Takes where values are found; nothing is looked up yet. */
  constructor(options: FilledOptions) {
    this.#options = options;
  }

  /** Gives a command with its arguments and environment. */
  stdio(own: StdioDefinition): StdioServer {
    const { given, server } = this.#started(own);
    return server(this.#options.keys.filled(given, own.name));
  }

  /** Gives an address with what goes in its headers. */
  http(own: HttpDefinition): HttpServer {
    const { given, server } = this.#reached(own);
    return server(this.#options.keys.filled(given, own.name));
  }

  // A definition is another one when its file changed, and other values make another server.
  readonly #started = memoized((own: StdioDefinition) => {
    const given = { env: own.env, args: Object.fromEntries(own.args.entries()) };
    const server = memoized(({ env, args }: typeof given): StdioServer => {
      const { workspace } = this.#options.policy.now.config;
      const { name, command, tools, cwd = workspace, confine = false } = own;
      const values = { args: Object.values(args), env };
      return { name, command, ...values, cwd, tools, confine, definition: own };
    });
    return { given, server };
  });

  readonly #reached = memoized((own: HttpDefinition) => {
    const given = { headers: own.headers };
    const server = memoized(({ headers }: typeof given): HttpServer => {
      const { name, url, tools, headers: written } = own;
      // A key that stands in the file itself is one, too.
      for (const [header, value] of Object.entries(headers)) {
        if (!SECRET_HEADER.test(header)) continue;
        this.#options.redactor.register(value.replace(/^\w+\s+/, ""));
      }
      const named = this.#namedBy(own);
      return { name, url, headers, written, named, tools, definition: own };
    });
    return { given, server };
  });

  /** Gives the hosts that the person named: those may lie on this machine, or beside it. */
  #namedBy({ name, url }: HttpDefinition): ReadonlySet<string> {
    const { policy } = this.#options;
    const { registries, grants } = policy.now.config;
    if (policy.adopted(name)?.definition?.kind !== "http") return new Set([new URL(url).host]);
    // What a registry says lies where the registry lies, or where the person let the server go.
    const hosts = registries.map((one) => new URL(one.url.replace(/^mcp\+/, "")).host);
    return new Set([...hosts, ...grants[name]?.net ?? []]);
  }
}
