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
import { keepOnTerminal, print, tell } from "./out.ts";
import { keyIn } from "./_key_file.ts";
import { openStore, placeOf } from "./_store.ts";
import { type Typed, usage } from "./_typed.ts";

const STOP_MS = 3_000;
const ENDINGS = { SIGINT: 130, SIGTERM: 143 } as const;

/** Serves until a signal comes, and returns the exit code of that. */
export async function serve(typed: Typed): Promise<number> {
  const { data, host, port, url: publicUrl, json, isModerated, perMinute, upstreams } = typed;
  if (!isLoopback(host) && !typed.isBehindProxy) {
    throw usage(
      `Cannot serve at ${quoted(host)}: keys of publishers would be readable on their way`,
      "Put a proxy with TLS before it on this machine; or, where the proxy is at another address, " +
        "give --behind-proxy",
    );
  }
  const signer = typed.key === undefined ? undefined : signerOf(await keyIn(typed.key));
  const ending = new AbortController();
  using _ = listening(ending);
  const own = hubProcess();
  const log = (line: object) =>
    tell(JSON.stringify({ time: new Date().toISOString(), ...line }), own);
  const warn = (message: string) =>
    typed.isLogged ? log({ level: "warning", message }) : tell(`warning: ${message}`, own);
  await using store = await openStore(data);
  const metrics = new Metrics();
  const observe = (request: RequestRecord) => {
    metrics.count(request);
    if (typed.isLogged) log({ level: "info", ...request });
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
    needsClientKeys: typed.needsClientKeys,
    privateHosts: new Set(upstreams),
  });
  await using counted = typed.metrics === undefined
    ? undefined
    : await openMetrics({ metrics, store, port: typed.metrics });
  if (!hub.isLocal) {
    warn(
      `clients that connect to ${host} directly read without TLS; only the proxy should reach it`,
    );
  }
  const url = publicUrl ?? hub.url;
  const more = counted && { metrics: `${counted.origin}/metrics` };
  print(
    json
      ? JSON.stringify({ ...registryEntry(hub.url, signer), ...more })
      : startText(url, { data: placeOf(data), signer, needsKey: typed.needsClientKeys }),
  );
  keepOnTerminal();
  const { signal } = ending;
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

/** Aborts with the exit code of the first signal. The second one ends the process at once. */
function listening(ending: AbortController): Disposable {
  const { addSignalListener, removeSignalListener } = hubProcess();
  const names = Object.keys(ENDINGS) as (keyof typeof ENDINGS)[]; // the keys of a literal
  const listeners = names.map((name) => [name, () => end(ENDINGS[name])] as const);
  const stop = () => {
    for (const [name, listener] of listeners.splice(0)) {
      removeSignalListener(name, listener);
    }
  };
  const end = (code: number) => {
    stop();
    ending.abort(code);
  };
  for (const [name, listener] of listeners) addSignalListener(name, listener);
  return { [Symbol.dispose]: stop };
}
