/**
 * Counts and traces the requests on a connection to a server.
 *
 * @module
 */

import type { JsonObject } from "../../core/json.ts";
import type { RequestFollower, SentRequest } from "../../protocol/rpc_peer.ts";
import { errorTypeOf, type RequestSpan, type SpanTarget } from "../../protocol/trace.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";
import { turnTime } from "../../io/waiting.ts";

/** Follows the requests of one connection. */
export class FollowedRequests implements RequestFollower {
  readonly #server: string;
  readonly #host: Pick<UpstreamsHost, "metrics" | "tracer">;
  readonly #connection: () => SpanTarget;

  /** `connection` returns the facts about the connection that spans contain. */
  constructor(
    server: string,
    host: Pick<UpstreamsHost, "metrics" | "tracer">,
    connection: () => SpanTarget,
  ) {
    this.#server = server;
    this.#host = host;
    this.#connection = connection;
  }

  begin(request: SentRequest, params: JsonObject | undefined): RequestSpan | undefined {
    return this.#host.tracer?.beginSent(request, params, this.#connection());
  }

  end({ method, sentAt, span }: SentRequest, result: unknown, error?: unknown): void {
    const now = turnTime();
    const type = errorTypeOf(result, error);
    this.#host.metrics?.countSent({
      method,
      server: this.#server,
      ms: now - sentAt,
      error: `${type ?? ""}`,
    });
    span?.end(now, type);
  }
}
