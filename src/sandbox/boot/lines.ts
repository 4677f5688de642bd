/**
 * Lines from the gateway, and frames to it.
 *
 * @module
 */

/** Reads stdin line by line; what a line took is given up after it. */
export async function* stdinLines(): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const chunk = new Uint8Array(1 << 16);
  let parts: string[] = [];
  for (;;) {
    const read = await Deno.stdin.read(chunk);
    if (read === null) return;
    const text = decoder.decode(chunk.subarray(0, read), { stream: true });
    const [end = "", ...begun] = text.split("\n");
    parts.push(end);
    for (const start of begun) {
      yield parts.join("");
      parts = [start];
    }
  }
}

/** Writes one frame as a whole. */
export type Write = (type: string, id: number, json: string) => void;

/** Gives what writes frames as only this thread can: each begins with the nonce, on a new line. */
export function frameWriter(nonce: string): Write {
  const encoder = new TextEncoder();
  const piece = new Uint8Array(1 << 16);
  // Piece by piece, because a large result would be copied as a whole here once more.
  const put = (text: string) => {
    for (let from = 0; from < text.length;) {
      const { read, written } = encoder.encodeInto(text.slice(from), piece);
      from += read;
      for (let at = 0; at < written;) at += Deno.stdout.writeSync(piece.subarray(at, written));
    }
  };
  return (type, id, json) => {
    put(`\n${nonce}${type} ${id} `);
    // A line break inside would let the Worker begin a line of its own.
    put(json.replaceAll("\n", " "));
    put("\n");
  };
}
