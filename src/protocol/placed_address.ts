/**
 * Addresses of skills (`skill://`) and pages (`ui://`) in PML's lists. The first segment is the
 * server, so that addresses of two servers are never equal. The scheme does not change, because
 * clients refuse other schemes.
 *
 * @module
 */

/** The schemes of these addresses. */
export type PlacedScheme = "skill://" | "ui://";

/** A server, and an address in the form that this server uses. */
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
 * const address = addressInLists("ui://", { server: "clock", name: "ui://get-time/app.html" });
 * assert.equal(address, "ui://clock/get-time/app.html");
 * ```
 */
export function addressInLists(scheme: PlacedScheme, { server, name }: PlacedAddress): string {
  return `${scheme}${server}/${name.slice(scheme.length)}`;
}

/** Splits an address of `addressInLists()`; undefined for any other address. */
export function splitListAddress(scheme: PlacedScheme, uri: string): PlacedAddress | undefined {
  const isOfScheme = uri.slice(0, scheme.length).toLowerCase() === scheme;
  const [, server, rest] = /^([a-z\d._-]+)\/(.*)$/s.exec(uri.slice(scheme.length)) ?? [];
  if (!isOfScheme || server === undefined) return undefined;
  return { server, name: `${scheme}${rest}` };
}
