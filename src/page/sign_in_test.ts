/**
 * Tests of the links and sessions of the page.
 *
 * @module
 */

import assert from "node:assert/strict";
import { LINK_MS, SignIns } from "./sign_in.ts";

function signedIn(signIns: SignIns, cookies: readonly string[] = []) {
  const result = signIns.signIn(signIns.link(), cookies);
  if (result.kind !== "signed-in") throw new Error(result.kind);
  return result;
}

Deno.test("a link of the page signs in once, and its second use ends that session", () => {
  const signIns = new SignIns();
  const secret = signIns.link();
  const first = signIns.signIn(secret);
  assert.equal(first.kind, "signed-in");
  const { cookie, token } = first as Extract<typeof first, { kind: "signed-in" }>;
  const session = signIns.sessionOf([cookie], token);
  assert.equal(session?.ending.aborted, false);
  assert.equal(signIns.signIn(secret).kind, "used");
  assert.equal(session?.ending.aborted, true);
  assert.equal(signIns.sessionOf([cookie], token), undefined);
  assert.equal(signIns.signIn(secret).kind, "used");
});

Deno.test("a link of the page works for a minute", () => {
  let now = 1_000_000;
  const signIns = new SignIns({ now: () => now });
  const [one, other] = [signIns.link(), signIns.link()];
  now += LINK_MS - 1;
  assert.equal(signIns.signIn(one).kind, "signed-in");
  now += 1;
  assert.equal(signIns.signIn(other).kind, "expired");
  assert.equal(signIns.signIn("").kind, "expired");
  assert.equal(signIns.signIn("guess").kind, "expired");
});

Deno.test("a session of the page needs its cookie and a token of the same session", () => {
  const signIns = new SignIns();
  const one = signedIn(signIns);
  const other = signedIn(signIns);
  assert.ok(signIns.sessionOf([one.cookie], one.token));
  assert.equal(signIns.sessionOf([], one.token), undefined);
  assert.equal(signIns.sessionOf([one.cookie], ""), undefined);
  assert.equal(signIns.sessionOf([one.cookie], other.token), undefined);
  assert.equal(signIns.sessionOf([one.token], one.cookie), undefined);
});

Deno.test("a second tab shares the session of its browser, and both tokens stay valid", () => {
  const signIns = new SignIns();
  const one = signedIn(signIns);
  const other = signedIn(signIns, ["planted", one.cookie]);
  assert.equal(other.cookie, one.cookie);
  assert.ok(signIns.sessionOf([one.cookie], one.token));
  assert.ok(signIns.sessionOf([one.cookie], other.token));
});

Deno.test("a cookie that the page did not make opens no session", () => {
  const signIns = new SignIns();
  const { cookie, token } = signedIn(signIns, ["planted"]);
  assert.notEqual(cookie, "planted");
  assert.equal(signIns.sessionOf(["planted"], token), undefined);
});

Deno.test("a session of the page ends after twelve hours", () => {
  let now = 0;
  const signIns = new SignIns({ now: () => now });
  const { cookie, token } = signedIn(signIns);
  const session = signIns.sessionOf([cookie], token);
  now = 12 * 3_600_000;
  assert.equal(signIns.sessionOf([cookie], token), undefined);
  assert.equal(session?.ending.aborted, true);
});
