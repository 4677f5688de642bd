import assert from "node:assert/strict";
import { Redactor } from "../audit/redact.ts";
import { PmlError } from "../core/errors.ts";
import type { Policy } from "./policy.ts";
import { proxyOf, proxyVariables } from "./network.ts";

function optionsOf(proxy: string, values: Readonly<Record<string, string>> = {}) {
  const redactor = new Redactor();
  const now = { config: { network: { proxy, no_proxy: ["*.corp", "10.0.0.0/8"] } } };
  // `proxyOf()` reads nothing else of a policy.
  const policy = { now } as unknown as Policy;
  return { policy, redactor, keys: { get: (name: string) => values[name] } };
}

Deno.test("proxyOf() replaces variables with encoded values and registers the password", () => {
  const values = { USER: "me@corp", PASSWORD: "a/b:c@d%41 é$&x" };
  const options = optionsOf("http://${USER}:${PASSWORD}@proxy.corp:3128", values);
  const { url, except } = proxyOf(options)!;
  assert.equal(url.host, "proxy.corp:3128");
  assert.equal(decodeURIComponent(`${url.username}:${url.password}`), "me@corp:a/b:c@d%41 é$&x");
  assert.deepEqual(except, ["*.corp", "10.0.0.0/8"]);
  for (const text of [values.PASSWORD, encodeURIComponent(values.PASSWORD)]) {
    assert.doesNotMatch(options.redactor.redact(`it said ${text}!`), /b:c|b%3Ac/);
  }
  const literal = optionsOf("http://me:written%2Fhere@proxy.corp:3128");
  proxyOf(literal);
  assert.equal(literal.redactor.redact("written/here"), "[redacted]");
  assert.throws(() => proxyOf(optionsOf("http://${USER}@proxy.corp:1")), (error) => {
    assert.ok(error instanceof PmlError);
    assert.equal(error.code, "KEY_MISSING");
    assert.deepEqual(error.detail?.missing, ["USER"]);
    return true;
  });
});

Deno.test("proxyVariables() sets the proxy for installers, except for local addresses", () => {
  const options = optionsOf("http://${USER}:x%2Fy@proxy.corp:3128", { USER: "me@corp" });
  const found = proxyVariables(options);
  const url = "http://me%40corp:x%2Fy@proxy.corp:3128/";
  const no = "*.corp,10.0.0.0/8,localhost,127.0.0.1,::1";
  const names = { HTTP_PROXY: url, HTTPS_PROXY: url, NO_PROXY: no };
  const lower = { http_proxy: url, https_proxy: url, no_proxy: no };
  assert.deepEqual(found, { ...names, ...lower });
  const none = { now: { config: { network: undefined } } } as unknown as Policy;
  assert.deepEqual(proxyVariables({ ...options, policy: none }), {});
});
