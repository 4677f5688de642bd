/**
 * Opens servers of the made-up kind.
 *
 * @module
 */

import { type Outcome, textResult } from "../../../src/protocol/call.ts";
import { KnownServer } from "../../../src/servers/known_server.ts";
import type { ListItem } from "../../../src/protocol/lists.ts";
import type { CheckedCall } from "../../../src/servers/server.ts";
import type { LoadRuntime, OpenOptions } from "../../../src/servers/host.ts";
import type { SpokenDefinition } from "./kind.ts";

const TOOLS = ["say", "wait"].map((name) => ({ name, inputSchema: { type: "object" } }));

/** Returns the runtime of servers that speak. */
export const load: LoadRuntime = () =>
  Promise.resolve({ open: (options) => new SpokenServer(options) });

class SpokenServer extends KnownServer {
  readonly #options: OpenOptions;

  constructor(options: OpenOptions) {
    super(options);
    this.#options = options;
  }

  override list(): Promise<readonly ListItem[]> {
    return Promise.resolve(TOOLS);
  }

  override permissionLines(): Promise<readonly string[]> {
    const { channels } = this.#options.definition as SpokenDefinition; // it is of this kind
    return Promise.resolve([`may speak on ${channels.join(", ")}`]);
  }

  override async call({ tool, cancellation: { signal } }: CheckedCall): Promise<Outcome> {
    const { definition, values } = this.#options;
    const { env = {} } = definition === undefined ? {} : values.filled(definition);
    if (tool === "say") return { kind: "result", result: textResult(env.phrase ?? "") };
    const stopped = Promise.withResolvers<never>();
    const stop = () => stopped.reject(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    return await stopped.promise;
  }
}
