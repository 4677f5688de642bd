/**
 * Addresses of skills (`skill://`) and pages (`ui://`) in PML's lists. They have the server as first
 * segment, so those of two servers are never equal. They keep their scheme, because clients refuse
 * another one.
 *
 * @module
 */

/** The schemes of these addresses. */
export type PlacedScheme = "skill://" | "ui://";

/** A server, and its own address. */
export interface PlacedAddress {
  readonly server: string;
  readonly name: string;
}

/**
 * Returns an address with the name of its server as first segment.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 *
 * const address = placedAddress("ui://", { server: "clock", name: "ui://get-time/app.html" });
 * assert.equal(address, "ui://clock/get-time/app.html");
 * ```
 */
export function placedAddress(scheme: PlacedScheme, { server, name }: PlacedAddress): string {
  return `${scheme}${server}/${name.slice(scheme.length)}`;
}

/** Splits an address that `placedAddress()` made; undefined for others. */
export function splitPlaced(scheme: PlacedScheme, uri: string): PlacedAddress | undefined {
  const isOfScheme = uri.slice(0, scheme.length).toLowerCase() === scheme;
  const [, server, rest] = /^([a-z\d._-]+)\/(.*)$/s.exec(uri.slice(scheme.length)) ?? [];
  if (!isOfScheme || server === undefined) return undefined;
  return { server, name: `${scheme}${rest}` };
}
