import assert from "node:assert/strict";
import { type CloudRequest, FakeCloud } from "../../../tests/kit/fake_cloud.ts";
import { freePort } from "../../../tests/kit/free_port.ts";
import { TcpSink } from "../../../tests/kit/sinks.ts";
import type { PmlError } from "../../core/errors.ts";
import { ACCOUNT, makeStage, manifest } from "./_cloud_stage_test.ts";
import { CLOUD_URL } from "./kind.ts";

const EXA = "exa-key-CANARY";
const OWN = "own-key-CANARY";

Deno.test("a call through the hub is sent as server__tool, with the account's key and no other", async () => {
  await using hub = new FakeCloud();
  await using stage = await makeStage({ url: hub.url, variables: { EXA_API_KEY: EXA } });
  const { content } = await stage.call("tavily:search", { query: "x" });
  assert.equal(content[0]?.text, "tavily__search ran");
  assert.deepEqual(content[0]?.keys, []);
  const [call, ...more] = hub.calls;
  assert.deepEqual(more, []);
  assert.equal(call?.path, "/mcp");
  assert.equal(call?.headers.authorization, `Bearer ${ACCOUNT}`);
  assert.deepEqual(JSON.parse(call?.body ?? "").params.arguments, { query: "x" });
  assert.doesNotMatch(hub.text, new RegExp(EXA));
  // No list is requested, and a second call needs no new handshake.
  await stage.call("tavily:search");
  assert.deepEqual(hub.received.map(({ method }) => method), [
    "server/discover",
    "tools/call",
    "tools/call",
  ]);
});

Deno.test("keys reach only their own origin, for any order of calls (SX1, SX3)", async () => {
  await using hub = new FakeCloud();
  await using other = new FakeCloud();
  const flaky = (cloud: FakeCloud) => {
    let count = 0;
    cloud.script = ({ method }) => {
      count++;
      // Some calls are refused, and some find the connection closed.
      if (method === "tools/call" && count % 17 === 0) return new Response(null, { status: 503 });
      if (count % 7 === 0) {
        return new Response(null, { status: 429, headers: { connection: "close" } });
      }
      return undefined;
    };
  };
  flaky(hub);
  flaky(other);
  const manifests = {
    exa: manifest("exa", `${hub.url}/mcp/proxy/exa`, ["EXA_API_KEY"]),
    own: manifest("own", `${other.url}/mcp`, ["OWN_API_KEY"]),
    thief: manifest("thief", `${other.url}/thief`, ["PML_API_KEY"]),
  };
  const variables = { EXA_API_KEY: EXA, OWN_API_KEY: OWN, ANTHROPIC_API_KEY: "anthropic-CANARY" };
  await using stage = await makeStage({ url: hub.url, variables, manifests, named: [other] });
  const names = ["exa", "own", "tavily"];
  const all = Array.from(
    { length: 500 },
    (_, at) =>
      stage.call(`${names[at % 3]}:run`, { at }).then(() => 1, (error: PmlError) => {
        assert.ok(["UPSTREAM_DOWN", "UPSTREAM_PROTOCOL"].includes(error.code), error.message);
        assert.doesNotMatch(Deno.inspect(error), /CANARY/);
        return 0;
      }),
  );
  const ran = (await Promise.all(all)).reduce<number>((sum, one) => sum + one, 0);
  assert.ok(ran > 300, `${ran} of 500 ran`);
  assert.ok(hub.calls.length > 100 && other.calls.length > 50);

  const withKey = ({ headers }: CloudRequest, name: string, value: string) =>
    headers[`x-pml-key-${name}`] === value;
  for (const call of hub.calls) {
    assert.equal(call.headers.authorization, `Bearer ${ACCOUNT}`);
    assert.equal(withKey(call, "exa_api_key", EXA), call.path === "/mcp/proxy/exa");
  }
  for (const call of other.calls) assert.ok(withKey(call, "own_api_key", OWN));
  assert.doesNotMatch(hub.text, /own-key|anthropic/);
  assert.doesNotMatch(other.text, /exa-key|account-key|anthropic/);
  // Other keys are sent with a call, and with nothing before it.
  const before = [...hub.received, ...other.received].filter(({ method }) =>
    method !== "tools/call"
  );
  assert.ok(before.length > 0);
  assert.doesNotMatch(JSON.stringify(before), /exa-key|own-key/);

  await assert.rejects(stage.call("thief:run"), {
    code: "KEY_MISSING",
    message: 'Cannot call "thief": it requires PML_API_KEY',
  });
  assert.ok(!other.received.some(({ path }) => path === "/thief"));
});

