/**
 * Opens servers of the made-up kind.
 *
 * @module
 */

import { type Outcome, textResult } from "../../../src/protocol/call.ts";
import { KnownServer, type KnownServerOptions } from "../../../src/servers/known_server.ts";
import type { ListItem } from "../../../src/protocol/lists.ts";
import type { CheckedCall } from "../../../src/servers/server.ts";
import type { DefinitionFiller, LoadRuntime } from "../../../src/servers/host.ts";
import type { SpokenDefinition } from "./kind.ts";

const TOOLS = ["say", "wait"].map((name) => ({ name, inputSchema: { type: "object" } }));

/** Returns the runtime of servers that speak. */
export const load: LoadRuntime = () =>
  Promise.resolve({
    open: (options, { definition }, values) => {
      const spoken = definition as SpokenDefinition; // it is of this kind
      return new SpokenServer(options, spoken, values);
    },
  });

class SpokenServer extends KnownServer {
  readonly #spoken: SpokenDefinition;
  readonly #values: DefinitionFiller;

  constructor(options: KnownServerOptions, spoken: SpokenDefinition, values: DefinitionFiller) {
    super(options);
    this.#spoken = spoken;
    this.#values = values;
  }

  override list(): Promise<readonly ListItem[]> {
    return Promise.resolve(TOOLS);
  }

  override permissionLines(): Promise<readonly string[]> {
    return Promise.resolve([`may speak on ${this.#spoken.channels.join(", ")}`]);
  }

  override async call({ tool, cancellation: { signal } }: CheckedCall): Promise<Outcome> {
    const { env = {} } = this.#values.fillTexts(this.#spoken);
    if (tool === "say") return { kind: "result", result: textResult(env.phrase ?? "") };
    const stopped = Promise.withResolvers<never>();
    const stop = () => stopped.reject(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    return await stopped.promise;
  }
}
