/**
 * Passes on requests that servers send outside of calls. They go to the client, if PML has exactly
 * one client.
 *
 * @module
 */

import type { ServerRequest } from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";
import { type JsonObject, quoted } from "../core/json.ts";
import type { Config } from "../config/current_config.ts";
import type { Servers } from "../servers/lists/servers.ts";
import type { AskClient } from "../protocol/server.ts";
import type { Gateway } from "./gateway.ts";

/** The collaborators of `ClientQuestions`. */
export interface QuestionsHost {
  readonly servers: Servers;
  /** Returns the gateway, which checks requests of servers with the rules. */
  gateway(): Promise<Gateway>;
  /** Returns the current configuration. */
  config(): Config;
}

/** The maximum number of requests of one server that reach the client in a minute. */
const REQUESTS_PER_MINUTE = 5;
const MINUTE_MS = 60_000;

/** Passes requests of servers to the only client. */
export class ClientQuestions {
  readonly #host: QuestionsHost;
  readonly #times = new Map<string, number[]>();
  #ask: AskClient | undefined;

  /** Takes the host. Sends nothing yet. */
  constructor(host: QuestionsHost) {
    this.#host = host;
  }

  /** Takes the function that asks the client. */
  connect(ask: AskClient): void {
    this.#ask = ask;
  }

  /** The function that passes a request of a server to the client; undefined without a client. */
  get askClient(): ((request: ServerRequest) => Promise<JsonObject>) | undefined {
    const ask = this.#ask;
    return ask && ((request) => this.#pass(request, ask));
  }

  async #pass(request: ServerRequest, ask: AskClient): Promise<JsonObject> {
    this.#countRequest(request.server);
    const { onServerRequest } = await (await this.#host.gateway()).inputFrom({
      capabilities: this.#host.servers.lists.capabilities,
      requestInput: async ({ method, params, members, signal, onProgress }) => {
        const ms = this.#host.config().limits.approvalMs;
        const answer = await ask(method, { params, members, signal, ms, onProgress });
        if (answer !== undefined) return answer;
        signal.throwIfAborted();
        throw refusalError(request.server, "the client did not answer");
      },
    });
    return await onServerRequest(request);
  }

  /** Counts a request of a server. Throws if the server has sent too many in the last minute. */
  #countRequest(server: string): void {
    const minuteStart = performance.now() - MINUTE_MS;
    const times = (this.#times.get(server) ?? []).filter((time) => time > minuteStart);
    if (times.length >= REQUESTS_PER_MINUTE) {
      throw refusalError(
        server,
        `it asked ${REQUESTS_PER_MINUTE} times in a minute, outside of calls`,
      );
    }
    this.#times.set(server, [...times, performance.now()]);
  }
}

function refusalError(server: string, why: string): PmlError {
  return new PmlError("BAD_REQUEST", `Cannot ask the user for ${quoted(server)}: ${why}`, {
    hint: "Ask within a call",
  });
}
