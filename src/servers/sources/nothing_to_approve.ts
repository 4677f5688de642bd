/**
 * The approval of servers that need no approval.
 *
 * @module
 */

import type { Approval } from "../known_server.ts";
import type { Maybe } from "../../core/maybe.ts";
import type { ResolvedCall } from "../server.ts";
import type { ServerIdentity, Unapproved } from "../../policy/server_identity.ts";

/** An approval that never asks the user. */
export class NothingToApprove implements Approval {
  readonly #text: string;

  /** `text` is the line that describes the server. */
  constructor(text: string) {
    this.#text = text;
  }

  /** Returns the description. */
  text(): string {
    return this.#text;
  }

  /** Returns undefined, because an approval would cover nothing. */
  identity(): Promise<ServerIdentity | undefined> {
    return Promise.resolve(undefined);
  }

  /** Returns undefined. */
  findUnapproved(_call: ResolvedCall): Maybe<Unapproved | undefined> {
    return undefined;
  }
}
