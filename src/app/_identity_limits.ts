/**
 * What an identity may do less than the person: so many calls in some time, and nothing of what is
 * denied to it.
 *
 * @module
 */

import type { Identity, Rate } from "../config/identities.ts";
import type { Call } from "../core/call.ts";
import type { PassGate } from "../core/server.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { matches } from "../core/pattern.ts";
import { unknownTool } from "../gateway/unknown_tool.ts";
import { judged } from "../permissions/gate.ts";
import type { CallPathOptions } from "./call_path.ts";

/** The calls of one rate, in their order. */
type Counted = { readonly callId: string; readonly at: number }[];

/** Lets an identity make so many calls in some time. */
export function rateGate(identity: () => Identity | undefined): PassGate {
  const rates = new Rates();
  return (next) => async (call) => {
    const now = identity();
    if (now !== undefined) rates.take(now, call);
    return await next(call);
  };
}

/** Counts the calls of an identity. */
export class Rates {
  readonly #counted = new Map<string, Counted>();

  /** Counts a call once. Throws OVERLOADED if a rate of the identity is used up. */
  take(
    { name, rates }: Identity,
    { id, callId }: Pick<Call, "id" | "callId">,
    now = performance.now(),
  ): void {
    const hit = rates.filter(({ pattern }) => matches(pattern, id));
    for (const rate of hit) {
      const times = this.#timesOf(rate, now);
      const [oldest] = times;
      const isCounted = isIn(times, callId);
      if (oldest === undefined || isCounted || times.length < rate.calls) continue;
      const seconds = Math.ceil((oldest.at + rate.ms - now) / 1_000);
      const why = `${quoted(name)} has made its ${rate.calls} calls of ${rate.pattern.text}`;
      throw new PmlError("OVERLOADED", `Cannot run ${quoted(id)}: ${why}`, {
        hint: `Try again in ${seconds} s`,
        detail: { retry_after_s: seconds },
      });
    }
    for (const rate of hit) {
      const times = this.#timesOf(rate, now);
      // A pass may begin again.
      if (!isIn(times, callId)) times.push({ callId, at: now });
    }
  }

  #timesOf({ pattern, ms, calls }: Rate, now: number): Counted {
    const key = `${pattern.text} ${calls} ${ms}`;
    const times = this.#counted.get(key) ?? [];
    this.#counted.set(key, times);
    while (times[0] !== undefined && times[0].at <= now - ms) times.shift();
    return times;
  }
}

/** Has a denied tool answer like an unknown one, if an identity calls it or has it looked at. */
export function hidingDenied<T>(
  does: (call: Call) => Promise<T>,
  { policy, servers }: Pick<CallPathOptions, "policy" | "servers">,
): (call: Call) => Promise<T> {
  return async (call) => {
    try {
      return await does(call);
    } catch (error) {
      const { config, judge } = policy.now;
      const hides = error instanceof PmlError && error.code === "PERMISSION_DENIED" &&
        config.narrowing?.identity !== undefined && judged(judge, call).kind === "deny";
      throw hides ? unknownTool(call.id, servers) : error;
    }
  };
}

/** A pass begins again soon or never. */
const RECENT = 256;

function isIn(times: Counted, callId: string): boolean {
  return times.slice(-RECENT).some((one) => one.callId === callId);
}
