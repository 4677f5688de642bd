/**
 * Runs the probes in each way with each revision, and compares the results with those of the direct
 * connection.
 *
 * @module
 */

import { type Era, ERAS } from "../../tests/kit/json_rpc.ts";
import { messageOf } from "./connection.ts";
import { ProbePeer, type Way, WAYS } from "./probe_peer.ts";
import { type Exception, type Probe, PROBES } from "./probes.ts";

/** The result of one probe in one way. */
export interface ProbeCell {
  readonly era: Era;
  readonly way: Way;
  /** The value, as JSON; undefined if there is none. */
  readonly value: string | undefined;
  readonly state: "direct" | "same" | "explained" | "differs";
  /** The reason for the difference. */
  readonly exception?: Exception;
}

/** The results of one probe. */
export interface ProbeRow {
  readonly name: string;
  readonly cells: readonly ProbeCell[];
}

/** How long a probe may take, in milliseconds. */
const PROBE_MS = 45_000;

/** Runs the probes with the names in `only`; by default all. */
export async function runProbes(
  { only, onStep }: {
    readonly only?: readonly string[] | undefined;
    readonly onStep: (text: string) => void;
  },
): Promise<readonly ProbeRow[]> {
  const chosen = PROBES.filter(({ name }) => only?.includes(name) ?? true);
  const cells = new Map<string, ProbeCell[]>(chosen.map(({ name }) => [name, []]));
  for (const era of ERAS) {
    const direct = new Map<string, string | undefined>();
    for (const way of WAYS) {
      onStep(`probes: ${era}, ${way}`);
      await using peer = await ProbePeer.open(way, era);
      for (const probe of chosen) {
        const value = await valueOf(probe, peer);
        direct.set(probe.name, way === "direct" ? value : direct.get(probe.name));
        cells.get(probe.name)?.push(
          cellOf(probe, { era, way, value, direct: direct.get(probe.name) }),
        );
      }
    }
  }
  return chosen.map(({ name }) => ({ name, cells: cells.get(name) ?? [] }));
}

async function valueOf({ run }: Probe, peer: ProbePeer): Promise<string | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("no result in time")), PROBE_MS);
  });
  try {
    return sortedJson(await Promise.race([run(peer), timeout]));
  } catch (error) {
    return JSON.stringify({ failed: messageOf(error) });
  } finally {
    clearTimeout(timer);
  }
}

/** Compares a value with the value of the direct connection (`direct`). */
export function cellOf(
  { exceptions = [] }: Pick<Probe, "exceptions">,
  { direct, ...result }: Pick<ProbeCell, "era" | "way" | "value"> & {
    readonly direct: string | undefined;
  },
): ProbeCell {
  const { era, way, value } = result;
  if (way === "direct") return { ...result, state: "direct" };
  if (value === direct) return { ...result, state: "same" };
  const reason = exceptions.find((exception) =>
    (exception.ways?.includes(way) ?? true) && (exception.era ?? era) === era
  );
  return reason === undefined
    ? { ...result, state: "differs" }
    : { ...result, state: "explained", exception: reason };
}

/** Returns a value as JSON with sorted members. */
function sortedJson(value: unknown): string | undefined {
  return JSON.stringify(
    value,
    (_, member) =>
      typeof member === "object" && member !== null && !Array.isArray(member)
        ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => a < b ? -1 : 1))
        : member,
  );
}
