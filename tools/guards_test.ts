import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { repoFile } from "../tests/kit/pml_command.ts";
import { allGuards, checkAll, lineOf, TESTS } from "./guards.ts";
import { guardsIn } from "./guards/guard.ts";
import { Tree } from "./guards/tree.ts";

const BOX = `export function open(box: { readonly isLocked: boolean }): string {
  // guard: locked
  if (box.isLocked) {
    throw new Error("locked");
  }
  // guard: never
  if (1 > 2) throw new Error("never");
  return "open";
}

export function isOpen(box: { readonly isLocked: boolean }): boolean {
  // guard: is-open
  return !box.isLocked &&
    open(box) === "open";
}
`;
const TEST = `import assert from "node:assert/strict";
import { isOpen, open } from "../src/rooms/box.ts";
Deno.test("open() refuses a locked box", () => {
  assert.equal(open({ isLocked: false }).length, 4);
  assert.throws(() => open({ isLocked: true }));
});
Deno.test("isOpen() returns whether a box is not locked", () => {
  assert.equal(isOpen({ isLocked: false }), true);
});
`;
const FILES = { "deno.json": "{}", "src/rooms/box.ts": BOX, "tests/box_test.ts": TEST };

/** How many guards each run of the tests takes out. The next day has the next ones. */
const GUARDS_A_RUN = 6;

Deno.test("guardsIn() takes out a statement, or negates a returned condition", () => {
  const [locked, never, isOpen] = guardsIn("src/rooms/box.ts", BOX);
  assert.deepEqual([locked?.name, locked?.line], ["locked", 2]);
  assert.equal(locked?.without.includes("if (box.isLocked)"), false);
  assert.match(locked?.without ?? "", /never.*\n {2}return "open";/s);
  assert.equal(never?.without.includes("1 > 2"), false);
  assert.match(
    isOpen?.without ?? "",
    /return !\(!box.isLocked &&\n {4}open\(box\) === "open"\);/,
  );
});

Deno.test("guardsIn() refuses a mark above something that cannot be taken out", () => {
  const statements = [
    "const box = 1;",
    "if (a) {\n  b();\n} else {\n  c();\n}",
    "for (const a of b) c();",
    "// another comment\nb();",
  ];
  for (const statement of statements) {
    assert.throws(() => guardsIn("a.ts", `// guard: a\n${statement}\n`), /a\.ts:1: /, statement);
  }
  assert.throws(() => guardsIn("a.ts", "// guard: two words\nb();\n"), /a\.ts:1: /);
});

Deno.test("tryAll() reports a test that passes without its guard", async () => {
  const root = await Deno.makeTempDir();
  try {
    for (const [path, text] of Object.entries(FILES)) {
      await Deno.mkdir(dirname(join(root, path)), { recursive: true });
      await Deno.writeTextFile(join(root, path), text);
    }
    await new Deno.Command("git", { args: ["init", "--quiet", root] }).output();
    const guards = await allGuards(root);
    const test = "tests/box_test.ts";
    const tests = {
      locked: { test, title: "open() refuses a locked box" },
      never: { test, title: "open() refuses a locked box" },
      "is-open": { test, title: "isOpen() is no test" },
    };
    const [locked, never, isOpen] = await checkAll(guards, { root, tests, jobs: 2 });
    assert.equal(locked?.problem, undefined, locked && lineOf(locked));
    assert.match(never?.problem ?? "", /^it passes: /);
    assert.match(
      isOpen?.problem ?? "",
      /^no test of tests\/box_test\.ts ran: isOpen\(\) is no test/,
    );
    assert.equal(await Deno.readTextFile(join(root, "src/rooms/box.ts")), BOX);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test("tests in a copy of the project do not run the code that `deno task test` made", async () => {
  const { PML_TEST_MAIN } = Deno.env.toObject();
  Deno.env.set("PML_TEST_MAIN", "/nowhere/mod.js");
  try {
    await using tree = await Tree.copyOf(repoFile("tools/guards"));
    const { output } = await tree.deno(
      ["eval", "console.log(Deno.env.get('PML_TEST_MAIN'))"],
      20_000,
    );
    assert.equal(output, "undefined\n");
  } finally {
    if (PML_TEST_MAIN === undefined) Deno.env.delete("PML_TEST_MAIN");
    else Deno.env.set("PML_TEST_MAIN", PML_TEST_MAIN);
  }
});

Deno.test("every guard has a test, and every test of a guard exists", async () => {
  const names = (await allGuards(repoFile(""))).map(({ name }) => name);
  assert.deepEqual(names.toSorted(), Object.keys(TESTS).toSorted());
  for (const [name, { test }] of Object.entries(TESTS)) {
    assert.ok((await Deno.stat(repoFile(test))).isFile, `${name}: ${test}`);
  }
});

Deno.test("tests notice that the guards of today are missing", async () => {
  const guards = await allGuards(repoFile(""));
  const day = Math.floor(Date.now() / 86_400_000);
  const first = (day * GUARDS_A_RUN) % guards.length;
  const todays = [...guards, ...guards].slice(first, first + GUARDS_A_RUN);
  const tried = await checkAll(todays, { root: repoFile(""), tests: TESTS, jobs: 1 });
  assert.deepEqual(tried.filter(({ problem }) => problem !== undefined).map(lineOf), []);
});