Deno.test("no key follows a redirect, and its error contains no key (SX2)", async () => {
  await using sink = new TcpSink();
  await using hub = new FakeCloud();
  const manifests = { exa: manifest("exa", `${hub.url}/mcp/proxy/exa`, ["EXA_API_KEY"]) };
  await using stage = await makeStage({ url: hub.url, variables: { EXA_API_KEY: EXA }, manifests });
  const targets = [
    `http://127.0.0.1:${sink.port}/`,
    `https://127.0.0.1:${sink.port}/`,
    "/mcp",
    "//x",
  ];
  for (const location of targets) {
    for (const status of [301, 302, 303, 307, 308]) {
      hub.script = ({ method }) =>
        method === "tools/call" ? new Response(null, { status, headers: { location } }) : undefined;
      const before = hub.calls.length;
      await assert.rejects(stage.call("exa:run"), (error: PmlError) => {
        assert.equal(error.code, "UPSTREAM_PROTOCOL");
        assert.match(error.message, /redirects/);
        assert.doesNotMatch(Deno.inspect(error), /CANARY/);
        return true;
      });
      assert.equal(hub.calls.length, before + 1);
    }
  }
  sink.assertSilent();
});

Deno.test("a request to a hub names the approved version of a server behind it (GX8)", async () => {
  await using hub = new FakeCloud();
  const upstream = { host: "mcp.exa.ai", headers: ["Authorization"], hash: "sha256-x" };
  const plain = manifest("exa", `${hub.url}/mcp/proxy/exa`, ["EXA_API_KEY"]);
  await using stage = await makeStage({
    ...{ url: hub.url, variables: { EXA_API_KEY: EXA } },
    manifests: { exa: { ...plain, upstream } },
  });
  await stage.call("exa:run");
  assert.deepEqual([...new Set(hub.calls.map(({ path }) => path))], [
    `/mcp/proxy/exa@${plain.version}`,
  ]);
  assert.match(stage.facts("exa"), /"mcp\.exa\.ai".* headers Authorization/);
});

Deno.test("a hub that has no single server for an unversioned address is reported with the command to approve again (GX8)", async () => {
  await using hub = new FakeCloud(() => new Response("no", { status: 409 }));
  const manifests = { exa: manifest("exa", `${hub.url}/mcp/proxy/exa`, []) };
  await using stage = await makeStage({ url: hub.url, manifests });
  await assert.rejects(stage.call("exa:run"), (error: PmlError) => {
    assert.equal(error.code, "UPSTREAM_PROTOCOL");
    assert.match(error.hint ?? "", /: pml lock update exa$/);
    return true;
  });
});

Deno.test("a key that the cloud refuses is reported with its source", async () => {
  await using hub = new FakeCloud(({ headers }) =>
    Response.json({ error: `no ${headers.authorization}` }, { status: 401 })
  );
  const manifests = {
    exa: manifest("exa", `${hub.url}/mcp/proxy/exa`, ["EXA_API_KEY"]),
  };
  await using stage = await makeStage({ url: hub.url, variables: { EXA_API_KEY: EXA }, manifests });
  for (const [name, status] of [["tavily", 401], ["exa", 403]] as const) {
    hub.script = () => new Response("no", { status });
    await assert.rejects(stage.call(`${name}:run`), (error: PmlError) => {
      assert.equal(error.code, "CLOUD_KEY_REJECTED");
      assert.equal(error.message, `Cannot call "${name}:run": the cloud rejects PML_API_KEY`);
      assert.match(error.hint ?? "", /environment: /);
      assert.equal(error.detail?.status, status);
      assert.equal(error.detail?.may_have_run, false);
      return true;
    });
  }
  // An address outside the hub's origin has other keys, and names them.
  await using other = new FakeCloud(() => new Response("no", { status: 401 }));
  const away = { own: manifest("own", `${other.url}/mcp`, ["OWN_API_KEY"]) };
  const variables = { OWN_API_KEY: OWN };
  await using far = await makeStage({ url: hub.url, variables, manifests: away, named: [other] });
  await assert.rejects(far.call("own:run"), (error: PmlError) => {
    assert.equal(error.code, "LOGIN_REQUIRED");
    assert.match(error.hint ?? "", /OWN_API_KEY/);
    return true;
  });
});

