/**
 * The token that authenticates requests over HTTP.
 *
 * @module
 */

import { randomBytes, timingSafeEqual } from "node:crypto";
import { sha256 } from "../../core/hash.ts";
import { readPlainText, withLock, writeWhole } from "../../io/private_files.ts";

/** The number of random bytes of a token. */
const TOKEN_BYTES = 32;
const UTF_8 = new TextEncoder();

/** Reads the token from a file of the PML home. Creates it if there is none. */
export async function readOrCreateToken(path: string): Promise<string> {
  return await withLock(`${path}.lock`, async () => {
    const token = readPlainText(path)?.trim() ?? "";
    if (token !== "") return token;
    const created = newToken();
    await writeWhole(path, { bytes: UTF_8.encode(`${created}\n`), mode: 0o600 });
    return created;
  });
}

/** Returns the token of an `Authorization` header; empty if there is none. */
export function tokenIn(authorization: string): string {
  return /^bearer (\S+)$/i.exec(authorization)?.[1] ?? "";
}

/** Returns the SHA-256 of a token, in hexadecimal digits. */
export function tokenHash(token: string): string {
  return sha256(token);
}

/** Returns a new token. */
export function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString("base64url");
}

/** Compares the hashes of two tokens in constant time. */
export function isSameHash(one: string, other: string): boolean {
  return timingSafeEqual(UTF_8.encode(one), UTF_8.encode(other));
}
