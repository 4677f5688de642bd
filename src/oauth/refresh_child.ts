/**
 * The process that refreshes one sign-in, told on its input. It writes `{}`, or its error.
 *
 * @module
 */

import { asPmlError } from "../core/errors.ts";
import { type RefreshRequest, refreshSignIn } from "./refreshing.ts";
import { NO_WARNINGS } from "../io/private_files.ts";
import { FileTokenStore } from "./token_store.ts";
import { GuardedFetch } from "../transport/http/client/guarded_fetch.ts";
import { keyringOf } from "./keyring.ts";

/** The URL of this code. Whoever imports it has all of it installed, too. */
export const REFRESH_CODE: string = import.meta.url;

const MOST_MS = 30_000;
const NEVER = new AbortController().signal;

async function main(): Promise<object> {
  const { folder, proxy, keyring, ...request }: RefreshRequest = await new Response(
    Deno.stdin.readable,
  )
    .json();
  const way = proxy && { ...proxy, url: new URL(proxy.url) };
  using network = new GuardedFetch({ proxy: () => way });
  try {
    const signal = AbortSignal.timeout(MOST_MS);
    // What came is kept, also where its answer came late.
    const store = new FileTokenStore(folder, NO_WARNINGS, keyringOf(keyring, NEVER));
    await refreshSignIn(request, { store, send: network.fetch, signal });
    return {};
  } catch (error) {
    const { code, message, hint, detail } = asPmlError(error);
    return { code, message, hint, detail };
  }
}

if (import.meta.main) {
  const said = JSON.stringify(await main());
  await new Response(said).body?.pipeTo(Deno.stdout.writable).catch(() => {}); // PML may be gone
}
