/**
 * Logs the names of those members of messages that PML does not pass on.
 *
 * @module
 */

import { type JsonObject, quoted } from "../core/json.ts";
import { LimitedLog } from "../io/limited_log.ts";
import type { Log } from "../audit/log.ts";

/** The maximum number of names of members in a line of the log. */
const NAMES_MAX = 10;

/** Writes a line for the members of a message that were not passed on. */
export class DroppedMembers {
  readonly #log: Log;
  readonly #limited = new LimitedLog();

  /** Takes the log. */
  constructor(log: Log) {
    this.#log = log;
  }

  /**
   * Reports members of a server's message that the client does not get. `method` is the method of
   * the message, or of the request that the message answers.
   */
  reportServerMembers(method: string, members: JsonObject): void {
    const why = "The client has sent none, so it may ignore a message that has them";
    this.#report(`a server's message`, { method, members, why });
  }

  /** Reports members of a client's notification that PML itself handles, so no server gets them. */
  reportClientMembers(method: string, members: JsonObject): void {
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
