/**
 * `pml metrics`: shows the metrics of all running PMLs of this PML home.
 *
 * @module
 */

import { homeMetrics } from "../control/process_metrics.ts";
import type { App } from "../app/app.ts";
import {
  type HistogramSample,
  type Labels,
  mergeSnapshots,
  type MetricFamily,
  type MetricsSnapshot,
  prometheusText,
  snapshotOf,
} from "../audit/metric_families.ts";
import { ProcessClients } from "../control/process_clients.ts";
import { counted, durationText } from "../core/amounts.ts";
import { messageOf } from "../core/errors.ts";
import { visible } from "../core/json.ts";
import { pause } from "../io/waiting.ts";
import type { CommandContext, CommandInput, CommandOutput } from "./_command_context.ts";
import { print, tell } from "./out.ts";

/** How often the metrics are read with `--follow`, in milliseconds. */
const FOLLOW_MS = 2_000;
/** The maximum number of lines about one family. */
const LINES_MAX = 20;

/** The metrics of all processes. */
interface JoinedMetrics extends MetricsSnapshot {
  /** The processes whose metrics are included. */
  readonly processes: readonly { readonly pid: number; readonly command: string }[];
  /** The processes that did not report metrics, with the reason. */
  readonly hidden: readonly { readonly pid: number; readonly reason: string }[];
}

/** Shows the metrics once, or every two seconds with `--follow`. */
export async function metrics(
  { app, signal }: CommandContext,
  input: CommandInput,
): Promise<CommandOutput> {
  const { home } = app.config();
  await using processes = new ProcessClients(home, { onState() {}, onCall() {}, onEnd() {} });
  await processes.start();
  let joined = await readMetrics(app, processes);
  while (input.follow && !signal.aborted) {
    show(joined, input);
    await pause(FOLLOW_MS, signal);
    joined = await readMetrics(app, processes);
  }
  if (input.follow) return { value: undefined };
  return {
    value: joined,
    text: input.prometheus ? prometheusText(joined).trimEnd() : metricsText(joined),
  };
}

function show(joined: JoinedMetrics, { json, prometheus }: CommandInput): void {
  if (json) return print(JSON.stringify(joined));
  if (prometheus) return print(prometheusText(joined));
  print(`${new Date().toISOString()}\n${metricsText(joined)}\n`);
}

async function readMetrics(app: App, clients: ProcessClients): Promise<JoinedMetrics> {
  const snapshots: MetricsSnapshot[] = [await homeMetrics(app)];
  const processes: { readonly pid: number; readonly command: string }[] = [];
  const hidden = clients.hidden.map(({ pid, reason }) => ({ pid, reason }));
  await Promise.all(clients.states.map(async ({ id, pid, command }) => {
    try {
      const snapshot = snapshotOf(await clients.request(id, "metrics"));
      if (snapshot === undefined) throw new Error("it runs another version of PML");
      snapshots.push(snapshot);
      processes.push({ pid, command });
    } catch (error) {
      hidden.push({ pid, reason: messageOf(error) });
    }
  }));
  return { processes, hidden, ...mergeSnapshots(snapshots) };
}

/**
 * Returns the metrics as text: a line for each count, and the distribution of durations. Shows a warning
 * for each process that is left out.
 */
function metricsText({ processes, hidden, families }: JoinedMetrics): string {
  for (const { pid, reason } of hidden) tell(`warning: process ${pid} is left out: ${reason}`);
  const names = processes.map(({ pid, command }) => `${command} (${pid})`).join(", ");
  const head = processes.length === 0
    ? "No PML runs now"
    : `${counted(processes.length, "running PML")}: ${names}`;
  const [single, labelled] = [families.filter(isSingle), families.filter((one) => !isSingle(one))];
  return [head, ...labelled.flatMap(linesOf), "", ...single.flatMap(lineOf)].join("\n");
}

/** Returns whether a family has one value without labels. */
function isSingle({ type, samples: [first, ...others] }: MetricFamily): boolean {
  return type !== "histogram" && first !== undefined && others.length === 0 &&
    Object.keys(first.labels).length === 0;
}

function lineOf(family: MetricFamily): readonly string[] {
  if (family.type === "histogram") return [];
  return family.samples.map(({ value }) => `${family.help}: ${amountOf(family.name, value)}`);
}

function linesOf(family: MetricFamily): readonly string[] {
  const rows = family.type === "histogram"
    ? family.samples.map((sample) =>
      [sample.labels, distributionText(sample, family.bounds)] as const
    )
    : family.samples.map(({ labels, value }) => [labels, amountOf(family.name, value)] as const);
  if (rows.length === 0) return [];
  const lines = rows.slice(0, LINES_MAX).map(([labels, text]) => `  ${labelPrefix(labels)}${text}`);
  const hiddenRows = rows.length - lines.length;
  return [
    "",
    family.help,
    ...lines,
    ...hiddenRows > 0 ? [`  and ${hiddenRows} more, with --json`] : [],
  ];
}

function labelPrefix(labels: Labels): string {
  const text = Object.values(labels).map((value) => visible(value, 60)).join(" ");
  return text === "" ? "" : `${text}: `;
}

function amountOf(name: string, value: number): string {
  return name.includes("bytes") ? `${(value / 1_048_576).toFixed(1)} MiB` : `${value}`;
}

/** Returns the number of durations, their mean, and an upper bound of 95% of them. */
function distributionText({ counts, sum }: HistogramSample, bounds: readonly number[]): string {
  const total = counts.reduce((all, count) => all + count, 0);
  if (total === 0) return "0";
  let remaining = Math.ceil(total * 0.95);
  const bucket = counts.findIndex((count) => (remaining -= count) <= 0);
  const bound = bounds[bucket];
  const limitText = bound === undefined
    ? `over ${durationText((bounds.at(-1) ?? 0) * 1_000)}`
    : `at most ${durationText(bound * 1_000)}`;
  return `${total}, ${(sum / total * 1_000).toFixed(1)} ms on average, 95% ${limitText}`;
}
