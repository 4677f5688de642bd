/**
 * Keeps outputs for a limited time: outputs of plans, so that failed tasks can be retried, and
 * large outputs, so that a model reads only the part that it needs.
 *
 * @module
 */

import type { ConfigOwner } from "../config/current_config.ts";
import { durationText } from "../core/amounts.ts";
import { PmlError } from "../core/errors.ts";
import { type Json, type JsonObject, quoted } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";

/** The call whose result is kept: rules that deny it now also deny reading its result. */
export interface KeptSource {
  readonly id: ToolId;
  readonly arguments: JsonObject;
}

/** The kept state of one run. */
export interface KeptRun {
  readonly id: string;
  readonly actor: string;
  /** The call of an output that was kept without a plan. */
  source?: KeptSource | undefined;
  /** The latest version of the plan. */
  plan: JsonObject;
  /** The hash of each task of the plan when it was done. */
  readonly hashes: Map<string, string>;
  /** The outputs by task, or by task and element: `task/3`. Undefined if one was too large. */
  readonly outputs: Map<string, Json | undefined>;
  /** The size of the plan and the outputs, in characters. */
  size: number;
  at: number;
  /** Whether a call ran. A refused plan is not kept. */
  hasBegun: boolean;
  /** Whether the run is active. An active run is not removed. */
  isBusy: boolean;
}

const LEAST_SIZE = 1_000;

/** Keeps outputs for each identity, with a limit of size and time. */
export class Results implements Disposable {
  readonly #runs = new Map<string, KeptRun>();
  readonly #policy: ConfigOwner<"limits">;
  readonly #now: () => number;
  readonly #isDenied: (source: KeptSource) => boolean;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Creates an empty store. `isDenied` returns whether the rules deny a call now. */
  constructor(
    policy: ConfigOwner<"limits">,
    now: () => number = Date.now,
    isDenied: (source: KeptSource) => boolean = () => false,
  ) {
    this.#policy = policy;
    this.#now = now;
    this.#isDenied = isDenied;
  }

  /** Starts a run with an unguessable id. Throws OVERLOADED if the size limit is reached. */
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
    // Small values take some memory, too.
    const size = jsonSize(plan) + LEAST_SIZE;
    if (!this.#hasRoom(size, actor)) throw full();
    run.size = size;
    this.#runs.set(run.id, run);
    return run;
  }

  /** Keeps an output. If it exceeds the size limit, only its existence is recorded. */
  keep(run: KeptRun, key: string, output: Json): void {
    const size = jsonSize(output);
    const hasRoom = this.#hasRoom(size, run.actor);
    run.outputs.set(key, hasRoom ? output : undefined);
    if (hasRoom) run.size += size;
  }

  /** Combines the outputs of the elements of a task into one array, the output of the task. */
  gather(run: KeptRun, task: string, keys: readonly string[]): void {
    const outputs = keys.map((key) => run.outputs.get(key));
    for (const key of keys) run.outputs.delete(key);
    const whole = outputs.filter((output) => output !== undefined);
    // The size of each output is already known.
    SIZES.set(whole, whole.reduce((sum: number, output) => sum + jsonSize(output) + 1, 1));
    run.outputs.set(task, whole.length === keys.length ? whole : undefined);
  }

