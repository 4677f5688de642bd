/**
 * Runs clients of the conformance suite in the process of a test. The suite starts a command for
 * each scenario; this command passes its environment on to the test and waits for the end of the
 * client. A separate process for each client took 0.45 s of processor time more.
 *
 * @module
 */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { once } from "node:events";

/** The arguments of a client: those that the suite passes to its command. */
export interface ClientRun {
  readonly scenario: string;
  /** The values for the client, as JSON. */
  readonly context: string;
  readonly revision: string;
  /** The address of the suite's server. */
  readonly url: string;
  /** Adds a line to the output of the client. */
  readonly log: (line: string) => void;
}

/** The end of a client. */
export interface ClientEnd {
  readonly code: number;
  readonly output: string;
}

/** A command for the suite. Its disposal closes the port. */
export interface Forwarding extends AsyncDisposable {
  /** The command, without an argument that contains a space: the suite splits it at spaces. */
  readonly command: string;
  /** The ends of the clients so far, by scenario. */
  readonly ends: ReadonlyMap<string, ClientEnd>;
}

const SCRIPT = `exec curl --silent --show-error --fail-with-body --noproxy '*' \\
  --header "scenario: $MCP_CONFORMANCE_SCENARIO" --header "address: $1" \\
  --header "revision: $MCP_CONFORMANCE_PROTOCOL_VERSION" --data-raw "$MCP_CONFORMANCE_CONTEXT"`;

/**
 * How many clients run at a time. The suite starts all at once, and on a busy machine its servers
 * would then answer later than PML waits for them.
 */
const AT_ONCE = 2;

/** Writes the command into a folder, and runs a client in this process for each of its starts. */
export async function forwarding(
  folder: string,
  run: (client: ClientRun) => Promise<number>,
): Promise<Forwarding> {
  const ends = new Map<string, ClientEnd>();
  const waiting: (() => void)[] = [];
  let free = AT_ONCE;
  const server = createServer(async (request, response) => {
    let context = "";
    for await (const piece of request.setEncoding("utf8")) context += piece;
    const lines: string[] = [];
    const value = (name: string) => String(request.headers[name] ?? "");
    const scenario = value("scenario");
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    const code = await run({
      ...{ scenario, url: value("address"), revision: value("revision") },
      context: context || "{}",
      log: (line) => lines.push(line),
    }).catch((error) => {
      lines.push(String(error.stack));
      return 1;
    });
    const next = waiting.shift();
    if (next === undefined) free++;
    else next();
    const output = lines.map((line) => `${line}\n`).join("");
    ends.set(scenario, { code, output });
    response.writeHead(code === 0 ? 200 : 500).end(output);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const script = join(folder, "client.sh");
  const { port } = server.address() as AddressInfo;
  await Deno.writeTextFile(script, `${SCRIPT} http://127.0.0.1:${port}/\n`);
  return {
    command: `sh ${script}`,
    ends,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await once(server.close(), "close");
    },
  };
}
