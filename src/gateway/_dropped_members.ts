/**
 * Reports the members of messages that are not passed on.
 *
 * @module
 */

import { type JsonObject, quoted } from "../core/json.ts";
import { LimitedLog } from "../io/limited_log.ts";
import type { Log } from "../audit/log.ts";

/** The maximum number of names in a line. */
const NAMES_MAX = 10;

/** Writes a line for the members of a message that were not passed on. */
export class DroppedMembers {
  readonly #log: Log;
  readonly #limited = new LimitedLog();

  /** Takes the log. */
  constructor(log: Log) {
    this.#log = log;
  }

  /** Reports members of a message, or of the answer to a request, with this method. */
  note(method: string, members: JsonObject): void {
    const why = "The client has sent none, so it may ignore a message that has them";
    this.#report(`a server's message`, { method, members, why });
  }

  /** Reports members of a notification of a client that is for PML itself. */
  noteOfClient(method: string, members: JsonObject): void {
    this.#report("the client's message", { method, members, why: "PML itself gets it" });
  }

  #report(
    what: string,
    { method, members, why }: {
      readonly method: string;
      readonly members: JsonObject;
      readonly why: string;
    },
  ): void {
    const names = Object.keys(members).slice(0, NAMES_MAX).map((name) => quoted(name, 100));
    const text = `Members of ${what} were not passed on (${quoted(method, 100)}): ` +
      `${names.join(", ")}. ${why}`;
    this.#limited.write(text, text, (line) => this.#log.info(line));
  }
}
