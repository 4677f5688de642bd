/**
 * Limits how many calls an identity makes in a period.
 *
 * @module
 */

import type { Rate } from "../../config/current_config.ts";
import type { Identity } from "../../config/current_config.ts";
import type { Call } from "../../protocol/call.ts";
import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import { matches } from "../../core/pattern.ts";
import type { Policy } from "../../policy/policy.ts";
import type { Check } from "./check.ts";

/** The calls that count for one rate, the oldest first. */
type CountedCalls = { readonly callId: string; readonly countedAt: number }[];

/** Returns a check that throws OVERLOADED if an identity has used up one of its rates. */
export function withinRate(policy: Pick<Policy, "now">): Check {
  const rates = new Rates();
  return (call) => {
    const identity = policy.now.config.restrictions?.identity;
    if (identity !== undefined) rates.count(identity, call);
    return undefined;
  };
}

/** Counts the calls of an identity. */
export class Rates {
  readonly #counted = new Map<string, CountedCalls>();

  /** Counts a call once. Throws OVERLOADED if a rate of the identity is used up. */
  count(
    { name, rates }: Identity,
    { id, callId }: Pick<Call, "id" | "callId">,
    now = performance.now(),
  ): void {
    const matching = rates.filter(({ pattern }) => matches(pattern, id));
    for (const rate of matching) {
      const times = this.#callsOf(rate, now);
      const [oldest] = times;
      const isCounted = isCountedIn(times, callId);
      if (oldest === undefined || isCounted || times.length < rate.calls) continue;
      const seconds = Math.ceil((oldest.countedAt + rate.ms - now) / 1_000);
      const why = `${quoted(name)} has used up its rate ${rate.text} for ${rate.pattern.text}`;
      throw new PmlError("OVERLOADED", `Cannot run ${quoted(id)}: ${why}`, {
        hint: `Try again in ${seconds} s`,
        detail: { retry_after_s: seconds },
      });
    }
    for (const rate of matching) {
      const times = this.#callsOf(rate, now);
      // The checks of a call can restart, and then count the same call again.
      if (!isCountedIn(times, callId)) times.push({ callId, countedAt: now });
    }
  }

  /** Returns the calls that count for a rate now. Drops calls that are too old. */
  #callsOf({ pattern, ms, calls }: Rate, now: number): CountedCalls {
    const key = `${pattern.text} ${calls} ${ms}`;
    const times = this.#counted.get(key) ?? [];
    this.#counted.set(key, times);
    while (times[0] !== undefined && times[0].countedAt <= now - ms) times.shift();
    return times;
  }
}

/**
 * How many of the latest calls are searched for a call whose checks restarted. Checks restart soon,
 * so few other calls are counted in between.
 */
const SEARCHED_CALLS_MAX = 256;

function isCountedIn(times: CountedCalls, callId: string): boolean {
  return times.slice(-SEARCHED_CALLS_MAX).some((call) => call.callId === callId);
}
