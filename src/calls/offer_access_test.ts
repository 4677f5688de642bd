import assert from "node:assert/strict";
import type { Call } from "../protocol/call.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { toolId } from "../core/tool_id.ts";
import { isAboutAll, isOfferRequest, offerVerdict } from "./offer_access.ts";
import { assertGolden } from "../../tests/kit/golden.ts";

type Request =
  & Pick<Call, "id" | "method" | "isOffered">
  & Partial<Pick<Call, "members" | "arguments">>;

const READ: Request = { id: toolId("s", "@resources"), method: "resources/read", isOffered: true };
const UNLISTED: Request = { ...READ, isOffered: false };
const FOLLOWS: Verdict = { kind: "allow", rule: "approved with its server", source: "defaults" };
const by = (kind: Verdict["kind"], rule: string): Verdict => ({
  kind,
  rule,
  source: "config.yaml",
});

function decided(request: Request, ruled: Verdict, ...tools: readonly Verdict[]): string {
  const { kind, rule } = offerVerdict(request, { ruleVerdict: ruled, pageVerdicts: tools });
  return `${kind} ${rule}`;
}

Deno.test("offerVerdict() asks for an address that was not offered, even if others are allowed (GX16)", () => {
  assert.equal(decided(READ, FOLLOWS), `allow ${FOLLOWS.rule}`);
  for (const ruled of [FOLLOWS, by("allow", "s:@resources")]) {
    assertGolden("why/an address that is not listed", decided(UNLISTED, ruled));
    // Nobody checked whether it was offered.
    const { isOffered: _, ...unknown } = UNLISTED;
    assert.match(decided(unknown, ruled), /^ask/);
  }
  assert.equal(decided(UNLISTED, by("ask", "*")), "ask *");
  assert.equal(decided(UNLISTED, by("deny", "s:*")), "deny s:*");
});

Deno.test("offerVerdict() decides about the page of a tool as about the tool (GX16)", () => {
  const ASKS = by("ask", "*");
  assert.equal(decided(READ, ASKS, by("allow", "s:show")), "allow s:show");
  assert.equal(decided(READ, FOLLOWS, by("ask", "s:show")), "ask s:show");
  assert.equal(decided(READ, FOLLOWS, by("deny", "s:show")), "deny s:show");
  assert.equal(
    decided(READ, by("deny", "s:@resources"), by("allow", "s:show")),
    "deny s:@resources",
  );
  assert.equal(decided(READ, by("allow", "s:@resources"), ASKS), "allow s:@resources");
  assert.equal(decided(READ, ASKS, by("deny", "s:a"), by("allow", "s:b")), "allow s:b");
});

Deno.test("isAboutAll() is false for an address that was not offered, and true for prompts (GX16)", () => {
  const prompt: Request = { id: toolId("s", "@prompts"), method: "prompts/get" };
  assert.deepEqual([READ, UNLISTED, prompt].map(isAboutAll), [true, false, true]);
  const others: readonly Request[] = [
    { id: toolId("s", "read") },
    { id: toolId("s", "@sampling"), method: "sampling/createMessage" },
    { id: toolId("s", "read"), method: "tasks/get" },
  ];
  assert.deepEqual(others.map(isOfferRequest), [false, false, false]);
  assert.deepEqual(others.map(isAboutAll), [false, false, false]);
});

Deno.test("offerVerdict() asks for a request with members that no list knows, unless a rule allows it (GX7)", () => {
  const prompt: Request = { id: toolId("s", "@prompts"), method: "prompts/get" };
  const odd = [{ members: { params: { _meta: { force: true } } } }, {
    arguments: { name: "n", priority: 1 },
  }];
  const known = [{}, { arguments: { uri: "s://a", name: "n", arguments: { a: "1" } } }];
  for (const request of [READ, prompt]) {
    for (const more of odd) {
      const call = { ...request, ...more };
      assertGolden("why/members that no rule allows", decided(call, FOLLOWS));
      assert.equal(decided(call, by("allow", "s:*")), "allow s:*");
      assert.equal(decided(call, by("deny", "s:*")), "deny s:*");
    }
    for (const more of known) {
      assert.equal(decided({ ...request, ...more }, FOLLOWS), `allow ${FOLLOWS.rule}`);
    }
  }
});
