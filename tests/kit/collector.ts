/**
 * A collector of OpenTelemetry on this machine, which receives spans as OTLP over HTTP with JSON.
 *
 * @module
 */

import { until } from "./wait.ts";

/** A span that the collector received. */
export interface ReceivedSpan {
  readonly name: string;
  readonly kind: "INTERNAL" | "SERVER" | "CLIENT";
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly attributes: Readonly<Record<string, string>>;
  readonly isError: boolean;
}

/** A request that the collector got. */
export interface ReceivedRequest {
  readonly path: string;
  readonly headers: Headers;
  readonly body: Uint8Array<ArrayBuffer>;
}

interface Value {
  readonly stringValue?: string;
  readonly intValue?: string | number;
}

interface OtlpSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly attributes: readonly { readonly key: string; readonly value: Value }[];
  readonly status?: { readonly code?: number };
}

const KINDS: Readonly<Record<number, ReceivedSpan["kind"]>> = { 2: "SERVER", 3: "CLIENT" };

/** A running collector. Its disposal closes it. */
export class Collector implements AsyncDisposable {
  /** The requests so far. */
  readonly requests: ReceivedRequest[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  /** Listens. `answer` returns the answer to each request. */
  constructor(answer: (request: ReceivedRequest) => Response | Promise<Response> = () => OK()) {
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      async (request) => {
        const received = {
          path: new URL(request.url).pathname,
          headers: request.headers,
          body: new Uint8Array(await request.arrayBuffer()),
        };
        this.requests.push(received);
        return await answer(received);
      },
    );
  }

  /** The address for `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** The variables of a PML that sends its spans here soon. */
  get env(): Record<string, string> {
    return {
      OTEL_EXPORTER_OTLP_ENDPOINT: this.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_BSP_SCHEDULE_DELAY: "20",
    };
  }

  /** All requests as text. */
  get text(): string {
    return this.requests.map(({ body }) => new TextDecoder().decode(body)).join("\n");
  }

  /** The spans so far. */
  get spans(): readonly ReceivedSpan[] {
    return this.requests.flatMap(({ body }) => spansIn(body));
  }

  /** Waits until a span matches, and returns all spans of its trace. */
  async trace(matches: (span: ReceivedSpan) => boolean): Promise<readonly ReceivedSpan[]> {
    await until(() => this.spans.some(matches));
    const { traceId } = this.spans.findLast(matches) as ReceivedSpan;
    return this.spans.filter((span) => span.traceId === traceId);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

function OK(): Response {
  return Response.json({});
}

function spansIn(body: Uint8Array): readonly ReceivedSpan[] {
  const { resourceSpans = [] } = JSON.parse(new TextDecoder().decode(body));
  return resourceSpans.flatMap(({ scopeSpans }: { scopeSpans: { spans: OtlpSpan[] }[] }) =>
    scopeSpans.flatMap(({ spans }) => spans.map(received))
  );
}

function received(span: OtlpSpan): ReceivedSpan {
  const { name, kind, traceId, spanId, parentSpanId, attributes, status } = span;
  return {
    ...{ name, traceId, spanId, parentSpanId },
    kind: KINDS[kind] ?? "INTERNAL",
    attributes: Object.fromEntries(
      attributes.map(({ key, value }) => [key, `${value.stringValue ?? value.intValue}`]),
    ),
    isError: status?.code === 2,
  };
}
