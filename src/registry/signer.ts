/**
 * The private key of a registry that signs its entries.
 *
 * @module
 */

import type { KeyObject } from "node:crypto";
import process from "node:process";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { signManifest } from "./signature.ts";

/** Signs entries. */
export interface Signer {
  /** The key that clients configure as `public_key`. */
  readonly publicKey: string;
  /** Signs an entry for the registry at this URL, with this time. */
  sign(manifest: JsonObject, of: { registry: string; issued: Date }): JsonObject;
}

/**
 * Creates a signer from an Ed25519 key as PEM.
 *
 * @throws {PmlError} CONFIG_INVALID if the key is not valid; the error does not contain the key.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { generateKeyPairSync } from "node:crypto";
 * import { signerOf } from "@casys/pml/registry";
 *
 * const { privateKey } = generateKeyPairSync("ed25519");
 * const signer = signerOf(privateKey.export({ type: "pkcs8", format: "pem" }).toString());
 * const of = { registry: "https://registry.example/mcp", issued: new Date() };
 * const signed = signer.sign({ fqdn: "weather", version: "1.0.0", type: "http" }, of);
 * assert.ok("signature" in signed);
 * assert.throws(() => signerOf("not a key"), { code: "CONFIG_INVALID" });
 * ```
 */
export function signerOf(privateKey: string): Signer {
  const key = publicHalf(privateKey);
  if (key?.asymmetricKeyType !== "ed25519") {
    throw new PmlError(
      "CONFIG_INVALID",
      "Cannot sign entries: the key is not an Ed25519 key in PEM",
      {
        hint: "Make one with `openssl genpkey -algorithm ed25519 -out key.pem`",
      },
    );
  }
  return new KeySigner(privateKey, key);
}

/** Signs with a private key in memory. */
class KeySigner implements Signer {
  readonly publicKey: string;
  readonly #privateKey: string;

  constructor(privateKey: string, publicKey: KeyObject) {
    this.publicKey = publicKey.export({ type: "spki", format: "der" }).toString("base64");
    this.#privateKey = privateKey;
  }

  sign(manifest: JsonObject, { registry, issued }: { registry: string; issued: Date }): JsonObject {
    const privateKey = this.#privateKey;
    return signManifest(manifest, { registry, privateKey }, issued.toISOString());
  }
}

function publicHalf(privateKey: string): KeyObject | undefined {
  const { createPrivateKey, createPublicKey } = process.getBuiltinModule("node:crypto");
  try {
    return createPublicKey(createPrivateKey(privateKey));
  } catch {
    return undefined; // the platform's message may repeat the key
  }
}
