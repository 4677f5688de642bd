/**
 * Counts the use of sampling: requests in the last minute, and tokens and money of the day. All
 * processes share one file in the PML home.
 *
 * @module
 */

import { join } from "node:path";
import type { SamplingSettings } from "../config/sampling.ts";
import { PmlError } from "../core/errors.ts";
import { boundedJson } from "../core/json_bounds.ts";
import { objectOf, quoted } from "../core/json.ts";
import { readPlain, withLock, writePrivate } from "../io/private_files.ts";
import type { Usage } from "./_wire.ts";

/** The use of one day. */
export interface DailyUse {
  readonly tokens: number;
  readonly money: number;
}

interface StoredUse extends DailyUse {
  /** The day, in UTC. */
  readonly day: string;
  /** Start times of the requests in the last minute, in milliseconds since the epoch. */
  readonly recent: readonly number[];
}

const MINUTE = 60_000;
const FILE = "sampling.json";

/** Counts requests, tokens and money, and enforces their limits. */
export class SamplingBudget {
  readonly #path: string;

  /** Creates a budget in the PML home. Reads nothing yet. */
  constructor(home: string) {
    this.#path = join(home, FILE);
  }

  /** Counts a request. Throws OVERLOADED if the last minute had too many requests. */
  async countRequest({ requestsPerMinute: most }: SamplingSettings): Promise<void> {
    await this.#change((use) => {
      // guard: sampling-minute
      if (use.recent.length >= most) {
        const why = `${most} requests were made in the last minute`;
        throw limitError(why, "requests_per_minute", "wait a minute");
      }
      return { ...use, recent: [...use.recent, Date.now()] };
    });
  }

  /**
   * Reserves `most`, the maximum that a request may use, before the request is sent. Throws
   * OVERLOADED if less is left for today. If the process dies before `settle()`, the reservation
   * stays counted.
   */
  async reserve(most: Usage, settings: SamplingSettings): Promise<void> {
    const { tokensPerDay, moneyPerDay = Infinity } = settings;
    const tokens = most.input + most.output;
    const money = moneyOf(most, settings);
    await this.#change((use) => {
      // guard: sampling-day
      if (use.tokens + tokens > tokensPerDay) {
        const why = `${use.tokens} of ${tokensPerDay} tokens of today are used, and this may ` +
          `take ${tokens}`;
        throw limitError(why, "tokens_per_day", MIDNIGHT);
      }
      // guard: sampling-money
      if (use.money + money > moneyPerDay) {
        const why = `${shownMoney(use.money)} of ${shownMoney(moneyPerDay)} of today is spent, ` +
          `and this may cost ${shownMoney(money)}`;
        throw limitError(why, "money_per_day", MIDNIGHT);
      }
      return { ...use, tokens: use.tokens + tokens, money: use.money + money };
    });
  }

  /** Replaces a reservation by the actual use. */
  async settle(
    used: Usage,
    { most, settings }: { readonly most: Usage; readonly settings: SamplingSettings },
  ): Promise<void> {
    const tokens = used.input + used.output - most.input - most.output;
    const money = moneyOf(used, settings) - moneyOf(most, settings);
    // If a new day has begun since the reservation, its use does not include the reservation.
    await this.#change((use) => ({
      ...use,
      tokens: Math.max(use.tokens + tokens, 0),
      money: Math.max(use.money + money, 0),
    }));
  }

  /** Returns the use of today. */
  today(): DailyUse {
    return this.#read();
  }

  async #change(change: (use: StoredUse) => StoredUse): Promise<void> {
    await withLock(`${this.#path}.lock`, async () => {
      await writePrivate(this.#path, change(this.#read()));
    });
  }

  #read(): StoredUse {
    const now = Date.now();
    const day = new Date(now).toISOString().slice(0, 10);
    const plain = readPlain(this.#path);
    const storedUse = plain === undefined ? undefined : parseUse(plain.bytes);
    if (plain !== undefined && storedUse === undefined) throw unreadableError(this.#path);
    const recent = (storedUse?.recent ?? []).filter((at) => Math.abs(now - at) < MINUTE);
    if (storedUse?.day !== day) return { day, recent, tokens: 0, money: 0 };
    return { ...storedUse, recent };
  }
}

/** Returns the cost of tokens; 0 without prices. */
export function moneyOf({ input, output }: Usage, { prices }: SamplingSettings): number {
  return prices === undefined ? 0 : (input * prices.input + output * prices.output) / 1e6;
}

/** Formats an amount of money for users. */
export function shownMoney(money: number): string {
  return money === 0 || money >= 1 ? money.toFixed(2) : money.toPrecision(2);
}

const MIDNIGHT = "wait until midnight (UTC)";

function limitError(why: string, name: string, wait: string): PmlError {
  return new PmlError("OVERLOADED", `Cannot sample: ${why} (sampling.${name})`, {
    hint: `Raise sampling.${name} in config.yaml, or ${wait}`,
    detail: { cap: name },
  });
}

function unreadableError(path: string): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot sample: ${quoted(path, 400)} cannot be read`, {
    hint: "The file counts the use of today; remove it to start from zero",
  });
}

function parseUse(bytes: Uint8Array): StoredUse | undefined {
  const { day, tokens, money, recent } = objectOf(boundedJson(bytes));
  const isValid = typeof day === "string" && isAmount(tokens) && isAmount(money) &&
    Array.isArray(recent) && recent.every(isAmount);
  return isValid ? { day, tokens, money, recent } as StoredUse : undefined; // every member was checked
}

function isAmount(value: unknown): boolean {
  return typeof value === "number" && value >= 0;
}
