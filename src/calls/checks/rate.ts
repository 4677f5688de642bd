/**
 * Limits how many calls an identity makes in some time.
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

/** The calls of one rate, in their order. */
type Counted = { readonly callId: string; readonly at: number }[];

/** Returns a check that limits how many calls an identity makes in some time. */
export function withinRate(policy: Pick<Policy, "now">): Check {
  const rates = new Rates();
  return (call) => {
    const identity = policy.now.config.narrowing?.identity;
    if (identity !== undefined) rates.take(identity, call);
    return undefined;
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

/** The checks of a call begin again soon or never. */
const RECENT = 256;

function isIn(times: Counted, callId: string): boolean {
  return times.slice(-RECENT).some((one) => one.callId === callId);
}
