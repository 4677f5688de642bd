/**
 * Counts the starts of PML and the changes of its exposure in a file of the PML home. The counts
 * stay on this machine: `pml metrics` and `/metrics` show them.
 *
 * @module
 */

import { join } from "node:path";
import type { MetricFamily, ValueSample } from "./metric_families.ts";
import { sha256 } from "../core/hash.ts";
import { isObject } from "../core/json.ts";
import { readCache, writeCache } from "../io/cache_files.ts";
import { withLock } from "../io/private_files.ts";

/** A start of PML, or a change of its exposure. */
export interface Usage {
  /** The command that started; undefined if the exposure changed. */
  readonly start?: string;
  readonly workspace: string;
  /** The exposure now. */
  readonly exposure: string;
}

/** The content of the file. */
interface UsageCounts {
  readonly starts: Readonly<Record<string, number>>;
  /** How often the exposure changed, by the new exposure. */
  readonly changes: Readonly<Record<string, number>>;
  /** The last exposure by the hash of the workspace, the oldest first. */
  readonly exposures: Readonly<Record<string, string>>;
}

/** The maximum number of workspaces whose exposure is remembered. */
const WORKSPACES_MAX = 500;
/** The maximum length and number of names. PML does not read more: it never writes more. */
const [NAME_MAX, NAMES_MAX] = [40, 20];

/** Counts a start or a change. Other processes may do the same at the same time. */
export async function countUsage(home: string, usage: Usage): Promise<void> {
  const { start, workspace, exposure } = usage;
  await withLock(join(home, "usage.lock"), () => {
    const { starts, changes, exposures } = readCounts(home);
    const key = sha256(workspace).slice(0, 16);
    const { [key]: last, ...others } = exposures;
    const isChanged = last !== undefined && last !== exposure;
    const remembered = Object.entries(others).slice(1 - WORKSPACES_MAX);
    writeCache(fileIn(home), {
      version: 1,
      starts: start === undefined ? starts : incrementCount(starts, start),
      changes: isChanged ? incrementCount(changes, exposure) : changes,
      exposures: { ...Object.fromEntries(remembered), [key]: exposure },
    });
    return Promise.resolve();
  });
}

/** Returns the counts as metrics. */
export function usageFamilies(home: string): readonly MetricFamily[] {
  const { starts, changes } = readCounts(home);
  const samples = (counts: UsageCounts["starts"], label: string): readonly ValueSample[] =>
    Object.entries(counts).map(([name, value]) => ({ labels: { [label]: name }, value }));
  return [
    {
      ...{ name: "pml_starts_total", type: "counter" },
      help: "Starts of PML in this PML home, by command",
      samples: samples(starts, "command"),
    },
    {
      ...{ name: "pml_exposure_changes_total", type: "counter" },
      help: "Changes of the exposure, by the new one",
      samples: samples(changes, "exposure"),
    },
  ];
}

function incrementCount(counts: UsageCounts["starts"], name: string): Record<string, number> {
  return { ...counts, [name]: (counts[name] ?? 0) + 1 };
}

function readCounts(home: string): UsageCounts {
  const value = readCache(fileIn(home));
  const { starts, changes, exposures } = isObject(value)
    ? value
    : { starts: {}, changes: {}, exposures: {} };
  return {
    starts: numbersIn(starts),
    changes: numbersIn(changes),
    exposures: Object.fromEntries(
      entriesOf(exposures).flatMap(([key, exposure]) =>
        typeof exposure === "string" ? [[key, exposure]] : []
      ),
    ),
  };
}

function numbersIn(value: unknown): Record<string, number> {
  const numbers = entriesOf(value).filter(([, count]) => Number.isSafeInteger(count));
  return Object.fromEntries(numbers.slice(0, NAMES_MAX)) as Record<string, number>; // filtered above
}

function entriesOf(value: unknown): readonly (readonly [string, unknown])[] {
  if (!isObject(value)) return [];
  return Object.entries(value).filter(([name]) => name.length <= NAME_MAX);
}

function fileIn(home: string): string {
  return join(home, "usage.json");
}
