import assert from "node:assert/strict";
import { repoFile } from "../tests/kit/pml_command.ts";
import type { Hops } from "./hops.ts";

const PAGE = await Deno.readTextFile(repoFile("docs/design.md"));
const [, CHAPTER = ""] = /^## The hops of a call$(.*?)^## /ms.exec(PAGE) ?? [];
const LOAD = "load in modules/loader.ts";
const COMPARE = "assertIntegrity in registry/integrity.ts";
/** How much more may run than the page says before it has to be measured again. */
const SLACK = 1.1;

/** Measures in a process of its own, which is given an environment. */
async function measured(): Promise<readonly Hops[]> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", repoFile("tools/hops.ts"), "--json"],
  }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  return JSON.parse(new TextDecoder().decode(stdout));
}

/** Returns the cells of the rows of a table, by what stands above its first column. */
function rowsOf(head: string): readonly (readonly string[])[] {
  const lines = CHAPTER.split("\n");
  const start = lines.findIndex((line) => line.startsWith(`| ${head} `));
  const length = lines.slice(start).findIndex((line) => !line.startsWith("|"));
  return lines.slice(start + 2, start + length)
    .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()));
}

/** Returns the functions that a call went through, as the page names them. */
function pathOf({ entered }: Hops): readonly string[] {
  return entered.map(({ name, file }) => `${name} in ${file}`);
}

Deno.test("Each of three calls takes the hops that the page shows, so often and in this order", async () => {
  const calls = await measured();
  const shown = rowsOf("what happens").map(([, name = "", ...times]) => ({
    name: name.replaceAll("`", ""),
    times: times.map(Number),
  }));
  assert.ok(shown.length > 10, "the page has the table");
  for (const [at, hops] of calls.entries()) {
    const path = pathOf(hops);
    const wanted = shown.map(({ name, times }) => [name, times[at]] as const);
    const came = wanted.map(([name]) => [name, path.filter((one) => one === name).length] as const);
    assert.deepEqual(came, wanted, hops.call);
    const places = wanted.flatMap(([name, times]) => times === 0 ? [] : [path.indexOf(name)]);
    assert.deepEqual(places, places.toSorted((one, other) => one - other), hops.call);
    // What is read is compared there, and nowhere else.
    const looks = path.filter((one) => one === LOAD || one === COMPARE);
    assert.deepEqual(looks, looks.map((_, which) => which % 2 === 0 ? LOAD : COMPARE), hops.call);
    const rooms = [...new Set(hops.order.map((file) => file.split("/")[0]))];
    const line = `- ${hops.call}: ${rooms.join(", ")}`;
    assert.ok(CHAPTER.replaceAll(/\n {2}/g, " ").includes(`${line}\n`), line);
  }
  for (const [at, cells] of rowsOf("one call").entries()) {
    const { call, named, functions, files } = calls[at] ?? assert.fail("it was measured");
    const [name, ...said] = cells;
    assert.equal(name, call);
    // How often files are entered goes by what comes at once, so that is no limit.
    for (const [which, is] of [named, functions, files].entries()) {
      const now = Number(said[which]?.split(" now ")[1]?.replace(",", ""));
      assert.ok(
        is <= now * SLACK,
        `${call}: ${is}, and the page says ${now}; see \`deno task hops\``,
      );
    }
  }
});
