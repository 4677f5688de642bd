import assert from "node:assert/strict";
import { YES_OR_NO } from "../../protocol/answers.ts";
import { Replica, type ReplicaQuestion } from "./replica.ts";

const NOBODY = { host: "127.0.0.1", port: 0, home: "/nonexistent" };
const SECRET = new TextEncoder().encode("0123456789abcdef0123456789abcdef");

/**
 * Seals an approval request with this lifetime, and opens it. Returns how often it was restored.
 */
async function takenBack(ttl: number, request = "call"): Promise<number> {
  let count = 0;
  const questions = {
    send: () => ({ digest: "d", answers: YES_OR_NO, setKeys: {}, at: Date.now() }),
    restore: (question: ReplicaQuestion) => {
      assert.equal(question.digest, "d");
      return `handle ${++count}`;
    },
  };
  const parts = { questions: () => Promise.resolve(questions), checkForChanges: () => {} };
  const [one, two] = [1, 2].map(() =>
    new Replica({ ...NOBODY, secret: SECRET, ttl }, { warn: assert.fail }).statesFor("ci", parts)
  );
  assert.ok(one !== undefined && two !== undefined);
  const handle = await two.open(await one.seal("h", "call"), request);
  assert.equal(handle === "handle 1", count === 1);
  return count;
}

Deno.test("a sealed approval request is restored only before it expires", async () => {
  assert.equal(await takenBack(60_000), 1);
  // Its file may be removed by then, so nothing else would prevent a second use.
  assert.equal(await takenBack(0), 0);
});

Deno.test("a sealed approval request of another request is refused", async () => {
  await assert.rejects(takenBack(60_000, "other call"), { code: "BAD_REQUEST" });
});
