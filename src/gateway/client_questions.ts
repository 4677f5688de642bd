/**
 * Requests of servers outside of calls. They reach a client only if it is the only client of its
 * PML.
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

/** The PML whose only client is asked. */
export interface QuestionsHost {
  readonly servers: Servers;
  /** Returns the gateway, which checks requests of servers with the rules. */
  gateway(): Promise<Gateway>;
  /** Returns the present configuration. */
  config(): Config;
}

/** The maximum number of requests of one server that reach the client in a minute. */
const PER_MINUTE = 5;
const MINUTE_MS = 60_000;

/** Asks the only client. */
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

  /** Passes a request of a server to the client; undefined if there is no such client. */
  get asked(): ((request: ServerRequest) => Promise<JsonObject>) | undefined {
    const ask = this.#ask;
    return ask && ((request) => this.#pass(request, ask));
  }

  async #pass(request: ServerRequest, ask: AskClient): Promise<JsonObject> {
    this.#count(request.server);
    const { onAsk } = await (await this.#host.gateway()).inputFrom({
      capabilities: this.#host.servers.lists.able,
      requestInput: async ({ method, params, members, signal, onProgress }) => {
        const ms = this.#host.config().limits.approvalMs;
        const answer = await ask(method, { params, members, signal, ms, onProgress });
        if (answer !== undefined) return answer;
        signal.throwIfAborted();
        throw refused(request.server, "the client did not answer");
      },
    });
    return await onAsk(request);
  }

  #count(server: string): void {
    const since = performance.now() - MINUTE_MS;
    const times = (this.#times.get(server) ?? []).filter((time) => time > since);
    if (times.length >= PER_MINUTE) {
      throw refused(server, `it asked ${PER_MINUTE} times in a minute, outside of calls`);
    }
    this.#times.set(server, [...times, performance.now()]);
  }
}

function refused(server: string, why: string): PmlError {
  return new PmlError("BAD_REQUEST", `Cannot ask the user for ${quoted(server)}: ${why}`, {
    hint: "Ask within a call",
  });
}
