/**
 * `pml registry serve`: serves a folder as a registry until a signal comes.
 *
 * @module
 */

import { once } from "node:events";
import { openAuthors } from "../authoring/open_authors.ts";
import { readEnvironment } from "../config/env.ts";
import { counted } from "../core/amounts.ts";
import { PmlError } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import { infoAfterLinks, isInside, realPathIfAny } from "../io/path_info.ts";
import { readRegularText } from "../io/regular_file.ts";
import { unknownWords, usage } from "./_failure.ts";
import type { CommandInput } from "./_command_context.ts";
import { parsePort } from "./_port.ts";
import { Signals } from "./_signals.ts";
import { commandProcess, logWriter, typedPath } from "./command_process.ts";
import { print, tell } from "./out.ts";

const PORT = "3004";

/** Writes warnings about a served folder. */
const WARNINGS = {
  warn(message: string): void {
    tell(`warning: ${message}`);
  },
};

/** Serves a folder until a signal comes, and returns the exit code. */
export async function serveRegistry(input: CommandInput): Promise<number> {
  const { words: [subcommand = "", folder = ""], host = "127.0.0.1", json } = input;
  if (subcommand !== "serve") {
    throw unknownWords("registry", { ...input, known: ["serve"] });
  }
  const path = parseFolder(folder);
  const port = parsePort(input.port ?? PORT, USAGE_HINT);
  const privateKey = typeof input.key === "string" ? readSigningKey(input.key, path) : undefined;
  using signals = new Signals();
  const { signal } = signals;
  const { openApp } = await import("../app/app.ts");
  const { cwd, variables } = commandProcess();
  const environment = readEnvironment(variables, cwd);
  await using app = await openApp({ cwd, environment, write: logWriter() });
  const options = { host, port, log: WARNINGS, signal, privateKey, publicUrl: input.url };
  await using served = await (await openAuthors(app)).serveRegistry(path, options);
  const { url, size: servers, isLocal, publicKey } = served;
  if (!isLocal) {
    WARNINGS.warn(`anyone who reaches ${host} can read all of ${quoted(path, 300)}; ${NO_TLS}`);
  }
  const publicUrl = input.url ?? url;
  const entry = publicKey === undefined ? publicUrl : { url: publicUrl, public_key: publicKey };
  const text = `Serving ${counted(servers, "server")} of ${visible(path, 300)}`;
  print(
    json
      ? JSON.stringify({ url, servers, ...publicKey && { public_key: publicKey } })
      : `${text} at ${url}\n  In .pml.json: "registries": [${JSON.stringify(entry)}]`,
  );
  if (!signal.aborted) await once(signal, "abort");
  return signals.exitCode ?? 0;
}

const USAGE_HINT = "Write `pml registry serve FOLDER`";
const NO_TLS = "it serves without TLS, which clients on other machines require";

function parseFolder(folder: string): string {
  const path = folder === "" ? undefined : realPathIfAny(typedPath(folder));
  if (path !== undefined && infoAfterLinks(path)?.isDirectory) return path;
  throw usage(`Cannot serve ${quoted(folder, 300)}: there is no such folder`, USAGE_HINT);
}

/** Reads the signing key. Throws `USAGE` if it is in the served folder, where every client gets it. */
function readSigningKey(file: string, served: string): string {
  const refused = (why: string) =>
    usage(
      `Cannot sign with ${quoted(file, 300)}: ${why}`,
      "Keep the key in a place that only you can read",
    );
  try {
    const path = Deno.realPathSync(typedPath(file));
    if (isInside(served, path)) throw refused("it is in the folder that is served");
    return readRegularText(path);
  } catch (error) {
    throw error instanceof PmlError ? error : refused("it cannot be read");
  }
}
