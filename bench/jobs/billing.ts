/**
 * Computes the price of a session with a model: each request sends the whole conversation again.
 *
 * @module
 */

/** The tokens that the model writes in one turn, and the tokens of the result that it reads. */
export interface Turn {
  readonly written: number;
  readonly read: number;
}

/** The tokens of a session until the answer. */
export interface Session {
  /** The prompt of the host, which is in the prompt cache from earlier sessions. */
  readonly host: number;
  /** The tools and the instructions, and the request of the user. */
  readonly start: number;
  readonly turns: readonly Turn[];
  /** The answer at the end. */
  readonly answer: number;
}

/** Prices relative to the price of an input token. */
const OUTPUT = 5;
const CACHE_WRITE = 1.25;
const CACHE_READ = 0.1;

/** Returns the cost of a session in input tokens, with a prompt cache or without. */
export function costOf(
  { host, start, turns, answer }: Session,
  { hasCache }: { readonly hasCache: boolean },
): number {
  let [cost, sent, fresh] = [0, host, start];
  for (const { written, read } of [...turns, { written: answer, read: 0 }]) {
    cost += hasCache ? sent * CACHE_READ + fresh * CACHE_WRITE : sent + fresh;
    cost += written * OUTPUT;
    sent += fresh;
    fresh = written + read;
  }
  return cost;
}
