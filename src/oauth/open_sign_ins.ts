/**
 * Opens the sign-ins of the person. It is loaded by the first server over HTTP.
 *
 * @module
 */

import { join } from "node:path";
import type { Log } from "../audit/log.ts";
import { ownEnvironment } from "../config/child_environment.ts";
import { SignIns, type SignInsOptions } from "./sign_ins.ts";
import { keyringOf, keyringProgram } from "./keyring.ts";
import { type NetworkOptions, proxyOf } from "../policy/network.ts";

/** What sign-ins stand in. */
export interface OpenSignInsOptions
  extends NetworkOptions, Pick<SignInsOptions, "fetch" | "closing"> {
  readonly log: Log;
}

/** Opens the sign-ins of the person; nothing is read yet. */
export function openSignIns(options: OpenSignInsOptions): SignIns {
  const { policy, redactor, log, fetch, closing } = options;
  const { loaded } = policy.now;
  const { environment } = loaded;
  const keyring = keyringProgram(loaded);
  return new SignIns({
    fetch,
    closing,
    keyring: keyringOf(keyring, closing),
    folder: join(environment.home, "sign_ins"),
    clean: (error) => redactor.cleaned(error),
    document: () => policy.now.loaded.person.oauth?.client_metadata_url,
    issuerHosts: () => policy.now.loaded.person.oauth?.issuer_hosts,
    register: (secrets, over) => {
      for (const secret of secrets) redactor.register(secret);
      for (const secret of over) redactor.forget(secret);
    },
    warn: (message) => log.warn(message),
    refresh: async () => {
      const { REFRESH_CODE } = await import("./refresh_child.ts");
      const proxy = proxyOf(options);
      return {
        code: REFRESH_CODE,
        env: ownEnvironment(environment),
        keyring,
        proxy: proxy && { ...proxy, url: proxy.url.href },
      };
    },
  });
}
