/**
 * A relay that does the minimum of a gateway: it parses each message, replaces the ids of requests and
 * responses, and writes the message.
 *
 *     deno run -A bench/floor/relay.ts COMMAND ARGUMENTS
 *
 * @module
 */

const [command = "", ...args] = Deno.args;
const server = new Deno.Command(command, { args, stdin: "piped", stdout: "piped" }).spawn();
const clientIds = new Map<number, unknown>();
const toServer = writerTo(server.stdin);
const toClient = writerTo(Deno.stdout.writable);
let lastId = 0;

const serverOutput = eachMessage(server.stdout, (message) => {
  const id = clientIds.get(Number(message.id));
  clientIds.delete(Number(message.id));
  toClient(id === undefined ? message : { ...message, id });
});
await eachMessage(Deno.stdin.readable, (message) => {
  if (message.id === undefined) return toServer(message);
  clientIds.set(++lastId, message.id);
  toServer({ ...message, id: lastId });
});
server.kill();
await serverOutput;

/** Returns a function that writes messages. Messages of one turn are written together. */
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
  onMessage: (message: Readonly<Record<string, unknown>>) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of stream) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) onMessage(JSON.parse(line));
  }
}
