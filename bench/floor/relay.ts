/**
 * A relay that does the minimum of a gateway: it parses each message, replaces the ids of requests,
 * and writes it; and back.
 *
 *     deno run -A bench/floor/relay.ts COMMAND ARGUMENTS
 *
 * @module
 */

const [command = "", ...args] = Deno.args;
const server = new Deno.Command(command, { args, stdin: "piped", stdout: "piped" }).spawn();
const asked = new Map<number, unknown>();
const toServer = writerTo(server.stdin);
const toClient = writerTo(Deno.stdout.writable);
let last = 0;

const over = eachMessage(server.stdout, (message) => {
  const id = asked.get(Number(message.id));
  asked.delete(Number(message.id));
  toClient(id === undefined ? message : { ...message, id });
});
await eachMessage(Deno.stdin.readable, (message) => {
  if (message.id === undefined) return toServer(message);
  asked.set(++last, message.id);
  toServer({ ...message, id: last });
});
server.kill();
await over;

/** Writes messages, all that come at once in one piece. */
function writerTo(stream: WritableStream<Uint8Array>): (message: object) => void {
  const writer = stream.getWriter();
  const encoder = new TextEncoder();
  let waiting = "";
  const flush = () => {
    // The client may have disconnected.
    writer.write(encoder.encode(waiting)).catch(() => {});
    waiting = "";
  };
  return (message) => {
    if (waiting === "") queueMicrotask(flush);
    waiting += `${JSON.stringify(message)}\n`;
  };
}

async function eachMessage(
  stream: ReadableStream<Uint8Array>,
  take: (message: Readonly<Record<string, unknown>>) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of stream) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(JSON.parse(line));
  }
}
