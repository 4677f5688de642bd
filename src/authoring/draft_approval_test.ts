import assert from "node:assert/strict";
import type { App } from "../app/app.ts";
import { NO_PERMISSIONS } from "../protocol/tool.ts";
import type { ResolvedCall } from "../servers/server.ts";
import { DraftAnswer, DraftApproval } from "./draft_approval.ts";

const DEFINITION = { name: "wx", kind: "deno", path: "/ws/wx.ts" };
const CALL = { id: "wx:now", arguments: {} } as ResolvedCall;

function fixture() {
  const config = { trusted: true, workspace: "/ws", grants: { wx: { net: ["a.example"] } } };
  const now = { definition: DEFINITION as object, approved: "sha256-1", verdict: "allow" };
  const app = {
    policy: {
      config,
      approvedCode: () => now.approved,
      now: { judge: () => ({ kind: now.verdict }) },
    },
    directory: { get: () => ({ definition: now.definition }) },
  } as unknown as App; // the parts that an approval reads
  const answer = new DraftAnswer();
  const permissions = { ...NO_PERMISSIONS, net: ["a.example"] };
  const look = (integrity: string, more = {}) =>
    new DraftApproval(app, {
      definition: DEFINITION as never, // only its identity is compared
      path: DEFINITION.path,
      integrity,
      permissions: { ...permissions, ...more },
      answer,
    }).findUnapproved(CALL);
  return { config, now, look };
}

Deno.test("an answer covers all versions of a module until its grants or its requests change", async () => {
  const { config, look } = fixture();
  assert.equal(look("sha256-1"), undefined, "the rules allow the approved code");
  const question = look("sha256-2");
  assert.equal(question?.code, "APPROVAL_STALE");
  assert.ok(question.facts.includes("it connects to a.example:443"));
  assert.notEqual(look("sha256-2"), undefined, "no answer yet");
  await question.accept();
  for (const code of ["sha256-2", "sha256-3"]) assert.equal(look(code), undefined);
  const wider = look("sha256-3", { env: ["TOKEN"] });
  assert.ok(wider?.facts.some((line) => line.includes("TOKEN")));
  assert.notEqual(look("sha256-3"), undefined, "the answer has ended");
  await look("sha256-3")?.accept();
  config.grants = { wx: { net: ["a.example", "b.example"] } };
  assert.notEqual(look("sha256-3"), undefined);
});

Deno.test("a call that no rule allows asks once, too, with the approved code", async () => {
  const { now, look } = fixture();
  now.verdict = "ask";
  const question = look("sha256-1");
  assert.equal(question?.code, "APPROVAL_REQUIRED");
  await question.accept();
  assert.equal(look("sha256-1"), undefined);
});

Deno.test("a module whose file is no longer trusted, or defines it otherwise, does not run because of an earlier answer", async () => {
  for (const change of ["trust", "definition"]) {
    const { config, now, look } = fixture();
    await look("sha256-2")?.accept();
    if (change === "trust") config.trusted = false;
    else now.definition = { ...DEFINITION };
    assert.throws(() => look("sha256-2"), { code: "WORKSPACE_UNTRUSTED" });
  }
});
