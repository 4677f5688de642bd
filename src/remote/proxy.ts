/**
 * Decides which requests go through the person's proxy, and opens ways through it.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import type { Agent } from "node:http";
import { connect, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { isInRange, isLiteral, isLoopback } from "../core/address.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { onAbort } from "../io/waiting.ts";

/** A proxy of the person. */
export interface Proxy {
  /** Its address, without a user and a password. */
  readonly url: URL;
  /** The user and the password, with a colon between them; empty if there are none. */
  readonly login: string;
  /** The hosts that are reached without it: names, `*.domain`, and ranges of addresses. */
  readonly except: readonly string[];
}

/** The most characters of an answer of a proxy. */
const ANSWER_MAX = 16_384;
const HINT =
  "Check network.proxy and network.no_proxy in your config.yaml, and what the proxy allows";
const REFUSED = "does not accept the user and the password";
const LOGIN_HINT =
  "Write network.proxy as http://${PROXY_USER}:${PROXY_PASSWORD}@HOST:PORT, and set both (Basic)";

/** Returns whether a host is reached without the proxy. This machine always is. */
export async function isDirect(
  { except }: Proxy,
  { host, url }: { readonly host: string; readonly url: URL },
): Promise<boolean> {
  if (isLoopback(host)) return true;
  for (const said of except.map((each) => each.toLowerCase())) {
    const is = said.includes("/")
      ? isLiteral(url.hostname) && host.includes(":") === said.includes(":") &&
        await isInRange(host, [said])
      : /^\*?\./.test(said)
      ? host.endsWith(said.replace("*", ""))
      : [host, url.host].includes(said);
    if (is) return true;
  }
  return false;
}

/** Returns what connects to hosts through a proxy. TLS begins behind it. */
export function connector(proxy: Proxy): Agent["createConnection"] {
  const connector = (
    options: ConnectionOptions & { readonly over: AbortSignal },
    done: (error: Error | null, socket?: Socket) => void,
  ) => {
    const { host, port, over } = options;
    const to = `${host?.includes(":") ? `[${host}]` : host}:${port}`;
    tunnel(proxy, { to, over }).then(
      (socket) => done(null, connectTls({ ...options, socket })),
      done,
    );
  };
  // Its type knows neither the options of a request nor that nothing is returned.
  return connector as unknown as Agent["createConnection"];
}

/** Opens a way to a host through a proxy. No byte of a request is sent before this is done. */
async function tunnel(
  { url, login }: Proxy,
  { to, over }: {
    /** The host and its port. */
    readonly to: string;
    /** Aborts when nobody needs the way any more. */
    readonly over: AbortSignal;
  },
): Promise<Socket> {
  const isSecure = url.protocol === "https:";
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const port = Number(url.port) || (isSecure ? 443 : 80);
  const socket = isSecure
    ? connectTls({ host, port, ...!isLiteral(url.hostname) && { servername: host } })
    : connect({ host, port });
  using _ = onAbort(over, () => socket.destroy());
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const failed = (why: string, hint?: string) =>
    reject(
      new PmlError(
        "UPSTREAM_DOWN",
        `Cannot reach ${quoted(to)}: the proxy ${quoted(url.host)} ${why}`,
        {
          hint: hint ?? HINT,
          detail: { may_have_run: false },
        },
      ),
    );
  const closed = () => failed("closed the connection");
  let said = "";
  const hear = (piece: Uint8Array) => {
    said += Buffer.from(piece).toString("latin1");
    const end = said.indexOf("\r\n\r\n") + 4;
    if (end < 4 && said.length <= ANSWER_MAX) return;
    const [, status] = /^HTTP\/1\.[01] ([2-5]\d\d)[ \r]/.exec(said) ?? [];
    if (!status || end > ANSWER_MAX) failed("gave no valid answer");
    else if (status === "407") {
      failed(login === "" ? "wants a user and a password" : REFUSED, LOGIN_HINT);
    } else if (!status.startsWith("2")) failed(`refused with the status ${status}`);
    // A server that speaks TLS says nothing before it is spoken to.
    else if (end < said.length) failed("gave no valid answer");
    else resolve();
  };
  socket.on("error", reject).on("close", closed).on("data", hear);
  socket.once(isSecure ? "secureConnect" : "connect", () => {
    const proof = login &&
      `Proxy-Authorization: Basic ${Buffer.from(login).toString("base64")}\r\n`;
    socket.write(`CONNECT ${to} HTTP/1.1\r\nHost: ${to}\r\n${proof}\r\n`);
  });
  try {
    await promise;
  } catch (error) {
    socket.destroy();
    // It says of which of the two hosts it is.
    throw error instanceof PmlError ? error : Object.assign(Object(error), { proxy: url.host });
  }
  // An error that comes later is told by the connection that uses this one.
  socket.off("close", closed).off("data", hear);
  return socket;
}
