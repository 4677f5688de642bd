/**
 * Passes requests of clients on to the servers that they are about.
 *
 * @module
 */

import type { CallTool, Outcome, Question } from "../core/call.ts";
import type { PmlError } from "../core/errors.ts";
import { defined, type JsonObject } from "../core/json.ts";
import { toolId } from "../core/tool_id.ts";
import type { ClientRequest, Exchange, Working } from "./_exchange.ts";
import { passedOn } from "./_params.ts";

/** What is asked of a server beside calls of its tools. */
export interface Wanted {
  /** Its door, or the tool whose task it is about. */
  readonly door: string;
  readonly server: string;
  readonly method: string;
  readonly params: JsonObject;
}

/** What passing on needs of the gateway. */
export interface ServerRequestsOptions {
  readonly callTool: CallTool;
  readonly exchange: Exchange;
  /** Why nothing can be asked at all, if so. */
  readonly problem: () => PmlError | undefined;
  /** Leaves a question for the terminal, and gives the error that says so. */
  readonly leave: (question: Question) => Promise<PmlError>;
}

/** For what no request waits for. */
const NOBODY: Working = { signal: new AbortController().signal, answer: undefined };

/** Asks servers what clients want of them, each request as a call through every gate. */
export class ServerRequests {
  readonly #options: ServerRequestsOptions;

  /** Asks nothing yet. */
  constructor(options: ServerRequestsOptions) {
    this.#options = options;
  }

  /** Asks for a client, which can itself be asked meanwhile. */
  async ask(request: ClientRequest, wanted: Wanted): Promise<JsonObject> {
    return await this.#options.exchange.serve(request, (working) => this.#pass(wanted, working));
  }

  /** Asks for a client that cannot be asked meanwhile, or for none. */
  async askAlone(wanted: Wanted, working = NOBODY): Promise<JsonObject> {
    const outcome = await this.#pass(wanted, working);
    if (outcome.kind === "ask") throw await this.#options.leave(outcome.question);
    return outcome.result as unknown as JsonObject; // plain JSON
  }

  async #pass({ door, server, method, params }: Wanted, working: Working): Promise<Outcome> {
    const { _meta, ...rest } = params;
    const problem = this.#options.problem();
    if (problem !== undefined) throw problem;
    const { answer, ...meanwhile } = working;
    return await this.#options.callTool({
      id: toolId(server, door),
      method,
      arguments: rest,
      via: method,
      actor: "local",
      callId: crypto.randomUUID(),
      ...meanwhile,
      ...passedOn(_meta),
      ...defined({ answer }),
    });
  }
}
