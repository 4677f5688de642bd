/**
 * Is loaded before PML, and records which texts it hashes: `tools/old_home.ts` finds out from them
 * which names of files depend on the places of the workspace and of servers.
 *
 * @module
 */

import process from "node:process";

/** The variable with the path of the record. */
export const HASHES_VARIABLE = "TEST_HASHES";

interface NodeCrypto {
  hash: (algorithm: string, data: string | Uint8Array, encoding: string) => string;
}

const file = Deno.env.get(HASHES_VARIABLE);
if (file !== undefined) {
  const crypto = process.getBuiltinModule("node:crypto") as unknown as NodeCrypto;
  const { hash } = crypto;
  crypto.hash = (algorithm, data, encoding) => {
    const own = hash(algorithm, data, encoding);
    const text = typeof data === "string" ? data : new TextDecoder().decode(data);
    Deno.writeTextFileSync(file, `${JSON.stringify([own, text])}\n`, { append: true });
    return own;
  };
}
