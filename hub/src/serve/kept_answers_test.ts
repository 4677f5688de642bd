import assert from "node:assert/strict";
import { openEmbedded } from "../store/embedded.ts";
import { folder, server } from "../store/_stores_test.ts";
import { KeptAnswers } from "./_kept_answers.ts";

const asked = { method: "GET", target: "/mcp/weather" };
const answered = (body: string, status = 200) => ({
  status,
  headers: {},
  body: new TextEncoder().encode(body),
});

Deno.test("KeptAnswers makes an answer anew after each change, whichever process makes it", async () => {
  await using place = await folder();
  await using store = await openEmbedded(place.path);
  await using other = await openEmbedded(place.path);
  let made = 0;
  const kept = new KeptAnswers(() => store.stamp());
  const ask = async () => await kept.to(asked, () => Promise.resolve(answered(`${++made}`)));
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
  await other.desk.yank({ fqdn: "weather", version: "1.0.0" }, "old");
  await ask();
  assert.equal(made, 4);
});

Deno.test("KeptAnswers keeps no answer that a change has overtaken, and no other request's", async () => {
  let stamp = 1;
  const kept = new KeptAnswers(() => `${stamp}`);
  const late = await kept.to(asked, () => {
    stamp++;
    return Promise.resolve(answered("old"));
  });
  assert.equal(new TextDecoder().decode(late.body), "old");
  const fresh = await kept.to(asked, () => Promise.resolve(answered("new")));
  assert.equal(new TextDecoder().decode(fresh.body), "new");
  for (const more of [{ accept: "application/json" }, { method: "HEAD" }, { ifNoneMatch: "x" }]) {
    const own = await kept.to({ ...asked, ...more }, () => Promise.resolve(answered("own")));
    assert.equal(new TextDecoder().decode(own.body), "own");
  }
  // Failures and what is large are made each time, and all together stays small.
  let count = 0;
  for (const answer of [answered("", 404), answered("x".repeat(70_000))]) {
    for (const _ of [1, 2]) {
      await kept.to({ ...asked, target: `/${answer.status}` }, () => {
        count++;
        return Promise.resolve(answer);
      });
    }
  }
  assert.equal(count, 4);
});
