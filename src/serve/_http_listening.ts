/**
 * The streams over HTTP on which clients of the newest revision listen. The SDK sends what is said
 * of lists. What is said of resources and tasks goes to the streams that named them.
 *
 * @module
 */

import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { isObject, type Json, type JsonObject, objectOf } from "../core/json.ts";
import { EVENTS_TYPE, typeOf } from "../io/event_stream.ts";
import { frameOf } from "./_http_answer.ts";
import { Listening, SUBSCRIPTION, type Subscriptions } from "./_listening.ts";

/** Sends a notification. */
export type Tell = (method: string, params: JsonObject) => void;

/** What one stream listens for. */
export interface Listener extends Disposable {
  /** Sets everything that it listens for. */
  set(listened: Subscriptions): void;
}

/** The options of `listened`. */
export interface ListenedOptions {
  /** The request that opened the stream. */
  readonly message: JsonObject;
  readonly listen: (tell: Tell) => Listener;
  readonly isTask: (id: string) => boolean;
  /** How many bytes may wait for the client before the stream is closed. */
  readonly queuedBytes: number;
}

/** Returns whether a body is a request that opens a stream to listen on. */
export function isListening(body: unknown): body is JsonObject {
  return isObject(body) && body.method === "subscriptions/listen";
}

/** A resource that never changes. The SDK ends a stream that wants nothing which it knows. */
const NOTHING = "pml:nothing";

/** Returns a request that opens a stream, as the SDK gets it: it knows no tasks. */
export function withNothing(message: JsonObject): JsonObject {
  const params = objectOf(message.params);
  const notifications = objectOf(params.notifications);
  const { taskIds, resourceSubscriptions = [] } = notifications;
  if (!Array.isArray(taskIds) || !Array.isArray(resourceSubscriptions)) return message;
  const all = { ...notifications, resourceSubscriptions: [...resourceSubscriptions, NOTHING] };
  return { ...message, params: { ...params, notifications: all } };
}

/** Takes that resource out of what a stream is told that it listens for. */
function withoutNothing({ params, ...said }: JsonObject): JSONRPCMessage {
  const { resourceSubscriptions = [], ...others } = objectOf(objectOf(params).notifications);
  const uris = (resourceSubscriptions as readonly Json[]).filter((uri) => uri !== NOTHING);
  const notifications = { ...others, ...uris.length > 0 && { resourceSubscriptions: uris } };
  return { ...said, params: { ...objectOf(params), notifications } } as unknown as JSONRPCMessage;
}

/** Returns the stream with what is said of the resources and tasks that its request names. */
export function listened(response: Response, options: ListenedOptions): Response {
  const { message, queuedBytes, isTask } = options;
  const requests = new Listening();
  const request = message as unknown as JSONRPCMessage; // the SDK has checked it
  const id = JSON.stringify(message.id);
  const wanted = requests.take({ kind: "request", message: request, id });
  if (wanted === undefined || typeOf(response) !== EVENTS_TYPE) return response;
  const reader = (response.body ?? new Blob().stream()).getReader();
  let listener: Listener | undefined;
  const body = new ReadableStream<Uint8Array>({
    start: (stream) => {
      const send = (said: unknown) => {
        if (listener === undefined) return;
        if ((stream.desiredSize ?? 0) > -queuedBytes) stream.enqueue(frameOf(JSON.stringify(said)));
        else end();
      };
      const end = () => {
        listener?.[Symbol.dispose]();
        listener = undefined;
        void reader.cancel().catch(() => {});
      };
      listener = options.listen((method, params) => {
        const _meta = { ...objectOf(params._meta), [SUBSCRIPTION]: message.id };
        send({ jsonrpc: "2.0", method, params: { ...params, _meta } });
      });
      void pass(reader, {
        stream,
        acknowledged: (said) => requests.messagesFor(withoutNothing(said), isTask),
      })
        .finally(end);
      listener.set(wanted);
    },
    cancel: async (reason) => {
      listener?.[Symbol.dispose]();
      listener = undefined;
      await reader.cancel(reason);
    },
  }, new ByteLengthQueuingStrategy({ highWaterMark: 0 }));
  return new Response(body, { status: response.status, headers: response.headers });
}

/** Passes on what the SDK sends. Its first event says what it listens for. */
async function pass(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  { stream, acknowledged }: {
    readonly stream: ReadableStreamDefaultController<Uint8Array>;
    readonly acknowledged: (said: JsonObject) => readonly unknown[];
  },
): Promise<void> {
  try {
    for (let isFirst = true;; isFirst = false) {
      const { done, value } = await reader.read();
      if (done) return stream.close();
      const said = isFirst ? /^data: (.*)$/m.exec(new TextDecoder().decode(value))?.[1] : undefined;
      const frames = said === undefined
        ? [value]
        : acknowledged(JSON.parse(said)).map((one) => frameOf(JSON.stringify(one)));
      for (const frame of frames) stream.enqueue(frame);
    }
  } catch (error) {
    stream.error(error);
  }
}
