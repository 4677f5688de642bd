import assert from "node:assert/strict";
import fc from "fast-check";
import { call, Yard } from "../../tests/fixtures/modules/yard.ts";
import twinModule from "../../tests/fixtures/modules/twin.ts" with { type: "text" };
import { play, type Step } from "../../tests/fixtures/modules/twin.ts";
import { TABLE } from "../../tests/fixtures/modules/twin_table.ts";
import type { Json } from "../core/json.ts";

/** The intended differences between a sandbox and Deno, with the reasons. */
const MEANT: Readonly<Record<string, string>> = {
  "read a symbol": "Deno looks for no name when it waits, and throws at once; here both throw",
  "read a name with NUL": "whatever is no path here is refused as one that leads out",
  "chmod with a set-uid bit": "a module gives no file the rights of its owner",
  "chown": "a module changes no owner",
  "umask": "it would hold for the host thread too",
  "link": "a module makes no links",
  "symlink": "a module makes no links",
  "truncate to too much": "what grows counts as written, and is refused first",
  "utime what was opened to read": "a grant to read is none to change",
  "stat the way back over nothing": "`..` is taken from the text, before anything is looked at",
  "stat the way back over a file": "`..` is taken from the text, before anything is looked at",
};

Deno.test("Sandbox file functions behave as in Deno, asynchronously and synchronously", async () => {
  await using yard = new Yard();
  const twin = `${yard.root}/twin`;
  Deno.mkdirSync(twin);
  const names = Object.keys(TABLE);
  const codes = Object.values(TABLE);
  assert.ok(names.length >= 150, `only ${names.length}`);
  const sandbox = await yard.start(twinModule);
  const [boxed, direct] = await Promise.all([
    call(sandbox, "attempts", { codes }) as Promise<unknown[]>,
    directly(codes, twin),
  ]);
  const different: [name: string, ...unknown[]][] = [];
  boxed.forEach((outcome, at) => {
    const name = names[at >> 1] ?? "";
    if (JSON.stringify(outcome) === JSON.stringify(direct[at])) return;
    different.push([name, at & 1 ? "at once" : "waiting", outcome, direct[at]]);
  });
  assert.deepEqual(different.filter(([name]) => !(name in MEANT)), []);
  // The list is complete: an entry that no longer differs must be removed.
  assert.deepEqual(new Set(different.map(([name]) => name)), new Set(Object.keys(MEANT)));
});

/** Runs the same code in a separate process with all rights of its user. */
async function directly(codes: string[], cwd: string): Promise<unknown[]> {
  const code = `${twinModule}\nconst codes = JSON.parse(Deno.args[0]);
    console.log(JSON.stringify(await attempts({ codes })))`;
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--quiet", "--ext=ts", code, JSON.stringify(codes)],
    cwd,
  }).output();
  assert.ok(success, `the direct process failed: ${new TextDecoder().decode(stderr)}`);
  return JSON.parse(new TextDecoder().decode(stdout));
}

Deno.test("Sandbox leaves the same files as Deno after any operations", async () => {
  await using yard = new Yard();
  const sandbox = await yard.start(twinModule);
  let round = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step(), { minLength: 10, maxLength: 40 }), async (steps) => {
      round++;
      const boxed = await call(sandbox, "play", { root: `r${round}`, steps: plainOf(steps) });
      const direct = await play({ root: `${yard.root}/direct-${round}`, steps });
      const [outcomes, tree] = boxed as [Json[], Json];
      outcomes.forEach((outcome, at) => {
        const why = `${round}: ${JSON.stringify(steps.slice(0, at + 1))}`;
        assert.deepEqual(outcome, plainOf(direct[0][at]), why);
      });
      assert.deepEqual(tree, plainOf(direct[1]));
    }),
    { numRuns: 100, seed: 7, endOnFailure: true },
  );
});

function step(): fc.Arbitrary<Step> {
  const name = fc.constantFrom("a", "b", "c", "ü", "a b", "\n", "%2e%2e", "é", "\\", "…");
  const near = fc.constantFrom("a", "b", "a/c", "b/c");
  const far = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join("/"));
  const path = fc.oneof({ arbitrary: near, weight: 2 }, far);
  const files = "write mode read mkdir mkdir remove rename copy truncate chmod stat list open open";
  const handles = "h.write h.write h.read h.seek h.truncate h.stat h.close";
  return fc.record({
    op: fc.constantFrom(...`${files} ${handles}`.split(" ")),
    path,
    to: path,
    text: fc.string({ unit: "grapheme", maxLength: 30 }),
    n: fc.nat(600),
    h: fc.nat(5),
    flag: fc.boolean(),
    flags: fc.record({
      read: fc.boolean(),
      write: fc.boolean(),
      append: fc.boolean(),
      create: fc.boolean(),
      createNew: fc.boolean(),
      truncate: fc.boolean(),
    }),
    wait: fc.boolean(),
  });
}

function plainOf(value: unknown): Json {
  return JSON.parse(JSON.stringify(value));
}
