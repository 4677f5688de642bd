/**
 * Runs a server for a client and records each message between the two, with its time.
 *
 *     deno run -A tee.ts RECORD COMMAND ARGS...
 *
 * @module
 */

/** A recorded message, or the start of the server (without a message). */
export interface Recorded {
  /** The process, because a client may start a server more than once. */
  readonly pid: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly from?: "client" | "server";
  readonly message?: {
    readonly id?: string | number;
    readonly method?: string;
    readonly params?: Readonly<Record<string, unknown>>;
    readonly result?: Readonly<Record<string, unknown>>;
  };
}

if (import.meta.main) {
  const [path = "", program = "", ...args] = Deno.args;
  const file = Deno.openSync(path, { append: true, create: true });
  const record = (more: Pick<Recorded, "from" | "message">) => {
    const recorded: Recorded = { pid: Deno.pid, at: Date.now(), ...more };
    file.writeSync(new TextEncoder().encode(`${JSON.stringify(recorded)}\n`));
  };
  record({});
  const child = new Deno.Command(program, { args, stdin: "piped", stdout: "piped" }).spawn();
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    Deno.addSignalListener(signal, () => child.kill(signal));
  }
  Deno.stdin.readable.pipeThrough(recorder("client", record)).pipeTo(child.stdin).catch(() => {
    // The server has ended; its exit code follows.
  });
  await child.stdout.pipeThrough(recorder("server", record)).pipeTo(Deno.stdout.writable)
    .catch(() => child.kill()); // the client has ended
  Deno.exit((await child.status).code);
}

/** Returns a stream that passes bytes on and records each line in them. */
function recorder(
  from: Recorded["from"],
  record: (more: Pick<Recorded, "from" | "message">) => void,
): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  const decoder = new TextDecoder();
  let rest = "";
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk);
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) record({ from, message: JSON.parse(line) });
    },
  });
}
