/**
 * The section `network` of `config.yaml`: the proxy of the person.
 *
 * @module
 */

/** The section as it was written. */
export interface NetworkSection {
  /** The URL of the proxy. A user and a password in it may be `${NAME}`. */
  readonly proxy: string;
  /** The hosts that are reached without it: names, `*.domain`, and ranges of addresses. */
  readonly no_proxy?: readonly string[] | undefined;
}

/** The user and the password of a proxy, as they were written. */
export interface ProxyLogin {
  readonly user: string;
  readonly password: string;
}

/** Returns the address of the proxy without a user and a password, and these. */
export function partsOf({ proxy }: NetworkSection): { readonly url: URL } & ProxyLogin {
  const url = new URL(proxy);
  const [user, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
  url.username = url.password = "";
  return { url, user, password };
}

/** Returns the address of the proxy, as a person may see it. */
export function shownProxy(network: NetworkSection): string {
  return partsOf(network).url.origin;
}

/** Returns whether a text is the URL of a proxy. */
export function isProxy(text: string): boolean {
  try {
    const { url, user, password } = partsOf({ proxy: text });
    return /^https?:$/.test(url.protocol) && /^[\w.:[\]-]+$/.test(url.hostname) &&
      url.href === `${url.origin}/` && !/\$\{(?!\w+\})/.test(user + password);
  } catch {
    // It is no URL, or a percent sign in it begins no escape.
    return false;
  }
}

/** Returns whether a text names hosts that are reached without a proxy. */
export function isException(text: string): boolean {
  const [, net = "", bits] = /^([\d.]+|[\da-f:]+)\/(\d{1,3})$/i.exec(text) ?? [];
  if (bits === undefined) return /^(\*?\.)?[\w.:-]+$/.test(text);
  const isV6 = net.includes(":");
  const { hostname } = URL.parse(`http://${isV6 ? `[${net}]` : net}/`) ?? {};
  return (isV6 ? hostname !== undefined : hostname === net) && Number(bits) <= (isV6 ? 128 : 32);
}
