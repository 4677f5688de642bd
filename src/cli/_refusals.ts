/**
 * Logs and records the refused requests of `pml serve`.
 *
 * @module
 */

import { messageOf } from "../core/errors.ts";
import type { App } from "../app/app.ts";
import type { JsonObject } from "../core/json.ts";
import { callAfter } from "../io/waiting.ts";

/** The maximum number of refusals per minute with their own records. More could fill the journal. */
const [RECORDED_MAX, MINUTE_MS] = [60, 60_000];

/** Records refused requests: each one, or the number of further ones in a minute. */
export class Refusals implements Disposable {
  readonly #app: App;
  #count = 0;
  #minute: Disposable | undefined;

  /** Records to the journal of this PML. */
  constructor(app: App) {
    this.#app = app;
  }

  /** Records a refused request with its status and reason. */
  add(status: number, why: string): void {
    this.#minute ??= callAfter(MINUTE_MS, () => this[Symbol.dispose]());
    if (++this.#count <= RECORDED_MAX) this.#record({ status, why });
  }

  /** Records how many requests were refused beyond the limit. */
  [Symbol.dispose](): void {
    this.#minute?.[Symbol.dispose]();
    this.#minute = undefined;
    if (this.#count > RECORDED_MAX) this.#record({ more: this.#count - RECORDED_MAX });
    this.#count = 0;
  }

  #record(about: JsonObject): void {
    this.#app.log.info("Refused a request", about);
    // The record names no actor, because the sender of a refused request is unknown.
    const record = this.#app.callPath().then((path) => path.record("request refused", { about }));
    record.catch((error) => this.#app.log.warn(messageOf(error)));
  }
}
