import assert from "node:assert/strict";
import { userConfigSchema } from "./settings.ts";
import { DEFAULT_GATEWAY, gatewayFrom } from "./gateway_options.ts";
import { presets } from "./presets.ts";

Deno.test("presets() returns the five with their aliases, each a valid configuration", async () => {
  const all = await presets();
  assert.deepEqual(all.map(({ name, alias }) => [name, alias]), [
    ["meta_only", "advanced"],
    ["semantic", undefined],
    ["hybrid_balanced", "balanced"],
    ["hybrid_permissive", "permissive"],
    ["full_proxy", "migration"],
  ]);
  for (const { name, does, section } of all) {
    const wrong = (issue: unknown) => assert.fail(`${name}: ${JSON.stringify(issue)}`);
    assert.ok(userConfigSchema({ gateway: section }, { path: [], wrong }));
    assert.match(does, /\.$/);
  }
  const [, , balanced, permissive] = all.map(({ overrides }) => gatewayFrom(overrides).hybrid);
  const usual = DEFAULT_GATEWAY.hybrid;
  assert.deepEqual(balanced, {
    ...usual,
    ...{ maxUnderlyingTools: 20, semanticThreshold: 0.7, maxTokens: 5_000 },
  });
  assert.deepEqual(permissive, {
    ...usual,
    ...{ maxUnderlyingTools: 50, semanticThreshold: 0.5, maxTokens: 10_000 },
  });
});