  /** Ends a run. From now on it is kept for `limits.kept_ms`. */
  end(run: KeptRun): void {
    if (!this.#runs.has(run.id)) return;
    this.#runs.delete(run.id);
    if (!run.hasBegun) return;
    run.isBusy = false;
    run.at = this.#now();
    // The most recently used run is removed last.
    this.#runs.set(run.id, run);
    this.#watch();
  }

  /** Keeps one output without a plan. Returns its name; undefined if it exceeds the size limit. */
  put(actor: string, output: Json, source?: KeptSource): string | undefined {
    const args = source?.arguments ?? {};
    const size = jsonSize(output) + jsonSize(args) + LEAST_SIZE * 2;
    if (!this.#hasRoom(size, actor)) return undefined;
    const run = this.begin(actor, {});
    run.size += jsonSize(args);
    run.source = source;
    run.hasBegun = true;
    this.keep(run, SINGLE, output);
    this.end(run);
    return `${run.id}.${SINGLE}`;
  }

  /** Resumes a run of the same identity. Throws BAD_ARGUMENTS if it is active or not kept. */
  resume(id: string, actor: string): KeptRun {
    const run = this.#runOf(id, actor);
    // guard: plan-busy
    if (run.isBusy) {
      throw new PmlError(
        "BAD_ARGUMENTS",
        `Cannot resume the run ${quoted(id)}: it is still running`,
        {
          hint: "Wait for its answer",
        },
      );
    }
    run.isBusy = true;
    return run;
  }

  /**
   * Returns an output by its name, `RUN.TASK`. Throws BAD_ARGUMENTS if it is not kept, and
   * PERMISSION_DENIED if the rules deny its call now.
   */
  output(name: string, actor: string): Json {
    const dot = name.indexOf(".");
    const run = this.#runOf(name.slice(0, dot), actor);
    // guard: kept-denied
    if (run.source !== undefined && this.#isDenied(run.source)) throw denied(run.source);
    const output = run.outputs.get(name.slice(dot + 1));
    if (output !== undefined) return output;
    const has = [...run.outputs.keys()].slice(0, 20).map((key) => quoted(key)).join(", ");
    throw new PmlError(
      "BAD_ARGUMENTS",
      `Cannot find the output ${quoted(name)}: the run keeps ${has || "none"}`,
    );
  }

  /** Returns the call of an output that was kept without a plan; undefined for those of plans. */
  sourceOf(name: string, actor: string): KeptSource | undefined {
    return this.#runOf(name.slice(0, name.indexOf(".")), actor).source;
  }

  /** Removes all runs. */
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
      hint: `PML keeps results for ${durationText(keptMs)}. Send a plan with the remaining tasks`,
    });
  }

  /**
   * Returns whether a size fits, and removes the oldest finished runs of the identity for it. If
   * that is not enough, removes nothing.
   */
  #hasRoom(size: number, actor: string): boolean {
    const own = [...this.#runs.values()].filter((run) => run.actor === actor);
    let remaining = this.#policy.config.limits.keptBytes - size;
    for (const run of own) if (run.isBusy) remaining -= run.size;
    // guard: kept-bytes
    if (remaining < 0) return false;
    for (const run of own.reverse()) {
      if (!run.isBusy && (remaining -= run.size) < 0) this.#runs.delete(run.id);
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

  /** Schedules the removal of expired runs, so that memory is freed without further requests. */
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

/** The task name of an output without a plan. */
const SINGLE = "result";

/** The sizes of arrays and objects. Measuring a large one is slow, and outputs do not change. */
const SIZES = new WeakMap<object, number>();

/** Returns the size of a value as JSON, in characters. Escapes of a plain text do not count. */
export function jsonSize(value: Json): number {
  if (typeof value !== "object" || value === null) return String(value).length + 2;
  const size = SIZES.get(value) ?? JSON.stringify(value).length;
  SIZES.set(value, size);
  return size;
}

function denied({ id }: KeptSource): PmlError {
  return new PmlError(
    "PERMISSION_DENIED",
    `Cannot read the result of ${quoted(id)}: a rule denies the tool now`,
    { hint: "Do not try again" },
  );
}

function full(): PmlError {
  return new PmlError(
    "OVERLOADED",
    "Cannot start the run: kept outputs would exceed limits.kept_bytes",
    {
      hint: "Wait for other runs to end, or raise limits.kept_bytes in config.yaml",
    },
  );
}

function newId(): string {
  // 60 bits in 12 characters.
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => "abcdefghijklmnopqrstuvwxyz234567"[byte % 32]).join("");
}
