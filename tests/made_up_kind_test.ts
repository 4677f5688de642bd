/**
 * A made-up server kind. It needed these files: `tests/kit/made_up_kind/kind.ts`,
 * `tests/kit/made_up_kind/runtime.ts`, and one line in each of the two tables,
 * `src/servers/kinds.ts` and `src/servers/runtimes.ts`. The lines below replace those.
 *
 * @module
 */

import assert from "node:assert/strict";
import { parseFqdn } from "../src/registry/fqdn.ts";
import type { ServerKind } from "../src/servers/kind.ts";
import { KINDS } from "../src/servers/kinds.ts";
import { RUNTIMES } from "../src/servers/runtimes.ts";
import { SPOKEN } from "./kit/made_up_kind/kind.ts";
import { load } from "./kit/made_up_kind/runtime.ts";

const OWN = KINDS.map(({ name }) => name);
(KINDS as ServerKind[]).push(SPOKEN);
Object.assign(RUNTIMES, { spoken: load });

// Some tables are built from the kinds when their module is loaded.
const { CallPathStage } = await import("../src/app/_call_path_stage_test.ts");
const { Company } = await import("../src/config/company.ts");
const { wantedKeys } = await import("../src/config/wanted_keys.ts");
const { lockText, parseLock, pinnedOf } = await import("../src/policy/lock.ts");
const { manifestHash, parseManifest, requiredVariables } = await import(
  "../src/registry/manifest.ts"
);
const { publishedKind } = await import("../src/servers/kinds.ts");

const PARROT = { type: "spoken", phrase: "${PARROT_KEY:-Polly} speaks", channels: ["four"] };

Deno.test("each kind has a runtime", () => {
  assert.deepEqual(Object.keys(RUNTIMES), [...OWN, "spoken"]);
});

Deno.test("a server of a made-up kind is asked about, pinned, called and cancelled", async () => {
  const pml = { mcpServers: { parrot: PARROT } };
  await using stage = await CallPathStage.open({ pml });
  assert.deepEqual(wantedKeys(stage.policy.now.config), [
    { name: "PARROT_KEY", by: ["parrot"], isRequired: false },
  ]);
  const asked = await stage.call("parrot", "say");
  assert.ok(asked.kind === "ask");
  const { handle, text } = asked.question;
  assert.match(text, /on four, .* phrase="\$\{PARROT/);
  assert.match(text, /speak on four/);
  const said = await stage.call("parrot", "say", { answer: { handle, reply: "Yes" } });
  assert.ok(said.kind === "result");
  assert.deepEqual(said.result.content, [{ type: "text", text: "Polly speaks" }]);
  await stage.pins.flush();
  const { kind, command, tools } = stage.pins.pinOf("parrot") ?? {};
  assert.deepEqual([kind, command], ["spoken", ["speak", PARROT.phrase]]);
  assert.deepEqual(Object.keys(tools ?? {}), ["say"]);

  await stage.change({ ...pml, permissions: { allow: ["parrot:*"] } });
  const { Cancellation } = await import("../src/core/cancellation.ts");
  const cancellation = new Cancellation();
  const waiting = stage.call("parrot", "wait", { cancellation });
  cancellation.cancel(new DOMException("the client cancelled", "AbortError"));
  await assert.rejects(waiting, /cancel/i);
});

Deno.test("a registry may offer a made-up kind, and a company may forbid it", () => {
  const asked = parseFqdn("parrot");
  const json = { fqdn: "parrot", version: "1.0.0", type: "spoken", phrase: ["${PARROT_KEY}"] };
  const manifest = parseManifest(json, { url: "https://registry.example", asked });
  assert.deepEqual(requiredVariables(manifest), ["PARROT_KEY"]);
  const source = "https://registry.example";
  const pinned = pinnedOf(manifest, { source, hash: manifestHash(manifest) });
  assert.deepEqual([pinned.kind, pinned.command], ["spoken", ["speak", "${PARROT_KEY}"]]);
  const text = lockText({ parrot: { ...pinned, tools: {} } });
  assert.equal(parseLock(text, "pml.lock").parrot?.kind, "spoken");
  assert.equal(publishedKind("spoken")?.title, "speaker");
  for (const forbid of [["spoken"], ["unconfined"]]) {
    const file = { path: "/policy", policy: { forbid }, rules: { deny: [], ask: [], allow: [] } };
    const company = new Company([file as unknown as ConstructorParameters<typeof Company>[0][0]]);
    assert.ok(company.forbids({ name: "parrot", kind: "spoken" }), `${forbid}`);
  }
});
