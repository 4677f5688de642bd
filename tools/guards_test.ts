import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { repoFile } from "../tests/kit/pml_command.ts";
import { allGuards, lineOf, TESTS, tryAll } from "./guards.ts";
import { guardsIn } from "./guards/guard.ts";

const DOOR = `export function open(door: { readonly isLocked: boolean }): string {
  // guard: locked
  if (door.isLocked) {
    throw new Error("locked");
  }
  // guard: never
  if (1 > 2) throw new Error("never");
  return "open";
}

export function isOpen(door: { readonly isLocked: boolean }): boolean {
  // guard: is-open
  return !door.isLocked &&
    open(door) === "open";
}
`;
const TEST = `import assert from "node:assert/strict";
import { isOpen, open } from "../src/rooms/door.ts";
Deno.test("open() refuses a locked door", () => {
  assert.equal(open({ isLocked: false }).length, 4);
  assert.throws(() => open({ isLocked: true }));
});
Deno.test("isOpen() returns whether a door is not locked", () => {
  assert.equal(isOpen({ isLocked: false }), true);
});
`;
const FILES = { "deno.json": "{}", "src/rooms/door.ts": DOOR, "tests/door_test.ts": TEST };

/** How many guards each run of the tests takes out. The next day has the next ones. */
const GUARDS_A_RUN = 6;

Deno.test("guardsIn() takes out a statement, or negates what is returned", () => {
  const [locked, never, isOpen] = guardsIn("src/rooms/door.ts", DOOR);
  assert.deepEqual([locked?.name, locked?.line], ["locked", 2]);
  assert.equal(locked?.without.includes("if (door.isLocked)"), false);
  assert.match(locked?.without ?? "", /never.*\n {2}return "open";/s);
  assert.equal(never?.without.includes("1 > 2"), false);
  assert.match(
    isOpen?.without ?? "",
    /return !\(!door.isLocked &&\n {4}open\(door\) === "open"\);/,
  );
});

Deno.test("guardsIn() refuses a mark above something that cannot be taken out", () => {
  const statements = [
    "const door = 1;",
    "if (a) {\n  b();\n} else {\n  c();\n}",
    "for (const a of b) c();",
    "// another comment\nb();",
  ];
  for (const statement of statements) {
    assert.throws(() => guardsIn("a.ts", `// guard: a\n${statement}\n`), /a\.ts:1: /, statement);
  }
  assert.throws(() => guardsIn("a.ts", "// guard: two words\nb();\n"), /a\.ts:1: /);
});

Deno.test("tryAll() tells a test that fails without its guard from one that passes", async () => {
  const root = await Deno.makeTempDir();
  try {
    for (const [path, text] of Object.entries(FILES)) {
      await Deno.mkdir(dirname(join(root, path)), { recursive: true });
      await Deno.writeTextFile(join(root, path), text);
    }
    await new Deno.Command("git", { args: ["init", "--quiet", root] }).output();
    const guards = await allGuards(root);
    const test = "tests/door_test.ts";
    const tests = {
      locked: { test, title: "open() refuses a locked door" },
      never: { test, title: "open() refuses a locked door" },
      "is-open": { test, title: "isOpen() is no test" },
    };
    const [locked, never, isOpen] = await tryAll(guards, { root, tests, jobs: 2 });
    assert.equal(locked?.problem, undefined, locked && lineOf(locked));
    assert.match(never?.problem ?? "", /^it passes: /);
    assert.match(
      isOpen?.problem ?? "",
      /^no test of tests\/door_test\.ts ran: isOpen\(\) is no test/,
    );
    assert.equal(await Deno.readTextFile(join(root, "src/rooms/door.ts")), DOOR);
  } finally {
    await Deno.remove(root, { recursive: true });
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
  const tried = await tryAll(todays, { root: repoFile(""), tests: TESTS, jobs: 1 });
  assert.deepEqual(tried.filter(({ problem }) => problem !== undefined).map(lineOf), []);
});
