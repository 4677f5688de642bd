import assert from "node:assert/strict";
import { containsKnownKey, withoutKnownKeys } from "./key_kinds.ts";

const hex = (length: number) => "0a1b2c3d4e5f6789".repeat(8).slice(0, length);

Deno.test("withoutKnownKeys() removes keys of ten more kinds (GX19)", () => {
  const keys = [
    `shpat_${hex(32)}`,
    `SK${hex(32)}`,
    `AGE-SECRET-KEY-1${"QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L".repeat(2).slice(0, 58)}`,
    `key-${hex(32)}`,
    `pscale_tkn_${hex(40)}`,
    `PMAK-${hex(24)}-${hex(34)}`,
    `pul-${hex(40)}`,
    `rubygems_${hex(48)}`,
    `xkeysib-${hex(64)}-${"aB3".repeat(6).slice(0, 16)}`,
    `shippo_live_${hex(40)}`,
  ];
  for (const key of keys) {
    assert.equal(withoutKnownKeys(`a "${key}" b`), 'a "[redacted]" b', key);
    assert.ok(containsKnownKey({ list: [{ [key]: 1 }] }), key);
  }
  const others = [
    `SKU-${hex(32)}`,
    `monkey-${hex(32)}`,
    "pul-request",
    "key-value",
    `SK${hex(40)}`,
  ];
  for (const text of others) assert.equal(withoutKnownKeys(text), text);
});
