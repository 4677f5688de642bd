import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { assertNoLeak, HttpSink, TcpSink } from "./sinks.ts";
import { waitUntil } from "./wait.ts";

Deno.test("HttpSink keeps its requests", async () => {
  await using sink = new HttpSink(() => new Response("seen"));
  sink.assertSilent();
  const options = { method: "POST", headers: { "x-key": "k" }, body: "b" };
  assert.equal(await (await fetch(`${sink.url}/a?b=c`, options)).text(), "seen");
  const [received] = sink.received;
  assert.equal(`${received?.method} ${received?.path} ${received?.body}`, "POST /a?b=c b");
  assert.equal(received?.headers["x-key"], "k");
  assert.throws(() => sink.assertSilent(), /somebody called/);
});

Deno.test("TcpSink keeps the bytes of each connection, and closes those still open", async () => {
  await using sink = new TcpSink();
  sink.assertSilent();
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: sink.port });
  await connection.write(new TextEncoder().encode("hello"));
  assert.ok(await waitUntil(() => sink.received[0] === "hello"));
  assert.throws(() => sink.assertSilent(), /there was a connection/);
});

Deno.test("assertNoLeak() finds a secret in each of its encodings", () => {
  const secret = 'a"key/with+all äöü';
  const leaks = [
    secret,
    Buffer.from(secret).toString("hex"),
    encodeURIComponent(secret),
    JSON.stringify(secret),
    ...["", "1", "12", "123"].map((before) =>
      Buffer.from(`${before}${secret} and more`).toString("base64")
    ),
    Buffer.from(secret).toString("base64url"),
  ];
  for (const leak of leaks) {
    assert.throws(() => assertNoLeak(secret, { log: `x ${leak} y` }), /secret is in log/, leak);
  }
  assertNoLeak(secret, { log: "nothing of it", stdout: "" });
});
