/**
 * Continues without a running `pml serve` that has ended: restores the state of the connection,
 * repeats the requests that are safe to repeat, and answers calls that may have run.
 *
 * @module
 */

import { isObject, type JsonObject, textOf } from "../../core/json.ts";
import { parseExact } from "../../core/exact_json.ts";
import { LineReader } from "../../io/lines.ts";
import { isRepeatable } from "../../protocol/connection_state.ts";
import { classify, type ReadLine, withRequestId } from "../../protocol/message.ts";
import type { ClientPipes } from "../stdio/_pipes.ts";
import { unknownEnd } from "../../protocol/failures.ts";
import { type Left, lineOf, withEnd } from "./window.ts";

/** Prefix of the ids of requests that the client did not send. */
const REPEATED = "pml-window-";
const LONGEST = 1 << 30;

/** Returns pipes that connect the client to PML in this process. */
export function alone(rest: Left): ClientPipes {
  const { client, input, redirect } = rest;
  // Requests of the other PML are no longer answered. The ids of this PML's requests must differ
  // from them.
  const requests = new Map<string, unknown>();
  const lines = new LineReader(LONGEST);
  return {
    open: (take) => {
      for (const message of repeated(rest)) take(lineOf(message));
      redirect((line, read) => {
        const answer = read === undefined ? undefined : answerIn(read);
        if (answer === undefined) return take(withEnd(line));
        const id = requests.get(String(answer.id));
        requests.delete(String(answer.id));
        if (id !== undefined) take(lineOf({ ...answer, id }));
      });
      return input;
    },
    output: {
      write: async (piece) => {
        const all: Uint8Array[] = [];
        lines.push(piece, (line) => {
          const bytes = line.kind === "line" ? answerTo(line.bytes, requests) : undefined;
          if (bytes !== undefined) all.push(bytes);
        });
        for (const bytes of all) await client.output.write(bytes);
      },
    },
    giveUp: client.giveUp,
  };
}

/**
 * Returns the repeated messages, in order. Sends the client an answer for calls that may have run.
 */
function* repeated({ state, waiting, notBegun, client }: Left): Generator<JsonObject> {
  let count = 0;
  yield* state.restoring(waiting, () => `${REPEATED}${count++}`);
  for (const message of waiting) {
    if (notBegun.has(JSON.stringify(message.id)) || isRepeatable(message)) yield message;
    else client.output.write(lineOf(unknownEnd(message))).catch(() => {});
  }
}

function answerIn(read: ReadLine): JsonObject | undefined {
  return read.kind === "response" ? read.message : undefined;
}

/** Returns the line for the client; undefined for answers to requests that it did not send. */
function answerTo(line: Uint8Array, requests: Map<string, unknown>): Uint8Array | undefined {
  const message: unknown = parseExact(new TextDecoder().decode(line));
  if (!isObject(message)) return lineOf(message);
  const { id } = message;
  const own = (id: string) => `${REPEATED}${id}`;
  const read = classify(message);
  switch (read.kind) {
    case "cancel":
      return lineOf(withRequestId(read, own(read.request)));
    case "request":
      requests.set(own(read.id), id);
      return lineOf({ ...message, id: own(read.id) });
    case "response":
      return textOf(id).startsWith(REPEATED) ? undefined : withEnd(line);
    default:
      return withEnd(line);
  }
}
