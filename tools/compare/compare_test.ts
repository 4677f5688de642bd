import assert from "node:assert/strict";
import type { ComparedRun } from "./one.ts";
import { differencesOf, entriesOf, resultDifference } from "./lists.ts";
import { cellOf as probeCell } from "./probe_run.ts";
import { probeSection, withProbeSection } from "./probe_table.ts";
import { PROBES } from "./probes.ts";
import { cellOf, pageOf } from "./table.ts";

const COUNTS = { tools: 2, prompts: 0, resources: 0, resourceTemplates: 0, calls: 1 };
const SAME: ComparedRun = {
  ...{ era: "2025-11-25", confined: false, spoken: true },
  ...{ counts: COUNTS, differences: [] },
};

Deno.test("entriesOf() returns one server's entries under its own names, in the order of keys", () => {
  const tools = [{ title: "A", name: "a__x", z: 1 }, { name: "ab__x" }, { name: "b__a__x" }];
  const own = entriesOf(tools, { server: "a", name: "tools" });
  assert.equal(JSON.stringify(own), '[{"title":"A","name":"x","z":1}]');
  const resources = [{ uri: "pml://a/file:///x" }, { uri: "pml://b/file:///x" }];
  assert.deepEqual(entriesOf(resources, { server: "a", name: "resources" }), [
    { uri: "file:///x" },
  ]);
});

Deno.test("differencesOf() sees a missing entry, a changed byte and another order of keys", () => {
  const of = (direct: object[], through: object[], ignored: string[] = []) =>
    differencesOf("tools", {
      direct: direct as { [key: string]: unknown }[],
      through: through as { [key: string]: unknown }[],
      ignored,
    }).map(({ what }) => what);
  const [one, two] = [{ name: "x", description: "d" }, { name: "y" }];
  assert.deepEqual(of([one, two], [two, one]), []);
  assert.deepEqual(of([one, two], [one]), ["tools: y"]);
  assert.deepEqual(of([one], [one, two]), ["tools: y"]);
  assert.deepEqual(of([one], [{ ...one, description: "d " }]), ["tools: x"]);
  assert.deepEqual(of([one], [{ description: "d", name: "x" }]), ["tools: x"]);
  assert.deepEqual(of([{ ...one, execution: {} }], [one]), ["tools: x"]);
  assert.deepEqual(of([{ ...one, execution: {} }], [one], ["execution"]), []);
});

Deno.test("resultDifference() compares what varies by its form alone", () => {
  const of = (direct: string, through: unknown, varies: boolean) =>
    resultDifference("t", {
      ...{ direct: { content: [{ type: "text", text: direct }] }, server: "a", varies },
      through: { content: [{ type: "text", text: through }], _meta: { at: 1 } },
    }).length;
  assert.equal(of("x", "x", false), 0);
  assert.equal(of("x", "y", false), 1);
  assert.equal(of("x", "y", true), 0);
  assert.equal(of("x", 1, true), 1);
  assert.equal(of("x", true, true), 1);
  const failed = { direct: { isError: true }, through: { isError: false } };
  assert.equal(resultDifference("t", { ...failed, server: "a", varies: true }).length, 1);
  assert.equal(of("see demo://1", "see pml://a/demo://1", false), 0);
});

Deno.test("resultDifference() takes an error of the protocol and a result with its words for one", () => {
  const of = (through: { [key: string]: unknown }) =>
    resultDifference("t", { direct: { error: 'no "x"\n' }, through, server: "a", varies: false })
      .length;
  const content = [{ type: "text", text: '"a" answered with the error -32603: no "x"\n' }];
  assert.equal(of({ content, isError: true }), 0);
  assert.equal(of({ content }), 1);
  assert.equal(of({ error: 'no "x"\n' }), 0);
  assert.equal(of({ content: [{ type: "text", text: "no" }], isError: true }), 1);
  assert.equal(of({}), 1);
  const denied = [{ type: "text", text: 'Requires net access to "h:1", run again' }];
  const found = resultDifference("t", {
    ...{ direct: { error: "down" }, through: { content: denied, isError: true } },
    ...{ server: "a", varies: false },
  });
  assert.equal(cellOf({ differences: found }), "1 denied");
});

Deno.test("pageOf() counts equal results, and names the others with their reasons", () => {
  const bad = { what: "tools: x", direct: "1", through: "2" };
  const page = pageOf([
    { name: "a", package: "pa", version: "1.0.0", runs: [SAME, { ...SAME, confined: true }] },
    { name: "b", package: "pb", version: "1.0.0", runs: [{ ...SAME, differences: [bad] }] },
    {
      ...{ name: "c", package: "pc", version: "1.0.0" },
      runs: [SAME, { ...SAME, confined: true, failed: "needs\n`net` at https://h.example/x" }],
    },
    { name: "d", package: "pd", skipped: "Too large", runs: [] },
  ], "2026-01-02");
  assert.match(
    page,
    /2 of 3\s+servers .* 2 calls of 2 /,
  );
  assert.match(page, /2 of 3 servers start and return .* 2\s+of them return the same/);
  assert.match(page, /- `pb` \(2025-11-25\): `tools: x`/);
  assert.match(page, /- `pc` \(2025-11-25\): `needs 'net' at URL`/);
  assert.match(page, /- `pd`: `Too large`/);
});

Deno.test("cellOf() finds equal values, explained differences and others", () => {
  const exceptions = [{ reason: "r", ways: ["serve"], era: "2025-11-25" }] as const;
  const stateOf = (cell: Partial<Parameters<typeof probeCell>[1]>) =>
    probeCell({ exceptions }, { era: "2025-11-25", way: "serve", value: "1", direct: "2", ...cell })
      .state;
  assert.equal(stateOf({ way: "direct" }), "direct");
  assert.equal(stateOf({ direct: "1" }), "same");
  assert.equal(stateOf({}), "explained");
  assert.equal(stateOf({ way: "full_proxy" }), "differs");
  assert.equal(stateOf({ era: "2026-07-28" }), "differs");
});

Deno.test("probeSection() numbers the reasons, and replaces only its own section of a page", () => {
  const exception = { reason: "It is better", isBetter: true };
  const cell = { era: "2025-11-25", value: "1" } as const;
  const section = probeSection([
    {
      name: "tools",
      cells: [
        { ...cell, way: "direct", state: "direct" },
        { ...cell, way: "full_proxy", state: "explained", exception },
        { ...cell, way: "serve", state: "differs" },
      ],
    },
  ], "2026-01-02");
  assert.match(section, /\| tools \| works \| better \(1\) \| \*\*differs\*\* \|/);
  assert.match(section, /\n1\. It is better\.\n/);
  const page = withProbeSection(withProbeSection("# Servers\n\nText\n", "## Old\n"), section);
  assert.equal(withProbeSection(page, section), page);
  assert.match(page, /^# Servers\n\nText\n/);
});

Deno.test("the probes have different names, and are at least 45", () => {
  const names = PROBES.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  assert.ok(names.length >= 45);
});
