import assert from "node:assert/strict";
import { once } from "node:events";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import type { JsonObject } from "../core/json.ts";
import { connectToSocket, listenPrivately } from "../transport/attach/private_socket.ts";
import { until } from "../../tests/kit/wait.ts";
import { ControlConnection, type ControlHost } from "./control_connection.ts";

/** Returns the two ends of a socket. */
async function ends() {
  const folder = await Deno.makeTempDir();
  await Deno.chmod(folder, 0o700);
  const { promise: taken, resolve } = Promise.withResolvers<Duplex>();
  const server = await listenPrivately(join(folder, "socket"), resolve);
  const other = await connectToSocket(join(folder, "socket"));
  const own = await taken;
  assert.ok(server !== undefined && other !== undefined);
  other.on("error", () => {});
  return {
    ...{ own, other },
    [Symbol.asyncDispose]: async () => {
      for (const each of [own, other]) each.destroy();
      server.close();
      await once(server, "close");
      await Deno.remove(folder, { recursive: true });
    },
  };
}

/** Returns a host that notes the end, and serves by a function. */
function hostWith(serve: ControlHost["serve"] = () => Promise.resolve({})) {
  return {
    isEnded: false,
    serve,
    onNotification: () => {},
    onEnd() {
      this.isEnded = true;
    },
  };
}

function line(message: JsonObject): string {
  return `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`;
}

Deno.test("requests pass in both directions, and errors keep their texts", async () => {
  await using at = await ends();
  using one = new ControlConnection(at.own, hostWith((method) => Promise.resolve({ method })));
  using other = new ControlConnection(at.other, hostWith(() => Promise.reject(new Error("no"))));
  assert.deepEqual(await other.request("state", {}), { method: "state" });
  await assert.rejects(one.request("state", {}), /no/);
});

Deno.test("a line that is not a message ends a connection", async () => {
  for (const text of ["hello\n", "[]\n", `${JSON.stringify({ jsonrpc: "2.0" })}\n`]) {
    await using at = await ends();
    const host = hostWith();
    using _ = new ControlConnection(at.own, host);
    at.other.write(text);
    await until(() => host.isEnded);
  }
});

Deno.test("a line that never ends takes no memory, and ends a connection", async () => {
  await using at = await ends();
  const host = hostWith();
  using _ = new ControlConnection(at.own, host);
  const piece = new Uint8Array(1 << 20).fill(97);
  at.other.on("error", () => {});
  for (let count = 0; count < 20 && !at.other.destroyed; count++) {
    await new Promise((resolve) => at.other.write(piece, resolve));
  }
  await until(() => host.isEnded);
});

Deno.test("more than 64 open requests end a connection", async () => {
  await using at = await ends();
  const host = hostWith(() => new Promise(() => {}));
  using _ = new ControlConnection(at.own, host);
  for (let id = 1; id <= 64; id++) at.other.write(line({ id, method: "state" }));
  at.other.write(line({ method: "notifications/x" }));
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(host.isEnded, false);
  at.other.write(line({ id: 65, method: "state" }));
  await until(() => host.isEnded);
});

Deno.test("a slow reader gets no notifications, and one that never reads is disconnected", async () => {
  await using at = await ends();
  at.other.pause();
  const host = hostWith();
  using connection = new ControlConnection(at.own, host);
  const params = { text: "x".repeat(1 << 16) };
  let sent = 0;
  while (connection.notify("call", params)) sent++;
  assert.ok(sent > 0 && sent < 100, `${sent} notifications`);
  // Answers are not dropped.
  for (let id = 0; id < 40 && !host.isEnded; id++) {
    connection.send({ id, result: { text: "x".repeat(1 << 20) } });
  }
  assert.equal(host.isEnded, true);
});
