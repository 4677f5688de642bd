/**
 * Decides which network addresses belong to this machine or to a private network.
 *
 * @module
 */

/** The IPv4 ranges that are not public. */
export const PRIVATE_IPV4: readonly string[] = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
];
/**
 * The public range of IPv6. Some ranges within it lead back to IPv4 or are reserved for examples:
 * `PRIVATE_IPV6`.
 */
const PUBLIC_IPV6 = "2000::/3";
const PRIVATE_IPV6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];

/**
 * Returns whether a host is an IP address. An IPv6 address has brackets; a port may follow.
 */
export function isLiteral(host: string): boolean {
  return /^[\d.]+(:\d+)?$|^\[/.test(host);
}

/**
 * Returns whether a host is this machine. Takes a host without its port, as `URL.hostname` has it.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { isLoopback } from "@casys/pml/registry";
 *
 * assert.equal(isLoopback(new URL("http://[::1]:8080/").hostname), true);
 * assert.equal(isLoopback("192.168.0.1"), false);
 * ```
 */
export function isLoopback(host: string): boolean {
  return /^(localhost|127\.[\d.]+|\[?::1\]?)$/.test(host);
}

/** Returns whether an IP address is in one of these ranges, which must be of the same family. */
export async function isInRange(ip: string, ranges: readonly string[]): Promise<boolean> {
  const { BlockList, isIPv6 } = await import("node:net");
  const family = isIPv6(ip) ? "ipv6" : "ipv4";
  const list = new BlockList();
  for (const range of ranges) {
    const [net = "", bits] = range.split("/");
    list.addSubnet(net, Number(bits), family);
  }
  return list.check(ip, family);
}

/** Returns whether an IP address is not public. */
export async function isPrivate(address: string): Promise<boolean> {
  const { isIPv4, isIPv6 } = await import("node:net");
  // An address with a zone, such as `fe80::1%eth0`, belongs to one link only.
  if (address.includes("%")) return true;
  const ip = isIPv6(address) ? embeddedIpv4(address) ?? address : address;
  if (isIPv4(ip)) return await isInRange(ip, PRIVATE_IPV4);
  return !isIPv6(ip) || !await isInRange(ip, [PUBLIC_IPV6]) || await isInRange(ip, PRIVATE_IPV6);
}

/**
 * Returns the IPv4 address that a network without IPv4 reaches through this IPv6 address (NAT64).
 */
function embeddedIpv4(address: string): string | undefined {
  const { hostname } = new URL(`http://[${address}]`);
  const match = /^\[64:ff9b::(?:([\da-f]+):)?([\da-f]*)\]$/.exec(hostname);
  if (match === null) return undefined;
  const [high = 0, low = 0] = match.slice(1).map((group) => parseInt(group || "0", 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}