Deno.test("all missing keys of a call are reported at once, and nothing is sent", async () => {
  await using hub = new FakeCloud();
  const manifests = {
    exa: manifest("exa", `${hub.url}/mcp/proxy/exa`, ["EXA_API_KEY", "SECOND", "THIRD"]),
  };
  const variables = { SECOND: "x", EXA_API_KEY: "${EXA_API_KEY}" };
  await using stage = await makeStage({ url: hub.url, variables, manifests });
  for (const say of [() => stage.call("exa:run"), () => stage.define("exa")]) {
    await assert.rejects(async () => await say(), {
      code: "KEY_MISSING",
      message: 'Cannot call "exa": it requires EXA_API_KEY, THIRD',
      detail: { missing: ["EXA_API_KEY", "THIRD"] },
    });
  }
  await using none = await makeStage({ url: hub.url, apiKey: null });
  for (const say of [() => none.call("tavily:run"), () => none.define("tavily")]) {
    await assert.rejects(async () => await say(), {
      code: "CLOUD_KEY_REQUIRED",
      message: "Cloud mode requires PML_API_KEY",
    });
  }
  await using bad = await makeStage({ url: hub.url, apiKey: "CANARY\nx: y" });
  await assert.rejects(bad.call("tavily:run"), (error: PmlError) => {
    assert.equal(error.code, "CONFIG_INVALID");
    assert.doesNotMatch(Deno.inspect(error), /CANARY/);
    return true;
  });
  const odd = { EXA_API_KEY: "CANARY\nx: y", SECOND: "x", THIRD: "x" };
  await using malformed = await makeStage({ url: hub.url, variables: odd, manifests });
  await assert.rejects(malformed.call("exa:run"), (error: PmlError) => {
    assert.match(error.message, /EXA_API_KEY contains a line end/);
    assert.doesNotMatch(Deno.inspect(error), /CANARY/);
    return true;
  });
  assert.deepEqual(hub.received, []);
});

Deno.test("an unreachable cloud is reported at once for each of its tools", async () => {
  const port = freePort();
  await using stage = await makeStage({ url: `http://127.0.0.1:${port}` });
  const down = async (name: string) => {
    const since = performance.now();
    await assert.rejects(stage.call(`${name}:run`), (error: PmlError) => {
      assert.equal(error.code, "UPSTREAM_DOWN");
      assert.match(
        error.message,
        new RegExp(`^Cannot call "${name}:run": `),
      );
      assert.equal(error.detail?.may_have_run, false);
      assert.match(error.hint ?? "", /this machine/);
      return true;
    });
    return performance.now() - since;
  };
  await down("tavily");
  const sent = () => stage.asked.filter((url) => url.endsWith("/mcp")).length;
  assert.equal(sent(), 1);
  for (const name of ["tavily", "exa", "github", "tavily"]) assert.ok(await down(name) < 5_000);
  assert.equal(sent(), 1, "what is out of reach is sent nothing of a call");
  // The cloud is reachable again.
  await using _hub = new FakeCloud(undefined, { port });
  const until = performance.now() + 20_000;
  for (;;) {
    const ran = await stage.call("tavily:run").catch(() => undefined);
    if (ran !== undefined) break;
    assert.ok(performance.now() < until, "the cloud is found again");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
});

Deno.test("a broken call is not repeated, and a cloud with invalid answers disturbs no other", async () => {
  await using hub = new FakeCloud();
  await using stage = await makeStage({ url: hub.url });
  const answers: readonly (readonly [Response, PmlError["code"]])[] = [
    [
      new Response("nonsense", { headers: { "content-type": "application/json" } }),
      "UPSTREAM_PROTOCOL",
    ],
    [new Response("<html>", { headers: { "content-type": "text/html" } }), "UPSTREAM_PROTOCOL"],
    [new Response(null, { status: 500 }), "UPSTREAM_DOWN"],
    [new Response(dropped(), { headers: { "content-type": "application/json" } }), "UPSTREAM_DOWN"],
  ];
  for (const [answer, code] of answers) {
    hub.script = ({ method }) => method === "tools/call" ? answer : undefined;
    const before = hub.calls.length;
    await assert.rejects(stage.call("tavily:run"), (error: PmlError) => {
      assert.equal(error.code, code);
      assert.equal(error.detail?.may_have_run, true);
      return true;
    });
    assert.equal(hub.calls.length, before + 1);
  }
  hub.script = () => undefined;
  assert.equal((await stage.call("tavily:run")).content[0]?.text, "tavily__run ran");
  await assert.rejects(
    stage.call("tavily:@resources", {}, { method: "resources/read" }),
    { code: "BAD_REQUEST", message: /tools only/ },
  );
});

Deno.test("facts() names the destination of a call and the keys that are sent", async () => {
  const manifests = { own: manifest("own", "https://own.example.com/mcp", ["OWN_API_KEY"]) };
  await using stage = await makeStage({ manifests });
  assert.match(
    stage.facts("tavily"),
    new RegExp(`"${new URL(CLOUD_URL).host}".*keys PML_API_KEY$`),
  );
  assert.match(stage.facts("own"), /"own\.example\.com".*keys OWN_API_KEY$/);
  assert.doesNotMatch(stage.facts("own"), /PML_API_KEY/);
});

/** A body that breaks off. */
function dropped(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (body) => body.enqueue(new TextEncoder().encode('{"jsonrpc"')),
    pull: (body) => body.error(new Error("gone")),
  });
}
