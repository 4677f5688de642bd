import assert from "node:assert/strict";
import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { isLiteral, isLoopback, isPrivate } from "./address.ts";

Deno.test("isPrivate() knows the private addresses of each family", async () => {
  const closed =
    "0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 172.31.0.1 " +
    "192.168.1.1 198.18.0.1 224.0.0.1 255.255.255.255 :: ::1 ::ffff:127.0.0.1 ::ffff:7f00:1 " +
    "::ffff:8.8.8.8 64:ff9b::7f00:1 64:ff9b:: 64:ff9b::1 64:ff9b::a9fe:a9fe 64:ff9b:1::808:808 " +
    "fc00::1 fd12::1 fe80::1 fe80::1%eth0 ff02::1 2002:7f00:1:: 2001:db8::1 2001::1 " +
    "2606:4700::1111%1 8.8.8.8.8 localhost";
  for (const address of closed.split(" ")) assert.ok(await isPrivate(address), address);
  const open = "8.8.8.8 1.1.1.1 172.32.0.1 100.128.0.1 2606:4700::1111 64:ff9b::8.8.8.8";
  for (const address of open.split(" ")) assert.ok(!await isPrivate(address), address);
});

Deno.test("isPrivate() lets nothing pass that a package for addresses calls anything but unicast", async () => {
  const octet = fc.integer({ min: 0, max: 255 });
  const group = fc.integer({ min: 0, max: 0xffff }).map((value) => value.toString(16));
  const first = fc.constantFrom("2001", "2002", "2606", "3fff", "64", "fe80", "fec0", "0", "100");
  const v4 = fc.tuple(octet, octet, octet, octet).map((octets) => octets.join("."));
  const v6 = fc.tuple(first, ...Array.from({ length: 7 }, () => group))
    .map((groups) => groups.join(":"));
  await fc.assert(
    fc.asyncProperty(fc.oneof(v4, v6, v4.map((ip) => `::ffff:${ip}`)), async (address) => {
      const range = ipaddr.process(address).range();
      if (range !== "unicast") assert.ok(await isPrivate(address), `${address} is ${range}`);
    }),
    { seed: 5, numRuns: 2_000 },
  );
  await fc.assert(
    fc.asyncProperty(v4, async (address) => {
      const [high = 0, low = 0] = ipaddr.IPv4.parse(address).toByteArray().reduce<number[]>(
        (pairs, byte, at) => {
          if (at % 2 === 0) pairs.push(byte * 256);
          else pairs[pairs.length - 1]! += byte;
          return pairs;
        },
        [],
      );
      const translated = `64:ff9b::${high.toString(16)}:${low.toString(16)}`;
      assert.equal(await isPrivate(translated), await isPrivate(address), address);
    }),
    { seed: 5, numRuns: 500 },
  );
});

Deno.test("isLiteral() distinguishes an address from a name", () => {
  for (const host of ["127.0.0.1", "[::1]", "1.1.1.1"]) assert.ok(isLiteral(host), host);
  for (const host of ["localhost", "api.example.com", "1.example.com"]) {
    assert.ok(!isLiteral(host), host);
  }
});

Deno.test("isLoopback() knows this machine by its address and its one name", () => {
  for (const host of ["127.0.0.1", "127.8.9.1", "[::1]", "::1", "localhost"]) {
    assert.ok(isLoopback(host), host);
  }
  for (const host of ["127.example.com", "localhost.example.com", "10.0.0.1", "[::]", "a::1"]) {
    assert.ok(!isLoopback(host), host);
  }
});
