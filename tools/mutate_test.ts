import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { repoFile } from "../tests/kit/pml_command.ts";
import { tryAll } from "./mutate.ts";
import { CHAPTERS } from "./mutate/guards.ts";
import { findGuard, type Mutant } from "./mutate/mutant.ts";
import { lineOf, pageOf, triedIn } from "./mutate/page.ts";
import { Tree } from "./mutate/tree.ts";

const GUARD = `export function open(door: { readonly isLocked: boolean }): string {
  if (door.isLocked) {
    throw new Error("locked");
  }
  return "open";
}
export const never = () => { if (1 > 2) throw new Error("never"); };
`;
const TEST = `import assert from "node:assert/strict";
import { never, open } from "../src/rooms/guard.ts";
Deno.test("open() refuses a locked door", () => {
  never();
  assert.equal(open({ isLocked: false }).length, 4);
  assert.throws(() => open({ isLocked: true }));
});
`;
const FILES = {
  "deno.json": "{}",
  // Moved since the table was written.
  "src/rooms/guard.ts": GUARD,
  "tests/guard_test.ts": TEST,
};

function mutant(name: string, change: Partial<Mutant>): Mutant {
  return {
    name,
    guard: "A locked door stays closed",
    file: "src/guard.ts",
    find: 'if (door.isLocked) { throw new Error("locked"); }',
    put: "",
    test: "src/guard_test.ts",
    filter: "open() refuses a locked door",
    ...change,
  };
}

/** What becomes of mutants, by their names. */
const FATES = {
  red: mutant("red", {}),
  survives: mutant("survives", { find: 'if (1 > 2) throw new Error("never");' }),
  "held twice": mutant("held twice", {
    find: 'if (1 > 2) throw new Error("never");',
    isTwice: true,
  }),
  stale: mutant("stale", { find: "if (door.isClosed)" }),
  "does not load": mutant("does not load", { put: "if (door.isLocked) {" }),
  odd: mutant("odd", { put: "if (!door.isLocked) return JSON.parse('x');" }),
  "no test": mutant("no test", { filter: "open() is no test" }),
};

Deno.test("mutate tells a red test from a green one, and both from what says nothing", async () => {
  const root = await Deno.makeTempDir();
  const before = { ...FATES, type: mutant("type", { put: "if (door.isLocked) return 1;" }) };
  try {
    for (const [path, text] of Object.entries(FILES)) {
      await Deno.mkdir(dirname(join(root, path)), { recursive: true });
      await Deno.writeTextFile(join(root, path), text);
    }
    await new Deno.Command("git", { args: ["init", "--quiet", root] }).output();
    const tried = await tryAll(Object.values(before), { root, jobs: 2 });
    const fates = tried.map(({ mutant: { name }, fate }) => [name, fate]);
    const wanted = Object.keys(FATES).map((fate) => [fate, fate]);
    const said = tried.map(lineOf).join("\n");
    assert.deepEqual(fates, [...wanted, ["type", "does not load"]], said);
    assert.match(said, /its text is in no file/);
    assert.equal(await Deno.readTextFile(join(root, "src/rooms/guard.ts")), GUARD);
    const page = pageOf([{ title: "Doors", mutants: [FATES.red] }], tried);
    assert.match(
      page,
      /\| `src\/rooms\/guard\.ts` \|.*\| `tests\/guard_test\.ts`: open\(\).*\| red/,
    );
    // Rows that are not tried anew stay what the page says.
    const again = triedIn(page, [FATES.red]);
    assert.equal(pageOf([{ title: "Doors", mutants: [FATES.red] }], again), page);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test("The page of the guards is as deno fmt writes it, also where code has ticks", async () => {
  const ticks = ["`", "`${a}\\n`", "x => `${x}`", "`", "a | b"].map((find, at) =>
    mutant(`ticks ${at}`, { find, put: find.slice(1), filter: "a * b" })
  );
  const page = pageOf([{ title: "Doors", mutants: ticks }], []);
  const file = await Deno.makeTempFile({ suffix: ".md" });
  try {
    await Deno.writeTextFile(file, page);
    const args = ["fmt", "-q", "--line-width", "100", file];
    await new Deno.Command(Deno.execPath(), { args }).output();
    assert.equal(await Deno.readTextFile(file), page);
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("Every guard of the table is where it says, and on the page", async () => {
  await using tree = await Tree.copyOf(repoFile(""));
  const page = await Deno.readTextFile(repoFile("docs/security-tests.md"));
  const wrong = CHAPTERS.flatMap(({ mutants }) => mutants).flatMap((mutant) => {
    const place = findGuard(mutant, tree.sources);
    if (typeof place !== "object") return `${mutant.name}: ${place}`;
    return page.includes(mutant.guard) ? [] : `${mutant.name}: run \`deno task mutate --write\``;
  });
  assert.deepEqual(wrong, []);
});
