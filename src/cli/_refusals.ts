/**
 * Logs and records the refused requests of `pml serve`.
 *
 * @module
 */

import { messageOf } from "../core/errors.ts";
import type { App } from "../app/app.ts";
import type { JsonObject } from "../core/json.ts";
import { after } from "../io/waiting.ts";

/** How many refusals of a minute are recorded one by one, so that they cannot fill the journal. */
const [MOST, MINUTE] = [60, 60_000];

/** Records refused requests: each one, or the number of further ones in a minute. */
export class Refusals implements Disposable {
  readonly #app: App;
  #count = 0;
  #minute: Disposable | undefined;

  /** Takes the PML of the user. */
  constructor(app: App) {
    this.#app = app;
  }

  /** Records a refused request with its status and reason. */
  add(status: number, why: string): void {
    this.#minute ??= after(MINUTE, () => this[Symbol.dispose]());
    if (++this.#count <= MOST) this.#tell({ status, why });
  }

  /** Records the remaining ones. */
  [Symbol.dispose](): void {
    this.#minute?.[Symbol.dispose]();
    this.#minute = undefined;
    if (this.#count > MOST) this.#tell({ more: this.#count - MOST });
    this.#count = 0;
  }

  #tell(about: JsonObject): void {
    this.#app.log.info("Refused a request", about);
    // The sender is unknown.
    const record = this.#app.callPath().then((path) => path.record("request refused", { about }));
    record.catch((error) => this.#app.log.warn(messageOf(error)));
  }
}
