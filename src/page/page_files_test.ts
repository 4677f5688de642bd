/**
 * Tests of the files of the page in a PML home.
 *
 * @module
 */

import assert from "node:assert/strict";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import type { Duplex } from "node:stream";
import { until } from "../../tests/kit/wait.ts";
import { connectToSocket, LineExchange } from "../transport/attach/private_socket.ts";
import { removeOpeners, requestLink, serveLinks, writeOpener } from "./page_files.ts";

Deno.test("the file that opens a browser is private, leads to the link, and is removed", async () => {
  const home = await Deno.makeTempDir();
  const url = "http://127.0.0.1:4000/#secret-of-the-link";
  const path = await writeOpener(home, url);
  assert.ok((await Deno.readTextFile(path)).includes(`url=${url}"`));
  assert.ok(!path.includes("secret"));
  if (Deno.build.os !== "windows") {
    for (const one of [path, dirname(path)]) {
      assert.equal(((await Deno.stat(one)).mode ?? 0o777) & 0o077, 0);
    }
  }
  await Deno.writeTextFile(join(dirname(path), "other.html"), "");
  await removeOpeners(home);
  assert.deepEqual([...Deno.readDirSync(dirname(path))].map(({ name }) => name), ["other.html"]);
  await Deno.remove(home, { recursive: true });
});

Deno.test("a program that can open the socket of the page, but no file of the home, gets no link", async () => {
  const home = await Deno.makeTempDir();
  const server = await serveLinks(home, () => Promise.resolve({ url: "http://127.0.0.1:4000/#a" }));
  for (const key of [undefined, "", "a".repeat(43)]) {
    const socket = await connectToSocket(join(home, "page", "socket"));
    assert.ok(socket);
    const exchange = new LineExchange(socket);
    exchange.send({ link: true, key });
    assert.deepEqual(await exchange.next(), {});
    socket.destroy();
  }
  server?.close();
  await Deno.remove(home, { recursive: true });
});

Deno.test("a program without the key can neither fill the memory of the page nor keep a connection", async () => {
  const home = await Deno.makeTempDir();
  const taken: Duplex[] = [];
  const server = await serveLinks(home, () => Promise.resolve({ url: "http://127.0.0.1:4000/#a" }));
  server?.on("connection", (socket) => taken.push(socket));
  const path = join(home, "page", "socket");
  // It sends lines for as long as it can.
  const flood = connect(path).on("error", () => {});
  const line = `"${"x".repeat(65_000)}"\n`;
  const write = () => {
    while (!flood.destroyed && flood.write(line));
  };
  flood.on("drain", write);
  write();
  // The other one never closes its end.
  const silent = connect({ path, allowHalfOpen: true }).on("error", () => {});
  silent.write("{}\n");
  silent.resume();
  await until(() => taken.length === 2 && taken.every(({ destroyed }) => destroyed));
  for (const socket of [flood, silent]) socket.destroy();
  server?.close();
  await Deno.remove(home, { recursive: true });
});

Deno.test("links come from one page of a home, until it ends", async () => {
  const home = await Deno.makeTempDir();
  assert.equal(await requestLink(home, false), undefined);
  const requests: boolean[] = [];
  const make = (hasFile: boolean) => {
    requests.push(hasFile);
    return Promise.resolve({ url: "http://127.0.0.1:4000/#a" });
  };
  const server = await serveLinks(home, make);
  assert.equal(await serveLinks(home, make), undefined);
  assert.equal((await requestLink(home, true))?.url, "http://127.0.0.1:4000/#a");
  assert.deepEqual(requests, [true]);
  server?.close();
  assert.equal(await requestLink(home, false), undefined);
  await Deno.remove(home, { recursive: true });
});
