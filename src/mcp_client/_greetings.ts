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
  /** How often it may be started anew now. */
  anew: number;
  /** When that is once more. */
  timer: ReturnType<typeof setTimeout> | undefined;
}

/**
 * How often a server is started anew for another client, and after how long once more: clients
 * that take turns would start it for each request.
 */
const [ANEW_MAX, ANEW_MS] = [8, 30_000];

/** The extensions that PML carries between clients and servers. */
const UI = "io.modelcontextprotocol/ui";

/** Knows what the servers were told. */
export class Greetings implements Disposable {
  readonly #able: () => JsonObject;
  readonly #onStale: (name: string) => void;
  readonly #all = new Map<string, Greeting>();

  /**
   * Takes what the client says that it can do; calls `onStale` for a server that showed another client's
   * lists while it was in use, or was started anew too often, and is free to be started anew.
   */
  constructor(able: () => JsonObject, onStale: (name: string) => void) {
    this.#able = () => passedOn(able());
    this.#onStale = onStale;
  }

  /** Gives what a server is told, or was told where it stays as it is. */
  ableOf(name: string): JsonObject {
    const greeting = this.#of(name);
    const { able, users, connection } = greeting;
    const isBusy = users > 0 && connection?.isModern !== true;
    return isBusy || greeting.anew === 0 && isOlder(greeting) ? able : this.#able();
  }

  /** Begins to use a server; one that nobody uses and that was told something else ends before. */
  use(name: string): Disposable {
    const greeting = this.#of(name);
    if (greeting.users === 0 && this.#isStale(greeting)) this.#turn(name, greeting);
    greeting.users++;
    return {
      [Symbol.dispose]: () => {
        greeting.users--;
        this.#look(name, greeting);
      },
    };
  }

  /** Takes note of the connection to a server that has started. */
  met(name: string, connection: Connection): void {
    this.#of(name).connection = connection;
  }

  /** Starts no server anew any more. */
  [Symbol.dispose](): void {
    for (const { timer } of this.#all.values()) clearTimeout(timer);
  }

  /** Turns a server to another client, unless it was turned too often. */
  #turn(name: string, greeting: Greeting): void {
    if (isOlder(greeting)) {
      if (greeting.anew === 0) return;
      greeting.anew--;
      this.#refill(name, greeting);
      void greeting.connection?.[Symbol.asyncDispose]();
    }
    greeting.able = this.#able();
  }

  #refill(name: string, greeting: Greeting): void {
    greeting.timer ??= setTimeout(() => {
      greeting.timer = undefined;
      if (++greeting.anew < ANEW_MAX) this.#refill(name, greeting);
      this.#look(name, greeting);
    }, ANEW_MS);
    Deno.unrefTimer(greeting.timer);
  }

  /** Tells of a server that is free to be started anew for another client. */
  #look(name: string, greeting: Greeting): void {
    const { users, anew, connection } = greeting;
    const isFree = users === 0 && (anew > 0 || connection?.alive === false);
    // One of the newest revision is told with each request.
    if (isFree && connection?.isModern === false && this.#isStale(greeting)) this.#onStale(name);
  }

  #isStale({ able }: Greeting): boolean {
    return canonical(able) !== canonical(this.#able());
  }

  #of(name: string): Greeting {
    const known = this.#all.get(name) ??
      { able: this.#able(), users: 0, connection: undefined, anew: ANEW_MAX, timer: undefined };
    this.#all.set(name, known);
    return known;
  }
}

/** Tells whether a server is there that was told once what the client can do. */
function isOlder({ connection }: Greeting): boolean {
  return connection?.alive === true && !connection.isModern;
}

/** Gives what servers are told of what a client can do: what PML passes on to it. */
function passedOn({ elicitation, sampling, extensions }: JsonObject): JsonObject {
  const ui = objectOf(extensions)[UI];
  return defined({ elicitation, sampling, extensions: ui && { [UI]: ui } });
}
