/**
 * Signs and checks the entries of a registry whose key the user pinned. TLS proves only the host;
 * the signature proves that the owner of the key published the entry.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import type { KeyObject } from "node:crypto";
import process from "node:process";
import { PmlError } from "../core/errors.ts";
import { type JsonObject, quoted, textOf } from "../core/json.ts";
import { badEntryError } from "./_entry_words.ts";
import { canonicalHash, canonicalText } from "../policy/integrity.ts";

/** The private key of a registry. */
export interface SigningKey {
  /** The URL of the registry, as its clients configure it. */
  readonly registry: string;
  /** The Ed25519 key as PEM (PKCS 8). */
  readonly privateKey: string;
}

/** The public key of a registry, as the user configured it. */
export interface PinnedKey {
  readonly registry: string;
  /** The Ed25519 key as PEM, or as base64 of its 32 bytes or of its SPKI form. */
  readonly publicKey: string;
}

/** The bytes before the 32 bytes of a key in SPKI form. */
const SPKI = "302a300506032b6570032100";
const SPKI_LENGTH = 44;
const ISSUED = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;
const SIGNATURE = /^[A-Za-z0-9+/]{86}==$/;

/** Returns an entry with `issued`, such as `2026-01-31T12:00:00Z`, and `signature`. */
export function signManifest(
  json: JsonObject,
  { registry, privateKey }: SigningKey,
  issued: string,
): JsonObject {
  const { signature: _, ...rest } = json;
  const entry = { ...rest, issued };
  const key = crypto().createPrivateKey(privateKey);
  const signature = crypto().sign(null, signedBytes(entry, registry), key).toString("base64");
  return { ...entry, signature };
}

/**
 * Verifies the signature of an entry and returns the time when the entry was signed, in
 * milliseconds since the epoch. Throws REGISTRY_BAD_RESPONSE if the signature is missing or not
 * valid.
 */
export function verifyManifest(json: JsonObject, { registry, publicKey }: PinnedKey): number {
  const { signature, ...entry } = json;
  const key = publicKeyOf(publicKey, registry);
  const [signatureText, issued] = [textOf(signature), textOf(entry.issued)];
  const isSigned = SIGNATURE.test(signatureText) && ISSUED.test(issued) &&
    crypto().verify(null, signedBytes(entry, registry), key, Buffer.from(signatureText, "base64"));
  const at = Date.parse(issued);
  if (isSigned && !Number.isNaN(at)) return at;
  const why = signature === undefined ? "it is not signed" : "its signature is not from that key";
  const hint = "Report it to the registry's owner, or set a new public_key if it changed";
  throw badEntryError({ name: textOf(entry.fqdn), url: registry, why, hint });
}

/** Parses a public key. Throws CONFIG_INVALID if it is not valid. */
export function publicKeyOf(text: string, registry: string): KeyObject {
  try {
    const { createPublicKey } = crypto();
    const bytes = Buffer.from(text.trim(), "base64");
    const key = text.includes("-----BEGIN") ? createPublicKey(text) : createPublicKey({
      key: bytes.length === SPKI_LENGTH ? bytes : Buffer.concat([Buffer.from(SPKI, "hex"), bytes]),
      format: "der",
      type: "spki",
    });
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch {
    // The error below leaves out the platform's message.
  }
  throw new PmlError(
    "CONFIG_INVALID",
    `Cannot use the registry ${quoted(registry, 200)}: its public_key is not an Ed25519 key`,
    { hint: "Write the key as PEM, or its 32 bytes as base64" },
  );
}

/**
 * Returns the bytes that are signed: the members that approval requests show, and in `entry` the
 * hash of the whole entry, so that a command or a URL is signed as well.
 */
function signedBytes(entry: JsonObject, registry: string): Uint8Array {
  const signed = {
    registry: registry.replace(/^mcp\+/, "").replace(/\/+$/, ""),
    fqdn: entry.fqdn ?? null,
    version: entry.version ?? null,
    sha256: entry.integrity ?? null,
    permissions: entry.permissions ?? {},
    env: entry.env_required ?? [],
    tools: entry.tools ?? [],
    issued: entry.issued ?? null,
    entry: canonicalHash(entry),
  };
  return new TextEncoder().encode(canonicalText(signed));
}

/** Loads the platform's module at the first signature, because most registries have no key. */
function crypto() {
  return process.getBuiltinModule("node:crypto");
}
