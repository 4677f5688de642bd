/**
 * Lets PML in this process continue after the `pml serve` that served the client has ended: restores
 * the state of the connection, repeats the requests that are safe to repeat, and answers calls that
 * may have run.
 *
 * @module
 */

import { isObject, type JsonObject, textOf } from "../../core/json.ts";
import { parseExact } from "../../core/exact_json.ts";
import { LineReader } from "../../io/lines.ts";
import { isRepeatable } from "../../protocol/connection_state.ts";
import { classify, type ReadLine, withRequestId } from "../../protocol/message.ts";
import type { ClientPipes } from "../stdio/_pipes.ts";
import { processEndedAnswer } from "../../protocol/failures.ts";
import { lineOf, type TakeoverState, withEnd } from "./window.ts";

/** The prefix of ids, so that they differ from the ids of the ended process. */
const REPEATED_PREFIX = "pml-window-";
/** The maximum length of a line of PML in this process, in bytes. */
const LINE_MAX = 1 << 30;

/** Returns pipes that connect the client to PML in this process. */
export function pipesWithoutServe(takeover: TakeoverState): ClientPipes {
  const { client, input, redirect } = takeover;
  // The client may still answer requests of the ended PML. The ids of this PML must differ from
  // them.
  const requests = new Map<string, unknown>();
  const lines = new LineReader(LINE_MAX);
  return {
    open: (take) => {
      for (const message of messagesToRepeat(takeover)) take(lineOf(message));
      redirect((line, read) => {
        const answer = read === undefined ? undefined : responseIn(read);
        if (answer === undefined) return take(withEnd(line));
        const id = requests.get(String(answer.id));
        requests.delete(String(answer.id));
        if (id !== undefined) take(lineOf({ ...answer, id }));
      });
      return input;
    },
    output: {
      write: async (piece) => {
        const outputLines: Uint8Array[] = [];
        lines.push(piece, (line) => {
          const bytes = line.kind === "line" ? answerTo(line.bytes, requests) : undefined;
          if (bytes !== undefined) outputLines.push(bytes);
        });
        for (const bytes of outputLines) await client.output.write(bytes);
      },
    },
    discardOutput: client.discardOutput,
  };
}

/**
 * Returns the messages to repeat, in order. Answers the client's calls that may have run.
 */
function* messagesToRepeat(
  { state, waiting, notBegun, client }: TakeoverState,
): Generator<JsonObject> {
  let count = 0;
  yield* state.restore(waiting, () => `${REPEATED_PREFIX}${count++}`);
  for (const message of waiting) {
    if (notBegun.has(JSON.stringify(message.id)) || isRepeatable(message)) yield message;
    else client.output.write(lineOf(processEndedAnswer(message))).catch(() => {});
  }
}

function responseIn(read: ReadLine): JsonObject | undefined {
  return read.kind === "response" ? read.message : undefined;
}

/** Returns the line for the client; undefined for answers to requests that it did not send. */
function answerTo(line: Uint8Array, requests: Map<string, unknown>): Uint8Array | undefined {
  const message: unknown = parseExact(new TextDecoder().decode(line));
  if (!isObject(message)) return lineOf(message);
  const { id } = message;
  const withPrefix = (id: string) => `${REPEATED_PREFIX}${id}`;
  const read = classify(message);
  switch (read.kind) {
    case "cancel":
      return lineOf(withRequestId(read, withPrefix(read.request)));
    case "request":
      requests.set(withPrefix(read.id), id);
      return lineOf({ ...message, id: withPrefix(read.id) });
    case "response":
      return textOf(id).startsWith(REPEATED_PREFIX) ? undefined : withEnd(line);
    default:
      return withEnd(line);
  }
}
