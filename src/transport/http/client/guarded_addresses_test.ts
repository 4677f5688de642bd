import assert from "node:assert/strict";
import fc from "fast-check";
import { CERTIFICATE } from "../../../../tests/kit/certificate.ts";
import { PRIVATE_HOSTS } from "../../../../tests/kit/private_hosts.ts";
import { TcpSink } from "../../../../tests/kit/sinks.ts";
import { PmlError } from "../../../core/errors.ts";
import { serving } from "../../../servers/http/_serving_test.ts";
import { GuardedFetch } from "./guarded_fetch.ts";

const { signal } = new AbortController();
const HERE = new Set(["127.0.0.1", "localhost", "[::1]"]);
const none: ReadonlySet<string> = new Set();

Deno.test("GuardedFetch refuses private addresses in every notation without connecting", async () => {
  await using sink = new TcpSink();
  using way = new GuardedFetch();
  for (const host of PRIVATE_HOSTS) {
    const refused = { code: "PERMISSION_DENIED", message: /its address is not public$/ };
    await assert.rejects(
      way.fetch(`https://${host}:${sink.port}/CANARY`, { signal, named: none }),
      refused,
      host,
    );
    await assert.rejects(
      way.fetch(`http://${host}:${sink.port}/CANARY`, { signal, named: none }),
      { code: "PERMISSION_DENIED", message: /it is not https/ },
      host,
    );
  }
  const others: readonly (readonly [string, RegExp])[] = [
    [`https://user:CANARY@example.com/`, /user name or a password$/],
    [`https://CANARY@127.0.0.1:${sink.port}/`, /user name or a password$/],
    [`file:///etc/passwd`, /it is not https$/],
    [`data:text/plain,CANARY`, /it is not https$/],
    [`//127.0.0.1/CANARY`, /it is no URL$/],
    [`https://CANARY CANARY/`, /it is no URL$/],
    [`http://example.com/CANARY`, /it is not https/],
  ];
  for (const [url, message] of others) {
    await assert.rejects(way.fetch(url, { signal, named: HERE }), (error) => {
      assert.ok(error instanceof PmlError);
      assert.equal(error.code, "PERMISSION_DENIED");
      assert.match(error.message, message);
      assert.doesNotMatch(JSON.stringify(error) + error.message + error.hint, /CANARY/);
      return true;
    });
  }
  sink.assertSilent();
});

Deno.test("GuardedFetch refuses a name if any of its addresses is not public", async () => {
  await using sink = new TcpSink();
  const octet = fc.integer({ min: 0, max: 255 });
  const open = { address: "8.8.8.8", family: 4 };
  const closed = fc.oneof(
    fc.tuple(fc.constantFrom(0, 10, 127, 224, 240), octet, octet, octet).map((ip) => ip.join(".")),
    octet.map((last) => `192.168.${last}.1`),
    fc.constantFrom("::1", "::ffff:7f00:1", "fe80::1%lo", "64:ff9b::7f00:1", "fd00::1"),
  );
  await fc.assert(
    fc.asyncProperty(closed, fc.boolean(), async (address, isLast) => {
      const bad = { address, family: address.includes(":") ? 6 : 4 };
      using way = new GuardedFetch(undefined, {
        lookup: () => Promise.resolve(isLast ? [open, bad] : [bad, open]),
      });
      await assert.rejects(
        way.fetch(`https://rebound.invalid:${sink.port}/`, { signal, named: none }),
        {
          code: "PERMISSION_DENIED",
          message: /"rebound\.invalid": .*not public/,
        },
      );
    }),
    { seed: 5, numRuns: 60 },
  );
  sink.assertSilent();
});

Deno.test("GuardedFetch resolves a name once per connection, and verifies the host with TLS", async () => {
  const looked: string[] = [];
  await using server = await serving((request, response) => response.end(request.headers.host), {
    isSecure: true,
  });
  using way = new GuardedFetch(undefined, {
    ca: CERTIFICATE,
    lookup: (host) => {
      looked.push(host);
      return Promise.resolve([{ address: "127.0.0.1", family: 4 }]);
    },
  });
  const url = `https://good.invalid.:${server.port}/`;
  const named = new Set(["good.invalid", "bad.invalid"]);
  for (let round = 0; round < 3; round++) {
    const answer = await way.fetch(url, { signal, named });
    assert.equal(await answer.text(), `good.invalid:${server.port}`);
  }
  assert.deepEqual(looked, ["good.invalid"], "one connection served them all");
  // The open connection belongs to a request that may use this address.
  await assert.rejects(way.fetch(url, { signal, named: none }), { code: "PERMISSION_DENIED" });
  await assert.rejects(way.fetch(`https://bad.invalid:${server.port}/`, { signal, named }), {
    code: "UPSTREAM_DOWN",
    message: /"bad\.invalid": .*\(ERR_TLS_CERT_ALTNAME_INVALID\)/,
  });
  using strict = new GuardedFetch();
  await assert.rejects(
    strict.fetch(`https://localhost:${server.port}/`, { signal, named: HERE }),
    { message: /certificate is not valid/, detail: { may_have_run: false } },
  );
});

Deno.test("GuardedFetch uses plain HTTP only for configured addresses of this machine", async () => {
  await using server = await serving((_, response) => response.end("here"));
  using way = new GuardedFetch();
  for (const named of [HERE, new Set([`127.0.0.1:${server.port}`])]) {
    const answer = await way.fetch(`http://127.0.0.1:${server.port}/`, { signal, named });
    assert.equal(await answer.text(), "here");
  }
  const elsewhere = new Set(["127.0.0.1:1", "internal.invalid", "10.0.0.1", "localhost"]);
  for (const host of ["127.0.0.1", "internal.invalid", "10.0.0.1"]) {
    await assert.rejects(
      way.fetch(`http://${host}:${server.port}/`, { signal, named: elsewhere }),
      { code: "PERMISSION_DENIED", message: /it is not https/ },
    );
  }
  using rebound = new GuardedFetch(undefined, {
    lookup: () => Promise.resolve([{ address: "8.8.8.8", family: 4 }]),
  });
  await assert.rejects(rebound.fetch(`http://localhost:${server.port}/`, { signal, named: HERE }), {
    message: /"localhost": .*this machine/,
  });
});

Deno.test("GuardedFetch ignores environment variables for proxies and invalid certificates", async () => {
  await using proxy = new TcpSink();
  await using plain = await serving((_, response) => response.end("direct"));
  await using secure = await serving((_, response) => response.end("unseen"), { isSecure: true });
  const code = `
    import { GuardedFetch } from ${JSON.stringify(import.meta.resolve("./guarded_fetch.ts"))};
    using way = new GuardedFetch();
    const named = new Set(["127.0.0.1"]);
    const signal = AbortSignal.timeout(5_000);
    const ask = (url) => way.fetch(url, { signal, named }).then((answer) => answer.text());
    console.log(await ask("http://127.0.0.1:${plain.port}/"));
    console.log(await ask("https://127.0.0.1:${secure.port}/").catch(({ message }) => message));`;
  const away = `http://127.0.0.1:${proxy.port}`;
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--quiet", code],
    env: {
      HTTP_PROXY: away,
      HTTPS_PROXY: away,
      ALL_PROXY: away,
      NO_PROXY: "",
      NODE_USE_ENV_PROXY: "1",
      NODE_TLS_REJECT_UNAUTHORIZED: "0",
    },
  }).output();
  const [text, refused] = new TextDecoder().decode(stdout).split("\n");
  assert.equal(text, "direct", new TextDecoder().decode(stderr));
  assert.match(refused ?? "", /certificate/);
  proxy.assertSilent();
});
