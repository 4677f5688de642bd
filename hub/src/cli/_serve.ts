/**
 * `pml-hub serve`: answers clients until it receives a signal.
 *
 * @module
 */

import { once } from "node:events";
import { isLoopback, quoted, type Signer, signerOf, visible } from "@casys/pml/registry";
import { openHub } from "../serve/hub.ts";
import { Metrics, openMetrics, type RequestRecord } from "../serve/metrics.ts";
import { hubProcess } from "./hub_process.ts";
import { keepOnTerminal, print, printToStderr } from "./out.ts";
import { readKeyFile } from "./_key_file.ts";
import { openStore, storeLabel } from "./_store.ts";
import { type CommandLine, usage } from "./_command_line.ts";

const STOP_MS = 3_000;
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/** Serves until the process receives a signal. Returns the exit code of the signal. */
export async function serve(commandLine: CommandLine): Promise<number> {
  const { data, host, port, url: publicUrl, json, isModerated, perMinute, upstreams, keyFile } =
    commandLine;
  if (!isLoopback(host) && !commandLine.isBehindProxy) {
    throw usage(
      `Cannot serve at ${quoted(host)}: others on the network could read the keys of publishers`,
      "Run a proxy with TLS on this machine in front of the hub. If the proxy is on another machine, " +
        "give --behind-proxy",
    );
  }
  const signer = keyFile === undefined ? undefined : signerOf(await readKeyFile(keyFile));
  const exit = new AbortController();
  using _ = abortOnSignal(exit);
  const commandProcess = hubProcess();
  const log = (line: object) =>
    printToStderr(JSON.stringify({ time: new Date().toISOString(), ...line }), commandProcess);
  const warn = (message: string) =>
    commandLine.isLogged
      ? log({ level: "warning", message })
      : printToStderr(`warning: ${message}`, commandProcess);
  await using store = await openStore(data);
  const metrics = new Metrics();
  const observe = (request: RequestRecord) => {
    metrics.count(request);
    if (commandLine.isLogged) log({ level: "info", ...request });
  };
  await using hub = await openHub({
    store,
    host,
    port,
    publicUrl,
    signer,
    warn,
    isModerated,
    perMinute,
    observe,
    needsClientKeys: commandLine.needsClientKeys,
    privateHosts: new Set(upstreams),
  });
  await using metricsListener = commandLine.metrics === undefined
    ? undefined
    : await openMetrics({ metrics, store, port: commandLine.metrics });
  if (!hub.isLocal) {
    warn(
      `connections to ${host} have no TLS; only the proxy should be able to reach it`,
    );
  }
  const url = publicUrl ?? hub.url;
  const metricsUrl = metricsListener && { metrics: `${metricsListener.origin}/metrics` };
  print(
    json
      ? JSON.stringify({ ...registryEntry(hub.url, signer), ...metricsUrl })
      : startText(url, { data: storeLabel(data), signer, needsKey: commandLine.needsClientKeys }),
  );
  keepOnTerminal();
  const { signal } = exit;
  if (!signal.aborted) await once(signal, "abort");
  await hub.stop(STOP_MS);
  return Number(signal.reason);
}

function registryEntry(url: string, signer: Signer | undefined) {
  return { url, ...signer && { public_key: signer.publicKey } };
}

function startText(
  url: string,
  { data, signer, needsKey }: {
    readonly data: string;
    readonly signer: Signer | undefined;
    readonly needsKey: boolean;
  },
): string {
  const entry = signer === undefined ? url : registryEntry(url, signer);
  return `Serving ${visible(data, 300)} at ${visible(url, 300)}\n` +
    `  In .pml.json: "registries": [${JSON.stringify(entry)}]` +
    (needsKey ? `, "cloud": ${JSON.stringify({ url })}` : "");
}

/** Aborts `exit` with the exit code of the first signal. A second signal ends the process at once. */
function abortOnSignal(exit: AbortController): Disposable {
  const { addSignalListener, removeSignalListener } = hubProcess();
  const names = Object.keys(EXIT_CODES) as (keyof typeof EXIT_CODES)[]; // the keys of `EXIT_CODES`
  const listeners = names.map((name) => [name, () => end(EXIT_CODES[name])] as const);
  const stop = () => {
    for (const [name, listener] of listeners.splice(0)) {
      removeSignalListener(name, listener);
    }
  };
  const end = (code: number) => {
    stop();
    exit.abort(code);
  };
  for (const [name, listener] of listeners) addSignalListener(name, listener);
  return { [Symbol.dispose]: stop };
}
