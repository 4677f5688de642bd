/**
 * Sends requests to another process of this PML. All messages between the two are sealed: without
 * the key, it is impossible to send, answer or read them.
 *
 * @module
 */

import { reportSent } from "../http/_answer.ts";
import { LineReader } from "../../io/lines.ts";
import type { Sealer } from "./_sealer.ts";

/** The header of a request, which proves that another process sent it. */
export interface RequestProof {
  /** The unique name of the request. A process answers it only once. */
  readonly nonce: string;
  /** When it was sent, in milliseconds since 1970. */
  readonly at: number;
}

/** A request of a client that another process answers. */
export interface ForwardedHttpRequest {
  /** The hash of the token of the identity that sent it; null for the user. */
  readonly identity: string | null;
  readonly method: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: unknown;
}

/** The beginning of an answer. Its text follows in parts. */
export interface AnswerHead {
  readonly status: number;
  readonly headers: [string, string][];
}

/** The maximum size of a sealed part, in bytes. */
const LINE_BYTES_MAX = 512 << 20;
/** The last part of each answer. Without it, the answer is incomplete. */
const END = null;

/** Another process of this PML. */
export class OtherProcess {
  readonly #name: string;
  readonly #address: string;
  readonly #sealer: Sealer;

  /** Creates a connection to a process with this name and address. */
  constructor(name: string, address: string, sealer: Sealer) {
    this.#name = name;
    this.#address = address;
    this.#sealer = sealer;
  }

  /**
   * Sends a request. Yields the head of the answer, then its parts. Throws if the answer is
   * incomplete.
   */
  async *send(request: ForwardedHttpRequest, signal: AbortSignal): AsyncGenerator<unknown> {
    const sealer = this.#sealer;
    const nonce = crypto.randomUUID();
    const authorization = await sealer.seal({ nonce, at: Date.now() }, [this.#name]);
    const response = await fetch(`http://${this.#address}/`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization },
      body: JSON.stringify(await sealer.seal(request, [nonce])),
      redirect: "error",
      signal,
    });
    const lines = new LineReader(LINE_BYTES_MAX);
    let count = 0;
    for await (const chunk of response.body ?? []) {
      const texts: string[] = [];
      lines.push(chunk, (line) => {
        if (line.kind === "line") texts.push(new TextDecoder().decode(line.bytes));
      });
      for (const text of texts) {
        const part = await sealer.open(text, [nonce, count++]);
        if (part === END) return;
        if (part === undefined) throw new Error("the answer is not sealed");
        yield part;
      }
    }
    throw new Error("the answer broke off");
  }
}

/** Yields an answer as sealed lines: its head, its parts, and `END`. */
export async function* sealedLines(
  answer: Response,
  { sealer, nonce }: { readonly sealer: Sealer; readonly nonce: string },
): AsyncGenerator<Uint8Array> {
  let count = 0;
  const line = async (part: unknown) =>
    new TextEncoder().encode(`${await sealer.seal(part, [nonce, count++])}\n`);
  const { status, headers, body } = answer;
  try {
    yield await line({ status, headers: [...headers] });
    const parts = body?.pipeThrough(new TextDecoderStream()) ?? [];
    for await (const part of parts) yield await line(part);
    yield await line(END);
  } finally {
    reportSent(answer);
  }
}
