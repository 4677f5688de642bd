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

/** The call whose result is kept. Rules that deny the call now also deny reading its result. */
export interface ResultSource {
  readonly id: ToolId;
  readonly arguments: JsonObject;
}

/** The stored state of one run. */
export interface StoredRun {
  readonly id: string;
  readonly actor: string;
  /** The call of an output that was kept without a plan. */
  source?: ResultSource | undefined;
  /** The latest version of the plan. */
  plan: JsonObject;
  /** The hashes of the tasks that are done, by their ids. */
  readonly hashes: Map<string, string>;
  /**
   * The outputs by task, or by task and element: `task/3`. Undefined if an output was too large.
   */
  readonly outputs: Map<string, Json | undefined>;
  /** The size of the plan and the outputs, in characters. */
  size: number;
  /** The end of the run, in milliseconds since the epoch. Before the end, the begin of the run. */
  endedAt: number;
  /** Whether the run began. A run whose plan was refused before is not kept. */
  hasBegun: boolean;
  /** Whether the run is active. An active run is not removed. */
  isBusy: boolean;
}

/** The minimum size that each run and each kept output is counted with, in characters. */
const SIZE_MIN = 1_000;

/** Keeps outputs for each identity, with a limit of size and time. */
export class Results implements Disposable {
  readonly #runs = new Map<string, StoredRun>();
  readonly #policy: ConfigOwner<"limits">;
  readonly #now: () => number;
  readonly #isDenied: (source: ResultSource) => boolean;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Creates an empty store. `isDenied` returns whether the rules deny a call now. */
  constructor(
    policy: ConfigOwner<"limits">,
    now: () => number = Date.now,
    isDenied: (source: ResultSource) => boolean = () => false,
  ) {
    this.#policy = policy;
    this.#now = now;
    this.#isDenied = isDenied;
  }

  /** Starts a run with an unguessable id. Throws OVERLOADED if the size limit is reached. */
  begin(actor: string, plan: JsonObject): StoredRun {
    this.#sweep();
    const run: StoredRun = {
      id: newId(),
      actor,
      plan,
      hashes: new Map(),
      outputs: new Map(),
      size: 0,
      endedAt: this.#now(),
      hasBegun: false,
      isBusy: true,
    };
    // Small values need some memory, too.
    const size = jsonSize(plan) + SIZE_MIN;
    if (!this.#reserve(size, actor)) throw storeFullError();
    run.size = size;
    this.#runs.set(run.id, run);
    return run;
  }

  /** Keeps an output. If it exceeds the size limit, only its existence is recorded. */
  keep(run: StoredRun, key: string, output: Json): void {
    const size = jsonSize(output);
    const isReserved = this.#reserve(size, run.actor);
    run.outputs.set(key, isReserved ? output : undefined);
    if (isReserved) run.size += size;
  }

  /** Combines the outputs of the elements of a task into one array, the output of the task. */
  gather(run: StoredRun, task: string, keys: readonly string[]): void {
    const outputs = keys.map((key) => run.outputs.get(key));
    for (const key of keys) run.outputs.delete(key);
    const whole = outputs.filter((output) => output !== undefined);
    // The size of each output is already known.
    SIZES.set(whole, whole.reduce((sum: number, output) => sum + jsonSize(output) + 1, 1));
    run.outputs.set(task, whole.length === keys.length ? whole : undefined);
  }

  /** Ends a run. If the run began, it is kept for `limits.kept_ms` from now on. */
  end(run: StoredRun): void {
    if (!this.#runs.has(run.id)) return;
    this.#runs.delete(run.id);
    if (!run.hasBegun) return;
    run.isBusy = false;
    run.endedAt = this.#now();
    // The most recently used run is removed last.
    this.#runs.set(run.id, run);
    this.#scheduleSweep();
  }

  /** Keeps one output without a plan. Returns its name; undefined if it exceeds the size limit. */
  put(actor: string, output: Json, source?: ResultSource): string | undefined {
    const args = source?.arguments ?? {};
    const size = jsonSize(output) + jsonSize(args) + SIZE_MIN * 2;
    if (!this.#reserve(size, actor)) return undefined;
    const run = this.begin(actor, {});
    run.size += jsonSize(args);
    run.source = source;
    run.hasBegun = true;
    this.keep(run, SINGLE, output);
    this.end(run);
    return `${run.id}.${SINGLE}`;
  }

  /** Resumes a run of the same identity. Throws BAD_ARGUMENTS if it is active or not kept. */
  resume(id: string, actor: string): StoredRun {
    const run = this.#findRun(id, actor);
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
    const run = this.#findRun(name.slice(0, dot), actor, name);
    // guard: kept-denied
    if (run.source !== undefined && this.#isDenied(run.source)) throw deniedError(run.source);
    const output = run.outputs.get(name.slice(dot + 1));
    if (output !== undefined) return output;
    const keys = [...run.outputs.keys()].slice(0, 20).map((key) => quoted(key)).join(", ");
    throw new PmlError(
      "BAD_ARGUMENTS",
      `Cannot find the output ${quoted(name)}: the run keeps ${keys || "none"}`,
    );
  }

  /** Returns the call of an output that was kept without a plan; undefined for outputs of plans. */
  sourceOf(name: string, actor: string): ResultSource | undefined {
    return this.#findRun(name.slice(0, name.indexOf(".")), actor, name).source;
  }

  /** Removes all runs. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#runs.clear();
  }

  /** Returns a run. `output` is the name of the output for which the caller needs the run. */
  #findRun(id: string, actor: string, output?: string): StoredRun {
    this.#sweep();
    const run = this.#runs.get(id);
    // guard: kept-identity
    if (run?.actor === actor) return run;
    const { keptMs } = this.#policy.config.limits;
    const [what, next] = output === undefined
      ? [`run ${quoted(id)}`, "Send a plan with the remaining tasks"]
      : [`result ${quoted(output)}`, "If its call only reads, make the call again"];
    throw new PmlError("BAD_ARGUMENTS", `Cannot find the ${what}: it is not kept`, {
      hint: `PML keeps results for ${durationText(keptMs)}. ${next}`,
    });
  }

  /**
   * Removes the oldest finished runs of the identity until `size` more characters fit. If they
   * cannot fit, removes nothing and returns false.
   */
  #reserve(size: number, actor: string): boolean {
    const ownRuns = [...this.#runs.values()].filter((run) => run.actor === actor);
    let remaining = this.#policy.config.limits.keptBytes - size;
    for (const run of ownRuns) if (run.isBusy) remaining -= run.size;
    // guard: kept-bytes
    if (remaining < 0) return false;
    for (const run of ownRuns.reverse()) {
      if (!run.isBusy && (remaining -= run.size) < 0) this.#runs.delete(run.id);
    }
    return true;
  }

  #sweep(): void {
    const { keptMs } = this.#policy.config.limits;
    const now = this.#now();
    for (const run of this.#runs.values()) {
      if (!run.isBusy && run.endedAt + keptMs <= now) this.#runs.delete(run.id);
    }
  }

  /** Schedules the removal of expired runs, so that memory is freed without further requests. */
  #scheduleSweep(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#sweep();
      if (this.#runs.size > 0) this.#scheduleSweep();
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

function deniedError({ id }: ResultSource): PmlError {
  return new PmlError(
    "PERMISSION_DENIED",
    `Cannot read the result of ${quoted(id)}: a rule denies the tool now`,
    { hint: "Do not try again" },
  );
}

function storeFullError(): PmlError {
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
