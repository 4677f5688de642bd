/**
 * The token that every request over HTTP carries.
 *
 * @module
 */

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { locked, readPlain, writeWhole } from "../io/private_files.ts";

const BYTES = 32;

/** Reads the token in a file of the PML home. Makes one if there is none. */
export async function keptToken(path: string): Promise<string> {
  return await locked(`${path}.lock`, async () => {
    const kept = new TextDecoder().decode(readPlain(path)?.bytes).trim();
    if (kept !== "") return kept;
    const made = randomBytes(BYTES).toString("base64url");
    await writeWhole(path, { bytes: new TextEncoder().encode(`${made}\n`), mode: 0o600 });
    return made;
  });
}

/**
 * Returns what tells whether a value of the header `Authorization` holds the token. Its time does
 * not depend on how much of the token is right.
 */
export function bearer(token: string): (authorization: string) => boolean {
  const wanted = hashOf(token);
  return (authorization) => {
    const [, said = ""] = /^bearer ([^\s]+)$/i.exec(authorization) ?? [];
    return timingSafeEqual(hashOf(said), wanted);
  };
}

function hashOf(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
