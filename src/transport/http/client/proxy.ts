/**
 * Selects the requests that use the user's proxy, and opens tunnels through it.
 *
 * @module
 */

import type { Agent } from "node:http";
import type { Socket } from "node:net";
import type { ConnectionOptions } from "node:tls";
import { isInRange, isLiteral, isLoopback } from "../../../core/address.ts";
import { PmlError } from "../../../core/errors.ts";
import { quoted } from "../../../core/json.ts";
import { onAbort } from "../../../io/waiting.ts";

/** The user's proxy. */
export interface Proxy {
  /** The URL of the proxy, with the user and the password if there are any. */
  readonly url: URL;
  /** The hosts that bypass the proxy: names, `*.domain`, and address ranges. */
  readonly except: readonly string[];
}

/** The options of a connection through a proxy. `tunnelEnd` aborts when the tunnel is no longer needed. */
type ProxyTarget = ConnectionOptions & { readonly tunnelEnd: AbortSignal };

const HINT = "Check network.proxy in your config.yaml: http://${USER}:${PASSWORD}@HOST:PORT";

/** Returns whether PML reaches a host without the proxy. It always reaches this machine so. */
export async function isDirect(
  { except }: Proxy,
  { host, url }: { readonly host: string; readonly url: URL },
): Promise<boolean> {
  // guard: proxy-loopback
  if (isLoopback(host)) return true;
  for (const exception of except.map((each) => each.toLowerCase())) {
    const isMatch = exception.includes("/")
      ? isLiteral(url.hostname) && await isInRange(host, [exception]).catch(() => false)
      : /^\*?\./.test(exception)
      ? host.endsWith(exception.replace("*", ""))
      : [host, url.host].includes(exception);
    if (isMatch) return true;
  }
  return false;
}

/** Returns a function that connects to hosts through a proxy. TLS is end-to-end with the host. */
export function createConnector(proxy: Proxy): Agent["createConnection"] {
  const connect = (
    options: ProxyTarget,
    done: (error: Error | null, socket?: Socket) => void,
  ) => {
    openTunnel(proxy, options).then((socket) => done(null, socket), done);
  };
  // The declared type lacks the request options and requires a return value.
  return connect as unknown as Agent["createConnection"];
}

/** Opens a tunnel to a host through a proxy. Sends no part of the actual request. */
async function openTunnel({ url }: Proxy, { tunnelEnd, ...options }: ProxyTarget): Promise<Socket> {
  const { request } = await import("node:http");
  const { connect } = await import("node:tls");
  const to = `${options.host?.includes(":") ? `[${options.host}]` : options.host}:${options.port}`;
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const fail = (why: string) => {
    const message = `Cannot reach ${quoted(to)}: the proxy ${quoted(url.host)} ${why}`;
    reject(new PmlError("UPSTREAM_DOWN", message, { hint: HINT, detail: { may_have_run: false } }));
  };
  const login = decodeURIComponent(`${url.username}:${url.password}`);
  const proof = `Basic ${new TextEncoder().encode(login).toBase64()}`;
  const connectRequest = request({
    method: "CONNECT",
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port || 80,
    path: to,
    headers: { host: to, ...login !== ":" && { "proxy-authorization": proof } },
    // A separate connection, which ignores proxies in the environment.
    agent: false,
  });
  let connection: { destroy(): unknown } = connectRequest;
  using _ = onAbort(tunnelEnd, () => connection.destroy());
  connectRequest.once("connect", ({ statusCode }, socket, head) => {
    // A TLS server sends nothing before the client does, so early data is not from the server.
    if (statusCode === 200 && head.length === 0) {
      const secure = connection = connect({ ...options, socket }, () => resolve(secure));
      secure.on("error", reject);
    } else {
      fail(statusCode === 407 ? "wants a user and a password" : `answered ${statusCode}`);
      socket.destroy();
    }
  });
  connectRequest.on(
    "error",
    ({ code }: { readonly code?: string }) => fail(`does not answer (${code})`),
  );
  connectRequest.end();
  return await promise;
}
