import assert from "node:assert/strict";
import { Redactor } from "../audit/redact.ts";
import { Keys } from "../config/keys.ts";
import type { RemoteDefinition } from "./kind.ts";
import type { Policy } from "../policy/policy.ts";
import { DefinitionValues } from "./definition_values.ts";

Deno.test("DefinitionValues names the hosts of a registry's server that are granted now", () => {
  const config = { grants: { far: { net: ["near.example"] } } as object };
  const values = new DefinitionValues({
    // Only the members that the test needs.
    policy: { now: { config } } as unknown as Policy,
    keys: new Keys({
      environment: () => ({ get: () => undefined, apiKey: undefined, home: "/home" }),
      trustedRoot: () => undefined,
      register: () => {},
      warn: assert.fail,
    }),
    redactor: new Redactor(),
  }, () => "https://registry.example/mcp");
  const own: RemoteDefinition = {
    kind: "http",
    name: "far",
    url: "https://near.example/mcp",
    headers: {},
  };
  const before = values.http(own);
  assert.deepEqual([...before.named], ["registry.example", "near.example"]);
  assert.equal(values.http(own), before);
  config.grants = {};
  assert.deepEqual([...values.http(own).named], ["registry.example"]);
});
