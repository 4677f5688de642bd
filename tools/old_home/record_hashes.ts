/**
 * Loaded before PML to record the texts that PML hashes. From these, `tools/old_home.ts` finds the
 * hashes of texts with folders and addresses.
 *
 * @module
 */

import process from "node:process";

/** The environment variable with the path of the file for the records. */
export const HASHES_VARIABLE = "TEST_HASHES";

interface NodeCrypto {
  hash: (algorithm: string, data: string | Uint8Array, encoding: string) => string;
}

const file = Deno.env.get(HASHES_VARIABLE);
if (file !== undefined) {
  const crypto = process.getBuiltinModule("node:crypto") as unknown as NodeCrypto;
  const { hash } = crypto;
  crypto.hash = (algorithm, data, encoding) => {
    const digest = hash(algorithm, data, encoding);
    const text = typeof data === "string" ? data : new TextDecoder().decode(data);
    Deno.writeTextFileSync(file, `${JSON.stringify([digest, text])}\n`, { append: true });
    return digest;
  };
}
