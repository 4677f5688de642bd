import assert from "node:assert/strict";
import { Replica, type SentQuestion } from "./replica.ts";

const NOBODY = { host: "127.0.0.1", port: 0, home: "/nonexistent" };
const SECRET = new TextEncoder().encode("0123456789abcdef0123456789abcdef");

/** Seals a question that can be answered for so long. Returns how often it was taken back. */
async function takenBack(ttl: number, request = "call"): Promise<number> {
  let count = 0;
  const questions = {
    send: () => ({ digest: "d", always: false, at: Date.now() }),
    takeBack: (question: SentQuestion) => {
      assert.equal(question.digest, "d");
      return `handle ${++count}`;
    },
  };
  const parts = { questions: () => Promise.resolve(questions), look: () => {} };
  const [one, two] = [1, 2].map(() =>
    new Replica({ ...NOBODY, secret: SECRET, ttl }, { warn: assert.fail }).for("ci", parts)
  );
  assert.ok(one !== undefined && two !== undefined);
  const handle = await two.open(await one.seal("h", "call"), request);
  assert.equal(handle === "handle 1", count === 1);
  return count;
}

Deno.test("A sealed question is taken back in its time, whatever time another process gives", async () => {
  assert.equal(await takenBack(60_000), 1);
  // Its file may be gone by then, so that nothing else would hold a second use.
  assert.equal(await takenBack(0), 0);
});

Deno.test("A sealed question of another request is refused", async () => {
  await assert.rejects(takenBack(60_000, "other call"), { code: "BAD_REQUEST" });
});
