/**
 * Seals values with a key that several processes of one PML share: other programs can neither read
 * nor change them.
 *
 * @module
 */

import { parseExact } from "../../core/exact_json.ts";
import { joinBytes } from "../../io/lines.ts";

const UTF_8 = new TextEncoder();
const AES = "AES-GCM";
const IV_BYTES = 12;
const URL_SAFE = { alphabet: "base64url" } as const;

/** Seals values, and opens values that were sealed with the same secret for the same purpose. */
export class Sealer {
  readonly #key: Promise<CryptoKey>;

  /** Derives the key for a purpose from a secret. */
  constructor(secret: Uint8Array<ArrayBuffer>, purpose: string) {
    const { subtle } = crypto;
    const derivation = { hash: "SHA-256", salt: new Uint8Array(), info: UTF_8.encode(purpose) };
    const keyType = { name: AES, length: 256 };
    // guard: sealed-key
    this.#key = subtle.importKey("raw", secret, "HKDF", false, ["deriveKey"]).then((key) =>
      subtle.deriveKey({ name: "HKDF", ...derivation }, key, keyType, false, ["encrypt", "decrypt"])
    );
  }

  /** Encrypts a value. Only `open()` with equal `bound` values returns it again. */
  async seal(value: unknown, bound: readonly unknown[]): Promise<string> {
    const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
    const bytes = UTF_8.encode(JSON.stringify(value));
    const sealed = await crypto.subtle.encrypt(cipherOptions(iv, bound), await this.#key, bytes);
    return joinBytes([iv, new Uint8Array(sealed)]).toBase64({ ...URL_SAFE, omitPadding: true });
  }

  /** Opens a sealed value; undefined if it is invalid or bound to other values. */
  async open(sealed: string, bound: readonly unknown[]): Promise<unknown> {
    try {
      const bytes = Uint8Array.fromBase64(sealed, URL_SAFE);
      const options = cipherOptions(bytes.subarray(0, IV_BYTES), bound);
      const rest = bytes.subarray(IV_BYTES);
      const opened = await crypto.subtle.decrypt(options, await this.#key, rest);
      return parseExact(new TextDecoder().decode(opened));
    } catch {
      // The value was changed, or is bound to other values.
      return undefined;
    }
  }
}

function cipherOptions(iv: Uint8Array<ArrayBuffer>, bound: readonly unknown[]): AesGcmParams {
  return { name: AES, iv, additionalData: UTF_8.encode(JSON.stringify(bound)) };
}
