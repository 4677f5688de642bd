/**
 * `/metrics` of `pml serve`: the metrics of this process and of its PML home, for Prometheus.
 *
 * @module
 */

import { homeMetrics, processMetrics } from "../control/process_metrics.ts";
import type { App } from "../app/app.ts";
import { mergeSnapshots, prometheusText } from "../audit/metric_families.ts";
import type { HttpMetrics } from "../transport/http/http.ts";
import { isSameHash, tokenHash, tokenIn } from "../transport/http/token.ts";

/** Answers requests for metrics. Their token is valid for nothing else, and no other token is valid. */
export class MetricsEndpoint implements HttpMetrics {
  readonly #app: App;
  readonly #identityApps: () => Promise<readonly App[]>;
  readonly #token: string;

  /** `app` is the PML of the owner; `token` is the hash of the token. */
  constructor(app: App, identityApps: () => Promise<readonly App[]>, token: string) {
    this.#app = app;
    this.#identityApps = identityApps;
    this.#token = token;
  }

  /** Returns the metrics as text for Prometheus; undefined if the token is wrong. */
  async textFor(authorization: string): Promise<string | undefined> {
    // guard: metrics-token
    if (!isSameHash(tokenHash(tokenIn(authorization)), this.#token)) return undefined;
    const apps = [this.#app, ...await this.#identityApps()];
    const snapshots = await Promise.all([processMetrics(apps), homeMetrics(this.#app)]);
    return prometheusText(mergeSnapshots(snapshots));
  }
}
