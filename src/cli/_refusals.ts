/**
 * Has the log and the journal of `pml serve` tell of refused requests.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { JsonObject } from "../core/json.ts";
import { after } from "../io/waiting.ts";

/** How many refusals of a minute are told of one by one. Otherwise they would fill the journal. */
const [MOST, MINUTE] = [60, 60_000];

/** Tells of refused requests: of each, or of how many more there were in a minute. */
export class Refusals implements Disposable {
  readonly #app: App;
  #count = 0;
  #minute: Disposable | undefined;

  /** Takes the PML of the person. */
  constructor(app: App) {
    this.#app = app;
  }

  /** Tells of a refused request: its status and why. */
  add(status: number, why: string): void {
    this.#minute ??= after(MINUTE, () => this[Symbol.dispose]());
    if (++this.#count <= MOST) this.#tell({ status, why });
  }

  /** Tells of those that it has not told of. */
  [Symbol.dispose](): void {
    this.#minute?.[Symbol.dispose]();
    this.#minute = undefined;
    if (this.#count > MOST) this.#tell({ more: this.#count - MOST });
    this.#count = 0;
  }

  #tell(about: JsonObject): void {
    this.#app.log.info("Refused a request", about);
    // Who sent it is not known.
    const told = this.#app.callPath().then((path) => path.record("request refused", { about }));
    told.catch((error) => this.#app.log.warn(`${error}`));
  }
}
