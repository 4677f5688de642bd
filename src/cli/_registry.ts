/**
 * `pml registry serve`: a folder as a registry, until a signal comes.
 *
 * @module
 */

import { once } from "node:events";
import { quoted, visible } from "../core/json.ts";
import { usage } from "./_failure.ts";
import type { Typed } from "./_house.ts";
import { Signals } from "./_signals.ts";
import { print, tell } from "./out.ts";

const PORT = "3004";

/** Serves a folder; a signal ends it, and gives the exit code. */
export async function registry(typed: Typed): Promise<number> {
  const { words: [verb = "", folder = ""], host = "127.0.0.1", json } = typed;
  if (verb !== "serve") {
    throw usage(`Cannot run ${quoted(`pml registry ${verb}`)}: there is no such command`, HOW);
  }
  const path = folderOf(folder);
  const port = portOf(typed.port ?? PORT);
  using signals = new Signals();
  const { signal } = signals;
  const { openApp } = await import("../app.ts");
  await using app = await openApp({ cwd: Deno.cwd() });
  const warn = (message: string) => tell(`warning: ${message}`);
  await using served = await (await app.authors()).serveRegistry(path, {
    host,
    port,
    warn,
    signal,
  });
  const { url, size, isLocal } = served;
  if (!isLocal) warn(`whoever reaches ${host} can read all of ${quoted(path, 300)}; ${PLAIN}`);
  const said = `Serving ${size} server${size === 1 ? "" : "s"} of ${visible(path, 300)} at ${url}`;
  print(json ? JSON.stringify({ url, servers: size }) : `${said}\n${CONFIGURE(url)}`);
  if (!signal.aborted) await once(signal, "abort");
  return signals.exitCode ?? 0;
}

const HOW = "Write `pml registry serve FOLDER`";
const PLAIN = "it is read-only, and without TLS, which clients ask for beyond this machine";
const CONFIGURE = (url: string) => `  In .pml.json: "registries": [${JSON.stringify(url)}]`;

function folderOf(folder: string): string {
  try {
    const path = Deno.realPathSync(folder);
    if (Deno.statSync(path).isDirectory) return path;
  } catch {
    // what follows says so
  }
  throw usage(`Cannot serve ${quoted(folder, 300)}: there is no such folder`, HOW);
}

function portOf(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw usage(`Cannot listen at port ${quoted(text)}: it is no number up to 65535`, HOW);
}
