import assert from "node:assert/strict";
import { DURATION_BOUNDS, LabelledCounts, LabelledDurations, OTHER } from "./metrics.ts";
import {
  mergeSnapshots,
  type MetricFamily,
  type MetricsSnapshot,
  prometheusText,
  snapshotOf,
} from "./metric_families.ts";

function counter(name: string, ...samples: readonly (readonly [string, number])[]): MetricFamily {
  return {
    ...{ name, type: "counter", help: "h" },
    samples: samples.map(([tool, value]) => ({ labels: { tool }, value })),
  };
}

function histogram(counts: readonly number[], sum: number, bounds = [0.1, 1]): MetricFamily {
  const samples = [{ labels: { server: "a" }, counts, sum }];
  return { name: "d_seconds", type: "histogram", help: "h", bounds, samples };
}

function of(...families: readonly MetricFamily[]): MetricsSnapshot {
  return { families };
}

Deno.test("mergeSnapshots() adds the counts with equal labels in any order", () => {
  const one: MetricFamily = {
    ...{ name: "x", type: "gauge", help: "h" },
    samples: [{ labels: { a: "1", b: "2" }, value: 1 }],
  };
  const other: MetricFamily = { ...one, samples: [{ labels: { b: "2", a: "1" }, value: 4 }] };
  assert.deepEqual(mergeSnapshots([of(one), of(other), of(counter("c", ["t", 2]))]), {
    families: [
      counter("c", ["t", 2]),
      { ...one, samples: [{ labels: { a: "1", b: "2" }, value: 5 }] },
    ],
  });
  const several = mergeSnapshots([
    of(counter("c", ["t", 2], ["s", 1])),
    of(counter("c", ["t", 3])),
  ]);
  assert.deepEqual(several, of(counter("c", ["s", 1], ["t", 5])));
});

Deno.test("mergeSnapshots() adds histograms, and leaves out one with other bounds or another type", () => {
  const merged = mergeSnapshots([
    of(histogram([1, 0, 2], 7)),
    of(histogram([1, 1, 0], 1)),
    of(histogram([9, 9, 9], 9, [5, 6])),
    of({ ...counter("d_seconds", ["t", 1]) }),
  ]);
  assert.deepEqual(merged, of(histogram([2, 1, 2], 8)));
  assert.deepEqual(mergeSnapshots([]), { families: [] });
});

Deno.test("prometheusText() writes cumulative buckets, and escapes texts", () => {
  const odd: MetricFamily = {
    ...{ name: "x", type: "gauge", help: "a\nb\\c" },
    samples: [{ labels: { tool: 'q"\\\n' }, value: 1.5 }, { labels: {}, value: 0 }],
  };
  assert.equal(
    prometheusText(of(histogram([1, 0, 2], 7), odd)),
    `# HELP d_seconds h
# TYPE d_seconds histogram
d_seconds_bucket{server="a",le="0.1"} 1
d_seconds_bucket{server="a",le="1"} 1
d_seconds_bucket{server="a",le="+Inf"} 3
d_seconds_sum{server="a"} 7
d_seconds_count{server="a"} 3
# HELP x a\\nb\\\\c
# TYPE x gauge
x{tool="q\\"\\\\\\n"} 1.5
x 0
`,
  );
});

Deno.test("snapshotOf() refuses families that PML would not write", () => {
  const valid = of(counter("c", ["t", 1]), histogram([1, 0, 2], 7));
  assert.deepEqual(snapshotOf(JSON.parse(JSON.stringify(valid))), valid);
  for (const odd of [null, {}, { families: {} }, { families: [{ name: "a b" }] }]) {
    assert.equal(snapshotOf(odd), undefined);
  }
  const broken: readonly object[] = [
    { ...counter("c"), name: "c d" },
    { ...counter("c"), samples: [{ labels: { "a b": "x" }, value: 1 }] },
    { ...counter("c"), samples: [{ labels: {}, value: "1" }] },
    { ...histogram([1], 1), bounds: ["x"] },
  ];
  for (const family of broken) assert.equal(snapshotOf({ families: [family] }), undefined);
});

Deno.test("counts with labels are bounded: those beyond the limit have one label", () => {
  const counts = new LabelledCounts(["server", "tool", "outcome"]);
  for (let count = 0; count < 5_000; count++) counts.add("s", `t${count}`, "result");
  const samples = counts.samples();
  assert.equal(samples.length, 2_001);
  const others = samples.find(({ labels }) => labels.tool === OTHER);
  assert.deepEqual(others, {
    labels: { server: OTHER, tool: OTHER, outcome: OTHER },
    value: 3_000,
  });
});

Deno.test("durations are counted by the bounds of the conventions, in seconds", () => {
  const durations = new LabelledDurations(["method", "tool", "error"]);
  for (const ms of [0, 10, 10.1, 299_999, 300_001]) durations.of("m", "", "").add(ms);
  const [sample] = durations.samples();
  assert.deepEqual(sample?.labels, { method: "m" });
  const counts = sample?.counts ?? [];
  assert.deepEqual([counts[0], counts[1], counts.at(-2), counts.at(-1)], [2, 1, 1, 1]);
  assert.equal(counts.length, DURATION_BOUNDS.length + 1);
});
