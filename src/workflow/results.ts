/**
 * Outputs that stay outside of answers for a while: those of plans, so that what failed can be
 * retried, and large ones, so that a model reads only the part that it needs.
 *
 * @module
 */

import type { ConfigOwner } from "../config/current_config.ts";
import { PmlError } from "../core/errors.ts";
import { type Json, type JsonObject, quoted } from "../core/json.ts";

/** What is kept of one run. */
export interface KeptRun {
  readonly id: string;
  readonly actor: string;
  /** The plan as it was given last. */
  plan: JsonObject;
  /** The hash of each task of the plan when it was done. */
  readonly hashes: Map<string, string>;
  /** The outputs by task, or by task and element: `task/3`. Undefined if one was too large. */
  readonly outputs: Map<string, Json | undefined>;
  /** The size of all of it, in characters. */
  size: number;
  at: number;
  /** Whether any of it ran. A plan that was refused is not kept. */
  hasBegun: boolean;
  /** Whether it is under way. Then it is not removed. */
  isBusy: boolean;
}

const LEAST_SIZE = 1_000;

/** Keeps outputs for each identity, up to a size and for a time. */
export class Results implements Disposable {
  readonly #runs = new Map<string, KeptRun>();
  readonly #policy: ConfigOwner<"limits">;
  readonly #now: () => number;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Keeps nothing yet. */
  constructor(policy: ConfigOwner<"limits">, now: () => number = Date.now) {
    this.#policy = policy;
    this.#now = now;
  }

  /** Begins a run with an id that nobody can guess. Throws OVERLOADED if there is no room. */
  begin(actor: string, plan: JsonObject): KeptRun {
    this.#sweep();
    const run: KeptRun = {
      id: newId(),
      actor,
      plan,
      hashes: new Map(),
      outputs: new Map(),
      size: 0,
      at: this.#now(),
      hasBegun: false,
      isBusy: true,
    };
    // Also what is small takes some memory.
    const size = sizeOf(plan) + LEAST_SIZE;
    if (!this.#hasRoom(size, actor)) throw full();
    run.size = size;
    this.#runs.set(run.id, run);
    return run;
  }

  /** Keeps an output. One for which there is no room is known to be there, and no more. */
  keep(run: KeptRun, key: string, output: Json): void {
    const size = sizeOf(output);
    const hasRoom = this.#hasRoom(size, run.actor);
    run.outputs.set(key, hasRoom ? output : undefined);
    if (hasRoom) run.size += size;
  }

  /** Puts the outputs of the elements of a task into one array, which is the output of the task. */
  gather(run: KeptRun, task: string, keys: readonly string[]): void {
    const outputs = keys.map((key) => run.outputs.get(key));
    for (const key of keys) run.outputs.delete(key);
    const whole = outputs.filter((output) => output !== undefined);
    // Each is measured already.
    SIZES.set(whole, whole.reduce((sum: number, output) => sum + sizeOf(output) + 1, 1));
    run.outputs.set(task, whole.length === keys.length ? whole : undefined);
  }

  /** Ends a run: from now on it is kept for the time that results are. */
  end(run: KeptRun): void {
    if (!this.#runs.has(run.id)) return;
    this.#runs.delete(run.id);
    if (!run.hasBegun) return;
    run.isBusy = false;
    run.at = this.#now();
    // What was used last is removed last.
    this.#runs.set(run.id, run);
    this.#watch();
  }

  /** Keeps one output that belongs to no plan. Returns its name; undefined if there is no room. */
  put(actor: string, output: Json): string | undefined {
    if (!this.#hasRoom(sizeOf(output) + LEAST_SIZE * 2, actor)) return undefined;
    const run = this.begin(actor, {});
    run.hasBegun = true;
    this.keep(run, SINGLE, output);
    this.end(run);
    return `${run.id}.${SINGLE}`;
  }

  /** Takes up a run again, of the same identity. Throws BAD_ARGUMENTS if that cannot be done. */
  resume(id: string, actor: string): KeptRun {
    const run = this.#runOf(id, actor);
    // guard: plan-busy
    if (run.isBusy) {
      throw new PmlError("BAD_ARGUMENTS", `Cannot resume the run ${quoted(id)}: it is under way`, {
        hint: "Wait for its answer",
      });
    }
    run.isBusy = true;
    return run;
  }

  /** Returns an output by its name, `RUN.TASK`. Throws BAD_ARGUMENTS if it is not kept. */
  output(name: string, actor: string): Json {
    const dot = name.indexOf(".");
    const run = this.#runOf(name.slice(0, dot), actor);
    const output = run.outputs.get(name.slice(dot + 1));
    if (output !== undefined) return output;
    const has = [...run.outputs.keys()].slice(0, 20).map((key) => quoted(key)).join(", ");
    throw new PmlError(
      "BAD_ARGUMENTS",
      `Cannot find the output ${quoted(name)}: the run keeps ${has || "none"}`,
    );
  }

  /** Forgets everything. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#runs.clear();
  }

  #runOf(id: string, actor: string): KeptRun {
    this.#sweep();
    const run = this.#runs.get(id);
    // guard: kept-identity
    if (run?.actor === actor) return run;
    const { keptMs } = this.#policy.config.limits;
    throw new PmlError("BAD_ARGUMENTS", `Cannot find the run ${quoted(id)}: it is not kept`, {
      hint: `Results are kept for ${keptMs / 60_000} minutes. Send a plan of the rest`,
    });
  }

  /**
   * Makes room by removing the oldest runs of an identity that are over. Nothing is removed for what
   * has no room even then.
   */
  #hasRoom(size: number, actor: string): boolean {
    const own = [...this.#runs.values()].filter((run) => run.actor === actor);
    let left = this.#policy.config.limits.keptBytes - size;
    for (const run of own) if (run.isBusy) left -= run.size;
    // guard: kept-bytes
    if (left < 0) return false;
    for (const run of own.reverse()) {
      if (!run.isBusy && (left -= run.size) < 0) this.#runs.delete(run.id);
    }
    return true;
  }

  #sweep(): void {
    const { keptMs } = this.#policy.config.limits;
    const now = this.#now();
    for (const run of this.#runs.values()) {
      if (!run.isBusy && run.at + keptMs <= now) this.#runs.delete(run.id);
    }
  }

  /** Frees the memory also if nobody asks any more. */
  #watch(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#sweep();
      if (this.#runs.size > 0) this.#watch();
    }, this.#policy.config.limits.keptMs);
    Deno.unrefTimer(this.#timer);
  }
}

/** The name of an output that belongs to no plan. */
const SINGLE = "result";

/** The sizes of arrays and objects: to measure a large one takes long. Outputs do not change. */
const SIZES = new WeakMap<object, number>();

/** Returns how large a value is as JSON, in characters. Escapes of a plain text are not counted. */
export function sizeOf(value: Json): number {
  if (typeof value !== "object" || value === null) return String(value).length + 2;
  const size = SIZES.get(value) ?? JSON.stringify(value).length;
  SIZES.set(value, size);
  return size;
}

function full(): PmlError {
  return new PmlError("OVERLOADED", "Cannot begin the run: limits.kept_bytes has no room for it", {
    hint: "Wait for the answers of other runs, or raise it in config.yaml",
  });
}

function newId(): string {
  // 60 bits in 12 characters.
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => "abcdefghijklmnopqrstuvwxyz234567"[byte % 32]).join("");
}
