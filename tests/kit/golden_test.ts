import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { assertGolden, assertGoldenError, titlesOf } from "./golden.ts";
import { repoFile } from "./pml_command.ts";
import { makeWorkspace } from "./workspace.ts";

const IS_WRITING = Deno.env.get("PML_GOLDEN") === "write";

Deno.test("assertGolden() compares a text, with placeholders for values of one run", async () => {
  await using ws = await makeWorkspace();
  const text = (port: number, name: string) =>
    `Cannot read "${ws.file("a")}" at 127.0.0.1:${port}: ${"ab".repeat(32)} of ${name}\r\n`;
  assertGolden("kit/placeholders", text(8001, "ada"), { NAME: "ada" });
  assertGolden("kit/placeholders", text(65_000, "bob"), { NAME: "bob" });
  if (IS_WRITING) return;
  assert.throws(() => assertGolden("kit/placeholders", text(1, "ada")), /kit\.txt.*"placeholders"/);
  assert.throws(() => assertGolden("kit/no such title", ""), /kit\.txt/);
});

Deno.test("assertGoldenError() compares the code, the message and the hint", async () => {
  const error = Object.assign(new Error("Cannot go: too far"), { code: "USAGE", hint: "Stay" });
  await assertGoldenError("kit/an error", Promise.reject(error));
  await assertGoldenError("kit/an error without a code", Promise.reject(new Error("no")));
  await assert.rejects(assertGoldenError("kit/an error", Promise.resolve()), /no error/);
});

Deno.test("each section of tests/golden/ belongs to a test", async () => {
  let tests = "";
  for (const folder of ["tests", "src", "hub", "builtin"]) {
    for (const path of await readdir(repoFile(folder), { recursive: true })) {
      if (path.endsWith("_test.ts")) {
        tests += await Deno.readTextFile(repoFile(`${folder}/${path}`));
      }
    }
  }
  for (const name of await readdir(repoFile("tests/golden"))) {
    const file = name.replace(/\.txt$/, "");
    for (const title of titlesOf(repoFile(`tests/golden/${name}`))) {
      const isUsed = tests.includes(`"${file}/${title}"`) ||
        tests.includes(`\`${file}/\${`) && tests.includes(`"${title}"`);
      assert.ok(isUsed, `${name}: no test has "${title}"`);
    }
  }
});
