/**
 * Refreshes a sign-in in a separate process, which continues if PML ends. A refresh token may be
 * used only once, so if PML itself were killed during the refresh, the new tokens would be lost.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import type { Certificates, Fetch } from "../core/fetch.ts";
import { onAbort } from "../io/waiting.ts";
import { DENO_QUIET } from "../sandbox/deno_flags.ts";
import { packageFlags } from "../sandbox/own_code.ts";
import { startProcess } from "../sandbox/process.ts";
import { clientAuth } from "./_client.ts";
import { Protocol } from "./_protocol.ts";
import { assertSites, type IssuerHosts } from "./_sites.ts";
import { tokensFrom } from "./_tokens.ts";
import { forgetClient, type TokenStore } from "./token_store.ts";

/** The request that the process reads from stdin. */
export interface RefreshRequest {
  readonly folder: string;
  readonly key: string;
  /** The access token to replace. */
  readonly spent: string;
  /** The secret of a configured client. */
  readonly secret: string | undefined;
  /** The hosts that the user configured. */
  readonly named: readonly string[];
  readonly certificates: Certificates | undefined;
  /** The user's list of hosts that an issuer may use. */
  readonly issuerHosts?: IssuerHosts | undefined;
  /** The user's proxy. */
  readonly proxy?: { readonly url: string; readonly except: readonly string[] } | undefined;
  /** The keyring program and its environment. */
  readonly keyring?:
    | { readonly file: string; readonly env: Readonly<Record<string, string>> }
    | undefined;
}

/** How the process is started, and the parts of the request that are the same for all sign-ins. */
interface RefreshProgram extends Pick<RefreshRequest, "proxy" | "keyring"> {
  /** The URL of its main file. */
  readonly code: string;
  readonly env: Readonly<Record<string, string>>;
  /** Aborts when PML ends. PML does not wait for the process. */
  readonly closing: AbortSignal;
}

/** The error codes that end a sign-in, even if its access token is still valid. */
const ENDING_CODES = /^(invalid_grant|invalid_client|unauthorized_client)$/;

const KILLED = "Cannot refresh the sign-in: its process ended";

/**
 * Refreshes a sign-in in another process, and waits for its end. Throws the error that it reports.
 */
export async function refreshInProcess(
  request: RefreshRequest,
  { code, env, closing, ...commonParts }: RefreshProgram,
): Promise<void> {
  const child = startProcess({
    file: Deno.execPath(),
    args: ["run", "-qA", "--cached-only", ...packageFlags(code), code],
    cwd: request.folder,
    env: { ...env, ...DENO_QUIET },
  }, { outlives: true });
  // The process continues after PML ends, so PML does not wait for it.
  using _ = onAbort(closing, () => child.unref());
  const input = new Response(JSON.stringify({ ...request, ...commonParts })).body;
  const [output, errorOutput] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.status,
    input?.pipeTo(child.stdin).catch(() => {}),
  ]);
  if (output === "{}") return;
  const { code: errorCode = "UPSTREAM_DOWN", message = KILLED, ...rest } = JSON.parse(
    output || "{}",
  );
  throw new PmlError(errorCode, message, { hint: "Try again", cause: errorOutput, ...rest });
}

/**
 * Returns whether an answer refuses a refresh permanently. Services refuse with many codes and
 * statuses; only statuses 429 (too many requests) and 408 (timeout) may succeed later.
 */
function isRefusal(error: unknown, status: number): boolean {
  if (error instanceof PmlError) return false;
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}

/** Refreshes a sign-in, unless another process did. Stores the tokens before it returns. */
export async function refreshSignIn(
  { key, spent, secret, named, certificates, issuerHosts }: Omit<RefreshRequest, "folder">,
  { store, send, signal }: {
    readonly store: TokenStore;
    readonly send: Fetch;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  await store.withLock(key, async () => {
    const entry = await store.read(key);
    // guard: sign-in-queue
    if (entry?.refreshToken === undefined || entry.accessToken !== spent) return;
    const { server: name, url, issuer, client, resource, refreshToken } = entry;
    const server = { name, url, named: new Set(named), certificates };
    const protocol = await Protocol.open(server, { fetch: send });
    const { library } = protocol;
    const as = { issuer, token_endpoint: entry.tokenEndpoint };
    const auth = clientAuth(protocol, client, secret);
    await protocol.act(async () => {
      // Sign-ins older than this check may have any token endpoint.
      await assertSites(protocol, as, issuerHosts);
      let status = 0;
      const request = async (scope: string) => {
        const response = await library.refreshTokenGrantRequest(as, client, auth, refreshToken, {
          ...protocol.options<"POST">(signal),
          additionalParameters: { resource, ...scope !== "" && { scope } },
        });
        ({ status } = response);
        return await library.processRefreshTokenResponse(as, client, response);
      };
      try {
        const scope = entry.scopes.join(" ");
        const answer = await request(scope).catch((error) => {
          if (scope === "" || Object(error).error !== "invalid_scope") throw error;
          return request("");
        });
        await store.write(key, { ...entry, ...tokensFrom(protocol, answer, entry) });
      } catch (error) {
        if (!isRefusal(error, status)) throw error;
        const refusal = Object(error).error === undefined
          ? `its authorization server answered with the status ${status}`
          : protocol.errorText(error);
        const endsSignIn = ENDING_CODES.test(Object(error).error);
        // Otherwise calls work until the access token expires.
        if (!endsSignIn && entry.until !== undefined && entry.until > Date.now()) {
          throw protocol.error("LOGIN_REQUIRED", refusal, `Run: pml login ${name}`);
        }
        if (endsSignIn && Object(error).error !== "invalid_grant") {
          await forgetClient(store, entry, server);
        }
        // JSON omits members that are undefined.
        const noTokens = { accessToken: undefined, refreshToken: undefined, until: Date.now() };
        await store.write(key, { ...entry, ...noTokens, refusal });
      }
    }, signal);
  });
}
