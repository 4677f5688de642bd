import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { publicKeyOf, signManifest, verifyManifest } from "./signature.ts";

const REGISTRY = "https://registry.example/mcp";
const ISSUED = "2026-01-31T12:00:00Z";
const pair = () => generateKeyPairSync("ed25519");
const pem = ({ privateKey }: ReturnType<typeof pair>) =>
  privateKey.export({ format: "pem", type: "pkcs8" }).toString();
const OWN = pair();
const PUBLIC = OWN.publicKey.export({ format: "pem", type: "spki" }).toString();
const ENTRY: JsonObject = {
  fqdn: "serena",
  type: "stdio",
  version: "1.2.0",
  install: { command: "uvx", args: ["serena@1.2.0"] },
  tools: ["analyze"],
  env_required: ["SERENA_TOKEN"],
};

function signed(entry = ENTRY, registry = REGISTRY, key = OWN): JsonObject {
  return signManifest(entry, { registry, privateKey: pem(key) }, ISSUED);
}

function refuses(json: JsonObject, says: RegExp, publicKey = PUBLIC): void {
  assert.throws(() => verifyManifest(json, { registry: REGISTRY, publicKey }), (error) => {
    assert.ok(error instanceof PmlError && error.code === "REGISTRY_BAD_RESPONSE", `${error}`);
    assert.match(error.message, says);
    return true;
  });
}

Deno.test("verifyManifest() accepts signed entries with every form of the key", () => {
  const der = OWN.publicKey.export({ format: "der", type: "spki" });
  const forms = [PUBLIC, der.toString("base64"), `${der.subarray(12).toString("base64")}\n`];
  const json = JSON.parse(JSON.stringify(signed(), null, 2));
  const turned = Object.fromEntries(Object.entries(json).reverse()) as JsonObject;
  for (const publicKey of forms) {
    for (const registry of [REGISTRY, `${REGISTRY}/`, `mcp+${REGISTRY}`]) {
      assert.equal(verifyManifest(json, { registry, publicKey }), Date.parse(ISSUED));
      assert.equal(verifyManifest(turned, { registry, publicKey }), Date.parse(ISSUED));
    }
  }
  // A new signature replaces the old one.
  const again = signManifest(
    json,
    { registry: REGISTRY, privateKey: pem(OWN) },
    "2026-02-01T00:00:00.5Z",
  );
  assert.equal(verifyManifest(again, { registry: REGISTRY, publicKey: PUBLIC }), 1769904000500);
});

Deno.test("verifyManifest() rejects an entry with any change", () => {
  const json = signed();
  const changes: JsonObject[] = [
    { fqdn: "other" },
    { version: "1.2.1" },
    { install: { command: "npx", args: ["evil"] } },
    { tools: [] },
    { env_required: ["ANTHROPIC_API_KEY"] },
    { permissions: { net: ["evil.example"] } },
    { integrity: `sha256-${"0".repeat(64)}` },
    { issued: "2027-01-31T12:00:00Z" },
    { url: "https://evil.example" },
    { warnings: [] },
  ];
  for (const change of changes) refuses({ ...json, ...change }, /not from that key/);
  const { signature: _, ...unsigned } = json;
  refuses(unsigned, /is not signed/);
  refuses({ ...json, signature: "x" }, /not from that key/);
  refuses({ ...json, signature: 7 }, /not from that key/);
  refuses(signed(ENTRY, "https://other.example/mcp"), /not from that key/);
  refuses(signed(ENTRY, REGISTRY, pair()), /not from that key/);
  refuses(
    signManifest(ENTRY, { registry: REGISTRY, privateKey: pem(OWN) }, "today"),
    /key/,
  );
});

Deno.test("publicKeyOf() accepts only Ed25519 keys, and errors do not contain the key", () => {
  const rsa = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey;
  const wrong = ["", "SECRET", "AAAA", rsa.export({ format: "pem", type: "spki" }).toString()];
  for (const text of wrong) {
    assert.throws(() => publicKeyOf(text, REGISTRY), (error) => {
      assert.ok(error instanceof PmlError && error.code === "CONFIG_INVALID", `${error}`);
      assert.match(error.message, /registry\.example.*public_key is not an Ed25519 key/);
      assert.ok(text === "" || !error.message.includes(text));
      return true;
    });
  }
});
