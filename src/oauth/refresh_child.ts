/**
 * The process that refreshes one sign-in. It reads the request from stdin, and writes `{}` or an
 * error.
 *
 * @module
 */

import { asPmlError } from "../core/errors.ts";
import { type RefreshRequest, refreshSignIn } from "./refresh_sign_in.ts";
import { NO_WARNINGS } from "../io/private_files.ts";
import { FileTokenStore } from "./token_store.ts";
import { GuardedFetch, type NetworkPolicy } from "../transport/http/client/guarded_fetch.ts";
import type { Proxy } from "../transport/http/client/proxy.ts";
import { keyringOf } from "./keyring.ts";

/** The URL of this file. To import the file ensures that all its dependencies are installed. */
export const REFRESH_CODE: string = import.meta.url;

const MOST_MS = 30_000;
const NEVER = new AbortController().signal;

/** The network with the proxy that the process was started with. */
class FixedNetwork implements NetworkPolicy {
  readonly #proxy: Proxy | undefined;

  constructor(proxy: Proxy | undefined) {
    this.#proxy = proxy;
  }

  proxy(): Proxy | undefined {
    return this.#proxy;
  }
}

async function main(): Promise<object> {
  const { folder, proxy, keyring, ...request }: RefreshRequest = await new Response(
    Deno.stdin.readable,
  )
    .json();
  const parsedProxy = proxy && { ...proxy, url: new URL(proxy.url) };
  using network = new GuardedFetch(new FixedNetwork(parsedProxy));
  try {
    const signal = AbortSignal.timeout(MOST_MS);
    // New tokens are stored even if they arrive late.
    const store = new FileTokenStore(folder, NO_WARNINGS, keyringOf(keyring, NEVER));
    await refreshSignIn(request, { store, send: network.fetch, signal });
    return {};
  } catch (error) {
    const { code, message, hint, detail } = asPmlError(error);
    return { code, message, hint, detail };
  }
}

if (import.meta.main) {
  const output = JSON.stringify(await main());
  await new Response(output).body?.pipeTo(Deno.stdout.writable).catch(() => {}); // PML may be gone
}
