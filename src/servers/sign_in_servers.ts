/**
 * The servers that the user signs in at.
 *
 * @module
 */

import { type ErrorCode, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import type { LoginHost } from "../oauth/logins.ts";
import type { OAuthServer } from "../oauth/oauth_server.ts";
import type { SignIns } from "../oauth/sign_ins.ts";
import type { Policy } from "../policy/policy.ts";
import type { Directory } from "./directory.ts";
import type { HttpValues } from "./http/http_options.ts";
import { kindNamed } from "./kinds.ts";
import type { Servers } from "./lists/servers.ts";
import type { Machine } from "./machine.ts";
import type { ServerOpening } from "./source.ts";

/** Finds the servers to sign in at, and uses their sign-ins. */
export class SignInServers implements LoginHost {
  readonly #opener: Pick<ServerOpening, "open">;
  readonly #machine: Machine;
  readonly #parts: {
    readonly policy: Policy;
    readonly directory: Directory;
    readonly servers: Servers;
  };

  /** Opens nothing yet. */
  constructor(
    opener: Pick<ServerOpening, "open">,
    machine: Machine,
    parts: { readonly policy: Policy; readonly directory: Directory; readonly servers: Servers },
  ) {
    this.#opener = opener;
    this.#machine = machine;
    this.#parts = parts;
  }

  /** How long a sign-in waits for the user, in milliseconds. */
  get signInMs(): number {
    return this.#parts.policy.now.config.limits.approvalMs;
  }

  /** Returns the sign-ins of the user. */
  signIns(): Promise<SignIns> {
    return this.#machine.signIns();
  }

  /** Uses the sign-in of a server that has changed. */
  signInChanged(name: string, mark: unknown): void {
    this.#machine.addresses.renew(name, mark);
    this.#parts.servers.lists.expire(name);
  }

  /** Returns a server to sign in at. Throws if it has no sign-in. */
  async signInAt(name: string): Promise<OAuthServer> {
    const { policy, directory } = this.#parts;
    const listing = directory.listingOf(name);
    const cannot = (code: ErrorCode, why: string, hint?: string) =>
      new PmlError(code, `Cannot sign in or out at ${quoted(name)}: ${why}`, { hint });
    if (kindNamed(listing.kind)?.definition?.remote === undefined) {
      throw policy.forbidden(name)?.error ??
        cannot("USAGE", "no server over HTTP has this name", "See `pml list`");
    }
    const blocked = listing.blocked();
    // guard: login-untrusted
    if (blocked !== undefined) throw cannot("WORKSPACE_UNTRUSTED", blocked);
    await this.#opener.open(listing);
    const { upstreams } = this.#machine;
    const values = this.#machine.upstreamOf(name, upstreams).values as HttpValues; // it is of this kind
    if (Object.keys(values.headers).some((header) => /^authorization$/i.test(header))) {
      throw cannot("USAGE", "its definition has an Authorization header");
    }
    return values;
  }
}
