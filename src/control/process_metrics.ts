/**
 * The metrics of a process: the counts of each PML in it, and the present values of gauges.
 *
 * @module
 */

import {
  mergeSnapshots,
  type MetricFamily,
  type MetricsSnapshot,
} from "../audit/metric_families.ts";
import type { App } from "../app/app.ts";
import { usageFamilies } from "../audit/usage_counts.ts";

/** Returns the metrics of a process. `apps` are the PMLs of its owner and of identities. */
export async function processMetrics(apps: readonly App[]): Promise<MetricsSnapshot> {
  const { rss } = Deno.memoryUsage();
  return mergeSnapshots([
    { families: [gauge("pml_processes", "Running PMLs", 1)] },
    { families: [memory("pml", rss)] },
    ...await Promise.all(apps.map(appMetrics)),
  ]);
}

/** Returns the metrics of a PML home, which all its processes share. */
export async function homeMetrics(app: App): Promise<MetricsSnapshot> {
  const waiting = await (await app.callPath()).approvals.pendingApprovals();
  return {
    families: [
      gauge("pml_approvals_waiting", "Calls that wait for `pml approve`", waiting.length),
      ...usageFamilies(app.config().home),
    ],
  };
}

async function appMetrics(app: App): Promise<MetricsSnapshot> {
  const { machine: { groups }, load } = await app.callPath();
  const use = await groups.usage();
  const states = new Map<string, number>();
  for (const { state } of app.servers.states()) states.set(state, (states.get(state) ?? 0) + 1);
  return {
    families: [
      ...[app.metrics, ...app.endedMetrics].flatMap((metrics) => metrics.families()),
      gauge("pml_calls_running", "Calls that run", load.running),
      gauge("pml_calls_queued", "Calls that wait for their turn", load.queued),
      gauge("pml_answer_bytes_queued", "Bytes of answers that wait for clients", app.backlog.size),
      {
        ...{ name: "pml_servers", type: "gauge", help: "Servers by state" },
        samples: [...states].map(([state, value]) => ({ labels: { state }, value })),
      },
      gauge("pml_children", "Programs and sandboxes that PML started", groups.size),
      ...(use === undefined ? [] : [
        memory("children", use.bytes),
        gauge("pml_child_processes", "Processes of these programs and sandboxes", use.processes),
      ]),
    ],
  };
}

function gauge(name: string, help: string, value: number): MetricFamily {
  return { name, help, type: "gauge", samples: [{ labels: {}, value }] };
}

function memory(of: string, value: number): MetricFamily {
  const help = "Resident memory of PML and of the processes that it started";
  return { name: "pml_memory_bytes", help, type: "gauge", samples: [{ labels: { of }, value }] };
}
