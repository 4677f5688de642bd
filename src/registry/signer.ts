/**
 * The key of a registry that signs what it serves.
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
  /** What clients write as `public_key`. */
  readonly publicKey: string;
  /** Signs an entry of the registry at this address, as issued then. */
  readonly sign: (manifest: JsonObject, of: { registry: string; issued: Date }) => JsonObject;
}

/** Takes an Ed25519 key as PEM, or throws CONFIG_INVALID, which says nothing of what it is. */
export function signerOf(privateKey: string): Signer {
  const key = publicHalf(privateKey);
  if (key?.asymmetricKeyType !== "ed25519") {
    throw new PmlError("CONFIG_INVALID", "Cannot sign entries: the key is no Ed25519 key as PEM", {
      hint: "Make one with `openssl genpkey -algorithm ed25519 -out key.pem`",
    });
  }
  return {
    publicKey: key.export({ type: "spki", format: "der" }).toString("base64"),
    sign: (manifest, { registry, issued }) =>
      signManifest(manifest, { registry, privateKey, issued: issued.toISOString() }),
  };
}

function publicHalf(privateKey: string): KeyObject | undefined {
  const { createPrivateKey, createPublicKey } = process.getBuiltinModule("node:crypto");
  try {
    return createPublicKey(createPrivateKey(privateKey));
  } catch {
    return undefined; // the platform's own words may repeat the key
  }
}
