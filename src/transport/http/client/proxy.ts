/**
 * Decides which requests go through the person's proxy, and opens ways through it.
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

/** A proxy of the person. */
export interface Proxy {
  /** Its address, with the user and the password if there are any. */
  readonly url: URL;
  /** The hosts that are reached without it: names, `*.domain`, and ranges of addresses. */
  readonly except: readonly string[];
}

/** What connects behind a proxy, and for how long it is wanted. */
type Opening = ConnectionOptions & { readonly over: AbortSignal };

const HINT = "Check network.proxy in your config.yaml: http://${USER}:${PASSWORD}@HOST:PORT";

/** Returns whether a host is reached without the proxy. This machine always is. */
export async function isDirect(
  { except }: Proxy,
  { host, url }: { readonly host: string; readonly url: URL },
): Promise<boolean> {
  // guard: proxy-loopback
  if (isLoopback(host)) return true;
  for (const said of except.map((each) => each.toLowerCase())) {
    const is = said.includes("/")
      ? isLiteral(url.hostname) && await isInRange(host, [said]).catch(() => false)
      : /^\*?\./.test(said)
      ? host.endsWith(said.replace("*", ""))
      : [host, url.host].includes(said);
    if (is) return true;
  }
  return false;
}

/** Returns what connects to hosts through a proxy. TLS begins behind it. */
export function connector(proxy: Proxy): Agent["createConnection"] {
  const connect = (
    options: Opening,
    done: (error: Error | null, socket?: Socket) => void,
  ) => {
    tunnel(proxy, options).then((socket) => done(null, socket), done);
  };
  // Its type knows neither the options of a request nor that nothing is returned.
  return connect as unknown as Agent["createConnection"];
}

/** Opens a way to a host through a proxy. No byte of a request is sent before this is done. */
async function tunnel({ url }: Proxy, { over, ...options }: Opening): Promise<Socket> {
  const { request } = await import("node:http");
  const { connect } = await import("node:tls");
  const to = `${options.host?.includes(":") ? `[${options.host}]` : options.host}:${options.port}`;
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const failed = (why: string) => {
    const said = `Cannot reach ${quoted(to)}: the proxy ${quoted(url.host)} ${why}`;
    reject(new PmlError("UPSTREAM_DOWN", said, { hint: HINT, detail: { may_have_run: false } }));
  };
  const login = decodeURIComponent(`${url.username}:${url.password}`);
  const proof = `Basic ${new TextEncoder().encode(login).toBase64()}`;
  const asked = request({
    method: "CONNECT",
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port || 80,
    path: to,
    headers: { host: to, ...login !== ":" && { "proxy-authorization": proof } },
    // It has a connection of its own, whatever the environment says.
    agent: false,
  });
  let open: { destroy(): unknown } = asked;
  using _ = onAbort(over, () => open.destroy());
  asked.once("connect", ({ statusCode }, socket, head) => {
    // A server that speaks TLS says nothing before it is spoken to.
    if (statusCode === 200 && head.length === 0) {
      const secure = open = connect({ ...options, socket }, () => resolve(secure));
      secure.on("error", reject);
    } else {
      failed(statusCode === 407 ? "wants a user and a password" : `answered ${statusCode}`);
      socket.destroy();
    }
  });
  asked.on("error", ({ code }: { readonly code?: string }) => failed(`does not answer (${code})`));
  asked.end();
  return await promise;
}
