/**
 * Metrics as plain JSON: families of counts with labels, which can be added up over processes and
 * written as the text that Prometheus reads.
 *
 * @module
 */

import { isObject } from "../core/json.ts";

/** The labels of a count. */
export type Labels = Readonly<Record<string, string>>;

/** A count, or the value of a gauge. */
export interface ValueSample {
  readonly labels: Labels;
  readonly value: number;
}

/** A distribution over the bounds of its family. */
export interface HistogramSample {
  readonly labels: Labels;
  /** How many values are in each bucket, and above the last bound. */
  readonly counts: readonly number[];
  readonly sum: number;
}

/** All samples of one metric. */
export type MetricFamily =
  & { readonly name: string; readonly help: string }
  & (
    | { readonly type: "counter" | "gauge"; readonly samples: readonly ValueSample[] }
    | {
      readonly type: "histogram";
      readonly bounds: readonly number[];
      readonly samples: readonly HistogramSample[];
    }
  );

/** The counts of a process, or of several. */
export interface MetricsSnapshot {
  readonly families: readonly MetricFamily[];
}

/**
 * Adds up the counts of several processes. Leaves out a family whose type or bounds differ from the
 * first family with its name, because its process runs another version of PML.
 */
export function mergeSnapshots(snapshots: readonly MetricsSnapshot[]): MetricsSnapshot {
  const families = new Map<string, MetricFamily>();
  for (const family of snapshots.flatMap(({ families }) => families)) {
    const first = families.get(family.name);
    families.set(family.name, first === undefined ? family : mergeFamilies(first, family));
  }
  return {
    families: [...families.values()].map(sortedFamily)
      .sort((one, other) => one.name < other.name ? -1 : 1),
  };
}

function mergeFamilies(one: MetricFamily, other: MetricFamily): MetricFamily {
  if (one.type === "histogram" && other.type === "histogram") {
    if (`${one.bounds}` !== `${other.bounds}`) return one;
    const samples = mergeByLabels([...one.samples, ...other.samples], (first, second) => ({
      labels: first.labels,
      counts: first.counts.map((count, index) => count + (second.counts[index] ?? 0)),
      sum: first.sum + second.sum,
    }));
    return { ...one, samples };
  }
  if (one.type === "histogram" || other.type !== one.type) return one;
  const samples = mergeByLabels(
    [...one.samples, ...other.samples] as ValueSample[],
    (first, second) => ({
      labels: first.labels,
      value: first.value + second.value,
    }),
  );
  return { ...one, samples };
}

function mergeByLabels<S extends { readonly labels: Labels }>(
  samples: readonly S[],
  add: (one: S, other: S) => S,
): readonly S[] {
  const all = new Map<string, S>();
  for (const sample of samples) {
    const key = keyOf(sample.labels);
    const first = all.get(key);
    all.set(key, first === undefined ? sample : add(first, sample));
  }
  return [...all.values()];
}

function keyOf(labels: Labels): string {
  return JSON.stringify(Object.entries(labels).sort(([one], [other]) => one < other ? -1 : 1));
}

function sortedFamily(family: MetricFamily): MetricFamily {
  const order = (one: { labels: Labels }, other: { labels: Labels }) =>
    keyOf(one.labels) < keyOf(other.labels) ? -1 : 1;
  return family.type === "histogram"
    ? { ...family, samples: [...family.samples].sort(order) }
    : { ...family, samples: [...family.samples].sort(order) };
}

/** Returns the metrics in the text format of Prometheus, version 0.0.4. */
export function prometheusText({ families }: MetricsSnapshot): string {
  return families.map((family) => `${headOf(family)}${linesOf(family).join("")}`).join("");
}

function headOf({ name, help, type }: MetricFamily): string {
  const text = help.replace(/\\/g, "\\\\").replace(/\n/g, "\\n");
  return `# HELP ${name} ${text}\n# TYPE ${name} ${type}\n`;
}

function linesOf(family: MetricFamily): readonly string[] {
  const { name } = family;
  if (family.type !== "histogram") {
    return family.samples.map(({ labels, value }) => sampleLine(name, labels, value));
  }
  return family.samples.flatMap(({ labels, counts, sum }) => {
    let total = 0;
    const bounds = [...family.bounds.map((bound) => `${bound}`), "+Inf"];
    const buckets = bounds.map((le, index) => {
      total += counts[index] ?? 0;
      return sampleLine(`${name}_bucket`, { ...labels, le }, total);
    });
    return [
      ...buckets,
      sampleLine(`${name}_sum`, labels, sum),
      sampleLine(`${name}_count`, labels, total),
    ];
  });
}

function sampleLine(name: string, labels: Labels, value: number): string {
  const all = Object.entries(labels).map(([key, text]) => `${key}="${escapeLabel(text)}"`);
  return `${name}${all.length === 0 ? "" : `{${all.join(",")}}`} ${value}\n`;
}

function escapeLabel(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n");
}

/** Returns a value of another process as a snapshot; undefined if it is not a snapshot. */
export function snapshotOf(value: unknown): MetricsSnapshot | undefined {
  if (!isObject(value) || !Array.isArray(value.families)) return undefined;
  return value.families.every(isFamily) ? { families: value.families } : undefined;
}

/** The names of metrics and labels that Prometheus accepts. */
const NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

function isFamily(value: unknown): value is MetricFamily {
  if (!isObject(value) || typeof value.help !== "string" || !Array.isArray(value.samples)) {
    return false;
  }
  if (typeof value.name !== "string" || !NAME.test(value.name)) return false;
  const isHistogram = value.type === "histogram";
  if (isHistogram ? !isNumbers(value.bounds) : !["counter", "gauge"].includes(`${value.type}`)) {
    return false;
  }
  return value.samples.every((sample) =>
    isObject(sample) && isLabels(sample.labels) &&
    (isHistogram ? isNumbers(sample.counts) && isNumbers([sample.sum]) : isNumbers([sample.value]))
  );
}

function isNumbers(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => Number.isFinite(item));
}

function isLabels(value: unknown): boolean {
  return isObject(value) &&
    Object.entries(value).every(([name, text]) => NAME.test(name) && typeof text === "string");
}
