import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createNonce, UsedAnswers } from "./_used_answers.ts";

async function inHome(work: (home: string) => Promise<void>): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), "pml-used-"));
  try {
    await work(home);
  } finally {
    await rm(home, { recursive: true });
  }
}

const once = (identity: string | null = null) => ({
  nonce: createNonce(identity),
  expires: Date.now() + 60_000,
});

Deno.test("an answer is used once, and another process reports that its call may have run", async () => {
  await inHome(async (home) => {
    const [one, two] = [new UsedAnswers(home, "one"), new UsedAnswers(home, "two")];
    const answer = once();
    await one.use(answer);
    await assert.rejects(one.use(answer), { code: "BAD_REQUEST" });
    await assert.rejects(two.use(answer), {
      code: "UPSTREAM_DOWN",
      detail: { may_have_run: true },
    });
    const all = await Promise.allSettled(
      [one, two, one, two].map((by) => by.use(once())),
    );
    assert.ok(all.every(({ status }) => status === "fulfilled"));
  });
});

Deno.test("an answer is used once even if a clock jump removes its file", async () => {
  await inHome(async (home) => {
    const [one, two] = [new UsedAnswers(home, "one"), new UsedAnswers(home, "two")];
    const [answer, other] = [once(), once()];
    await one.use(answer);
    const { now } = Date;
    try {
      Date.now = () => now() + 3_600_000;
      await two.use(other);
    } finally {
      Date.now = now;
    }
    assert.equal((await readdir(join(home, "answered"))).length, 1);
    for (const by of [one, two]) await assert.rejects(by.use(answer), { code: "UPSTREAM_DOWN" });
  });
});

Deno.test("files of old answers are removed", async () => {
  await inHome(async (home) => {
    const folder = join(home, "answered");
    await new UsedAnswers(home, "one").use(once());
    const old = Date.now() - 120_000;
    await writeFile(join(folder, `${old}-x`), "one");
    await writeFile(join(folder, `${old}-y.1.pml-tmp`), "");
    await new UsedAnswers(home, "one").use(once());
    assert.equal((await readdir(folder)).length, 2);
  });
});

Deno.test("the number of files is limited for each identity", async () => {
  await inHome(async (home) => {
    const folder = join(home, "answered");
    await new UsedAnswers(home, "one").use(once("a"));
    for (let index = 0; index < 9_999; index++) {
      const { nonce, expires } = once("a");
      Deno.writeTextFileSync(join(folder, `${expires}-${nonce}`), "");
    }
    const answers = new UsedAnswers(home, "one");
    await assert.rejects(answers.use(once("a")), { code: "OVERLOADED" });
    await answers.use(once("b"));
    await answers.use(once());
  });
});
