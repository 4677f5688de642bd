/**
 * A provider of models on loopback: keeps its requests, and sends the answers of a test, in the
 * wire format of Anthropic or of OpenAI.
 *
 * @module
 */

import { HttpSink, type SinkRequest } from "./sinks.ts";

/** The supported formats. */
export type Format = "anthropic" | "openai";

/** The answer of the model in one turn. */
export interface ModelReply {
  readonly text?: string;
  readonly uses?: readonly { readonly name: string; readonly input: unknown }[];
  /** The stop reason in the words of the format. */
  readonly stop?: string;
  /** Tokens in and out; omitted if undefined. */
  readonly usage?: readonly [input: number, output: number] | null;
}

/** Answers a request; a response is sent unchanged. */
export type Reply =
  | ModelReply
  | Response
  | ((asked: SinkRequest, turn: number) => ModelReply | Response);

/** A running provider. */
export class FakeProvider implements AsyncDisposable {
  readonly #sink: HttpSink;
  readonly #format: Format;

  /** Answers with these in turn, then repeats the last one. */
  constructor(format: Format, ...replies: readonly Reply[]) {
    this.#format = format;
    let turn = 0;
    this.#sink = new HttpSink((asked) => {
      const reply = replies[Math.min(turn++, replies.length - 1)] ?? {};
      const said = typeof reply === "function" ? reply(asked, turn) : reply;
      if (!(said instanceof Response)) return events(eventsOf(format, said, turn));
      return said.bodyUsed ? new Response(null, { status: 500 }) : said;
    });
  }

  /** The `base_url` of its format. */
  get url(): string {
    return this.#format === "anthropic" ? this.#sink.url : `${this.#sink.url}/v1`;
  }

  /** Its host with the port. */
  get host(): string {
    return `127.0.0.1:${this.#sink.port}`;
  }

  /** The requests, in order. */
  get received(): readonly SinkRequest[] {
    return this.#sink.received;
  }

  /** The bodies of the requests, as JSON. */
  // deno-lint-ignore no-explicit-any -- tests look at every field
  get bodies(): readonly any[] {
    return this.received.map(({ body }) => JSON.parse(body));
  }

  /** Returns the section `sampling` of a `config.yaml` that names this provider. */
  config(more: Readonly<Record<string, unknown>> = {}): string {
    const settings = { provider: this.#format, model: "m-1", base_url: this.url, ...more };
    return `sampling: ${JSON.stringify(settings)}\n`;
  }

  /** Stops listening. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sink[Symbol.asyncDispose]();
  }
}

/** Returns a stream of events, each as one JSON value, or a text unchanged. */
export function events(all: readonly unknown[], headers: Record<string, string> = {}): Response {
  const text = all.map((event) => {
    if (typeof event === "string") return `data: ${event}\n\n`;
    const { type } = event as { readonly type?: string };
    return `${type === undefined ? "" : `event: ${type}\n`}data: ${JSON.stringify(event)}\n\n`;
  });
  return new Response(text.join(""), {
    headers: { "content-type": "text/event-stream; charset=utf-8", ...headers },
  });
}

/** Returns the events of one answer. */
export function eventsOf(format: Format, said: ModelReply, turn = 1): readonly unknown[] {
  return format === "anthropic" ? anthropic(said, turn) : openai(said, turn);
}

function anthropic(
  { text, uses = [], stop, usage = [10, 5] }: ModelReply,
  turn: number,
): unknown[] {
  const pieces = text === undefined ? [] : [text.slice(0, 2), text.slice(2)];
  const [input, output] = usage ?? [];
  const block = (index: number, start: object, deltas: readonly object[]) => [
    { type: "content_block_start", index, content_block: start },
    { type: "ping" },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
  return [
    {
      type: "message_start",
      message: {
        id: "msg_1",
        type: "message",
        role: "assistant",
        content: [],
        model: "m-1-20260101",
        ...(usage && { usage: { input_tokens: input, output_tokens: 1 } }),
      },
    },
    ...(text === undefined ? [] : block(
      0,
      { type: "text", text: "" },
      pieces.map((piece) => ({ type: "text_delta", text: piece })),
    )),
    ...uses.flatMap(({ name, input }, at) => {
      const json = typeof input === "string" ? input : JSON.stringify(input);
      const start = { type: "tool_use", id: `toolu_${turn}_${at}`, name, input: {} };
      const deltas = ["", json.slice(0, 3), json.slice(3)];
      return block(
        at + 1,
        start,
        deltas.map((piece) => ({ type: "input_json_delta", partial_json: piece })),
      );
    }),
    {
      type: "message_delta",
      delta: { stop_reason: stop ?? (uses.length > 0 ? "tool_use" : "end_turn") },
      ...(usage && { usage: { output_tokens: output } }),
    },
    { type: "message_stop" },
  ];
}

function openai({ text, uses = [], stop, usage = [10, 5] }: ModelReply, turn: number): unknown[] {
  const chunk = (delta: object, finish: string | null = null) => ({
    id: "c",
    object: "chat.completion.chunk",
    model: "m-1-2026",
    choices: [{ index: 0, delta, finish_reason: finish }],
    usage: null,
  });
  const calls = uses.flatMap(({ name, input }, index) => {
    const json = typeof input === "string" ? input : JSON.stringify(input);
    const id = `call_${turn}_${index}`;
    return [
      chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
      chunk({ tool_calls: [{ index, function: { arguments: json.slice(0, 3) } }] }),
      chunk({ tool_calls: [{ index, function: { arguments: json.slice(3) } }] }),
    ];
  });
  const [prompt, completion] = usage ?? [];
  const counts = { prompt_tokens: prompt, completion_tokens: completion };
  return [
    chunk({ role: "assistant", content: "" }),
    ...(text === undefined ? [] : [
      chunk({ content: text.slice(0, 2) }),
      chunk({
        content: text.slice(2),
      }),
    ]),
    ...calls,
    chunk({}, stop ?? (uses.length > 0 ? "tool_calls" : "stop")),
    ...(usage === null ? [] : [{ id: "c", model: "m-1-2026", choices: [], usage: counts }]),
    "[DONE]",
  ];
}
