/**
 * Opens the sign-ins of the user. The first server over HTTP loads this file.
 *
 * @module
 */

import { join } from "node:path";
import type { Log } from "../audit/log.ts";
import { ownEnvironment } from "../config/child_environment.ts";
import type { Environment } from "../config/env.ts";
import type { PmlError } from "../core/errors.ts";
import type { Fetch } from "../core/fetch.ts";
import type { IssuerHosts } from "./_sites.ts";
import { refreshInProcess, type RefreshRequest } from "./refresh_sign_in.ts";
import { SignIns } from "./sign_ins.ts";
import type { SignInHost } from "./oauth_server.ts";
import type { Keyring } from "./token_store.ts";
import { keyringOf, keyringProgram, type OutsideProgram } from "./keyring.ts";
import { type NetworkParts, proxyOf } from "../policy/network.ts";

/** The parts of PML that sign-ins use. */
interface SignInParts extends NetworkParts {
  readonly log: Log;
}

/** Opens the sign-ins of the user without reading anything. */
export function openSignIns(parts: SignInParts, fetch: Fetch, closing: AbortSignal): SignIns {
  return new SignIns(new OwnSignInHost(parts, fetch, closing));
}

/** The sign-in host of this process. */
class OwnSignInHost implements SignInHost {
  readonly folder: string;
  readonly keyring: Keyring | undefined;
  readonly log: Log;
  readonly fetch: Fetch;
  readonly #closing: AbortSignal;
  readonly #parts: SignInParts;
  readonly #environment: Environment;
  readonly #keyringProgram: OutsideProgram | undefined;

  constructor(parts: SignInParts, fetch: Fetch, closing: AbortSignal) {
    const { loaded } = parts.policy.now;
    this.#parts = parts;
    this.#environment = loaded.environment;
    this.#keyringProgram = keyringProgram(loaded);
    this.keyring = keyringOf(this.#keyringProgram, closing);
    this.folder = join(loaded.environment.home, "sign_ins");
    this.log = parts.log;
    this.fetch = fetch;
    this.#closing = closing;
  }

  get document(): string | undefined {
    return this.#parts.policy.now.loaded.userConfig.oauth?.client_metadata_url;
  }

  get issuerHosts(): IssuerHosts | undefined {
    return this.#parts.policy.now.loaded.userConfig.oauth?.issuer_hosts;
  }

  clean(error: PmlError): unknown {
    return this.#parts.redactor.cleanError(error);
  }

  register(secrets: readonly string[], oldSecrets: readonly string[]): void {
    const { redactor } = this.#parts;
    for (const secret of secrets) redactor.register(secret);
    for (const secret of oldSecrets) redactor.forget(secret);
  }

  async refresh(request: RefreshRequest): Promise<void> {
    const { REFRESH_CODE } = await import("./refresh_child.ts");
    const proxy = proxyOf(this.#parts);
    await refreshInProcess(request, {
      code: REFRESH_CODE,
      env: ownEnvironment(this.#environment),
      keyring: this.#keyringProgram,
      proxy: proxy && { ...proxy, url: proxy.url.href },
      closing: this.#closing,
    });
  }
}
