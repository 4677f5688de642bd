import assert from "node:assert/strict";
import { isLiteral, isPrivate } from "./address.ts";

Deno.test("isPrivate() knows the addresses that are not public, whatever their family", async () => {
  const closed =
    "0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 172.31.0.1 " +
    "192.168.1.1 198.18.0.1 224.0.0.1 255.255.255.255 :: ::1 ::ffff:127.0.0.1 ::ffff:7f00:1 " +
    "::ffff:8.8.8.8 64:ff9b::7f00:1 fc00::1 fd12::1 fe80::1 ff02::1 2002:7f00:1:: 2001:db8::1 2001::1";
  for (const address of closed.split(" ")) assert.ok(await isPrivate(address), address);
  for (const address of "8.8.8.8 1.1.1.1 172.32.0.1 100.128.0.1 2606:4700::1111".split(" ")) {
    assert.ok(!await isPrivate(address), address);
  }
});

Deno.test("isLiteral() tells an address from a name", () => {
  for (const host of ["127.0.0.1", "[::1]", "1.1.1.1"]) assert.ok(isLiteral(host), host);
  for (const host of ["localhost", "api.example.com", "1.example.com"]) {
    assert.ok(!isLiteral(host), host);
  }
});
