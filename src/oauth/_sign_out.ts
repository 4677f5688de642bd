/**
 * Ends a sign-in.
 *
 * @module
 */

import { clientAuth } from "./_client.ts";
import { Protocol } from "./_protocol.ts";
import { assertSites } from "./_sites.ts";
import type { SignInRequest } from "./_sign_in.ts";
import { forgetClient, keepUser, signInKey, type StoredSignIn } from "./token_store.ts";

/**
 * Revokes the tokens if the authorization server supports that, and removes them. `filed` is the
 * content of the sign-in's file, which may lack the secrets.
 */
export async function endSignIn(
  filed: StoredSignIn,
  { host, store, server, signal }: Omit<SignInRequest, "neededScopes">,
): Promise<"removed" | "revoked"> {
  const key = signInKey(server);
  return await store.withLock(key, async () => {
    const current = await store.read(key).catch(() => undefined);
    const { refreshToken, accessToken } = current ?? {};
    let ended = filed;
    // The user may have signed in again meanwhile, at another authorization server.
    // guard: sign-out-issuer
    if (current !== undefined) ended = current;
    const { issuer, url, client, revocationEndpoint } = ended;
    await store.remove(key);
    await forgetClient(store, { issuer, client }, server);
    if (server.oauth?.client_id !== undefined) await keepUser(store, { issuer, client, url });
    const tokens = [refreshToken, accessToken].filter((token) => token !== undefined);
    if (revocationEndpoint === undefined || tokens.length === 0) return "removed";
    let result: "removed" | "revoked" = "removed";
    try {
      const protocol = await Protocol.open(server, host);
      const { library } = protocol;
      const as = { issuer, revocation_endpoint: revocationEndpoint };
      await assertSites(protocol, as, host.issuerHosts);
      const auth = clientAuth(protocol, client, server.oauth?.client_secret);
      for (const token of tokens) {
        const options = protocol.options<"POST">(signal);
        const response = await library.revocationRequest(as, client, auth, token, options);
        await library.processRevocationResponse(response);
        result = "revoked"; // also if the next fails: some servers revoke only refresh tokens
      }
    } catch {
      // The server is unreachable. This machine has deleted the tokens already.
    }
    return result;
  });
}
