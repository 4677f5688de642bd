import assert from "node:assert/strict";
import { openEmbedded } from "../store/embedded.ts";
import { folder, server } from "../store/_stores_test.ts";
import { AnswerCache } from "./_answer_cache.ts";

const request = { method: "GET", target: "/mcp/weather" };
const answerWith = (body: string, status = 200) => ({
  status,
  headers: {},
  body: new TextEncoder().encode(body),
});

Deno.test("AnswerCache makes a new answer after each change by any process", async () => {
  await using place = await folder();
  await using store = await openEmbedded(place.path);
  await using other = await openEmbedded(place.path);
  let made = 0;
  const cache = new AnswerCache(() => store.stamp());
  const ask = async () =>
    await cache.getOrMake(request, () => Promise.resolve(answerWith(`${++made}`)));
  await ask();
  await ask();
  assert.equal(made, 1);
  await store.add([server("weather", "1.0.0")]);
  await ask();
  assert.equal(made, 2);
  await other.add([server("other", "1.0.0")]);
  await ask();
  await ask();
  assert.equal(made, 3);
  await other.admin.yank({ fqdn: "weather", version: "1.0.0" }, "old");
  await ask();
  assert.equal(made, 4);
});

Deno.test("AnswerCache returns neither outdated answers nor answers to other requests", async () => {
  let stamp = 1;
  const cache = new AnswerCache(() => `${stamp}`);
  const late = await cache.getOrMake(request, () => {
    stamp++;
    return Promise.resolve(answerWith("old"));
  });
  assert.equal(new TextDecoder().decode(late.body), "old");
  const fresh = await cache.getOrMake(request, () => Promise.resolve(answerWith("new")));
  assert.equal(new TextDecoder().decode(fresh.body), "new");
  for (const more of [{ accept: "application/json" }, { method: "HEAD" }, { ifNoneMatch: "x" }]) {
    const own = await cache.getOrMake(
      { ...request, ...more },
      () => Promise.resolve(answerWith("own")),
    );
    assert.equal(new TextDecoder().decode(own.body), "own");
  }
  // Failures and large answers are not cached.
  let count = 0;
  for (const answer of [answerWith("", 404), answerWith("x".repeat(70_000))]) {
    for (const _ of [1, 2]) {
      await cache.getOrMake({ ...request, target: `/${answer.status}` }, () => {
        count++;
        return Promise.resolve(answer);
      });
    }
  }
  assert.equal(count, 4);
});
