/**
 * What each server was told that the client can do. A server of an older revision is told once, as
 * it starts: for a client that can do something else it is started anew, when nobody uses it.
 *
 * @module
 */

import { canonical, defined, type JsonObject, objectOf } from "../core/json.ts";
import type { Connection } from "./connection.ts";

interface Greeting {
  able: JsonObject;
  /** How many calls, lists and followed resources need it. */
  users: number;
  connection: Connection | undefined;
}

/** The extensions that PML carries between clients and servers. */
const UI = "io.modelcontextprotocol/ui";

/** Knows what the servers were told. */
export class Greetings {
  readonly #able: () => JsonObject;
  readonly #onStale: (name: string) => void;
  readonly #all = new Map<string, Greeting>();

  /**
   * Takes what the client says that it can do; calls `onStale` for a server that showed another client's
   * lists while it was in use, and is free to be started anew.
   */
  constructor(able: () => JsonObject, onStale: (name: string) => void) {
    this.#able = () => passedOn(able());
    this.#onStale = onStale;
  }

  /** Gives what a server is told, or was told where it is in use. */
  ableOf(name: string): JsonObject {
    const { able, users, connection } = this.#of(name);
    return users > 0 && connection?.isModern !== true ? able : this.#able();
  }

  /** Begins to use a server; one that nobody uses and that was told something else ends before. */
  use(name: string): Disposable {
    const greeting = this.#of(name);
    const { connection } = greeting;
    if (greeting.users === 0 && this.#isStale(greeting)) {
      greeting.able = this.#able();
      if (connection?.isModern === false) void connection[Symbol.asyncDispose]();
    }
    greeting.users++;
    return {
      [Symbol.dispose]: () => {
        const isOlder = greeting.connection?.isModern === false;
        if (--greeting.users === 0 && isOlder && this.#isStale(greeting)) this.#onStale(name);
      },
    };
  }

  /** Takes note of the connection to a server that has started. */
  met(name: string, connection: Connection): void {
    this.#of(name).connection = connection;
  }

  #isStale({ able }: Greeting): boolean {
    return canonical(able) !== canonical(this.#able());
  }

  #of(name: string): Greeting {
    const known = this.#all.get(name) ?? { able: this.#able(), users: 0, connection: undefined };
    this.#all.set(name, known);
    return known;
  }
}

/** Gives what servers are told of what a client can do: what PML passes on to it. */
function passedOn({ elicitation, sampling, extensions }: JsonObject): JsonObject {
  const ui = objectOf(extensions)[UI];
  return defined({ elicitation, sampling, extensions: ui && { [UI]: ui } });
}
