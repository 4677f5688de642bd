/**
 * Walks the files that a module imports, before anything of them is bundled or run.
 *
 * @module
 */

import { dirname, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { integrityOf, PmlError, quoted, readRegular } from "@casys/pml/registry";
import { lockOf, type RemoteLock } from "./_lock.ts";

/** The files of a module, by their URLs, with their resolved imports. */
export interface Graph {
  /** The URL of the module itself. */
  readonly entry: string;
  readonly files: ReadonlyMap<string, GraphFile>;
}

/** A file of a module. */
export interface GraphFile {
  readonly text: string;
  readonly bytes: Uint8Array;
  /** How it is called in the bundle: its path from the folder of the module, or its URL. */
  readonly name: string;
  /** The URLs that its imports mean. */
  readonly imports: ReadonlyMap<string, string>;
}

/** The limits of a graph. */
const MOST = { files: 1_000, bytes: 10_000_000, file: 2_000_000 };
const REMOTE_MS = 30_000;

/** Reads a module and its imports. Throws `CONFIG_INVALID` if they cannot be bundled. */
export async function graphOf(path: string, signal: AbortSignal): Promise<Graph> {
  const real = await Deno.realPath(path);
  const folder = dirname(real);
  const entry = pathToFileURL(real).href;
  const walk = { entry, folder, lock: lockOf(folder), signal };
  const files = new Map<string, GraphFile>();
  const queue = [{ url: entry, by: entry }];
  let bytes = 0;
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const { url, by } = next;
    if (files.has(url)) continue;
    if (files.size === MOST.files) throw unfit(by, `it imports more than ${MOST.files} files`);
    const file = await fileAt(url, { by, ...walk });
    bytes += file.bytes.length;
    if (bytes > MOST.bytes) throw unfit(by, `its files have more than ${MOST.bytes} bytes`);
    files.set(url, file);
    for (const target of file.imports.values()) queue.push({ url: target, by: url });
  }
  return { entry, files };
}

/** The state of a walk over a graph. */
interface Walk {
  readonly entry: string;
  readonly folder: string;
  readonly lock: RemoteLock;
  readonly signal: AbortSignal;
}

async function fileAt(url: string, walk: Walk & { readonly by: string }): Promise<GraphFile> {
  const bytes = url.startsWith("https:") ? await remoteBytes(url, walk) : localBytes(url, walk);
  const text = textOf(bytes, url);
  const name = url.startsWith("https:")
    ? url
    : relative(walk.folder, fileURLToPath(url)).replaceAll(sep, "/");
  return { text, bytes, name, imports: await importsOf(text, { url, walk }) };
}

/** Reads a file by its real path, which must lie in the folder of the module. */
function localBytes(url: string, { by, folder, entry }: Walk & { readonly by: string }) {
  const path = fileURLToPath(url);
  const real = realOf(path, by);
  if (url !== entry && !real.startsWith(folder + sep)) {
    throw unfit(by, `it imports ${quoted(path, 200)}, which is outside the folder of the module`);
  }
  const { bytes } = readRegular(real, { most: MOST.file });
  return bytes;
}

function realOf(path: string, by: string): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    throw unfit(by, `it imports ${quoted(path, 200)}, and there is no such file`);
  }
}

/** Loads a file of another host, which must be the one whose hash was recorded. */
async function remoteBytes(url: string, { by, lock, signal }: Walk & { readonly by: string }) {
  const recorded = lock.hashes.get(url);
  if (recorded === undefined) {
    throw unfit(by, `it imports ${quoted(url, 200)}, whose hash deno.lock does not have`, {
      hint:
        "Run `deno cache` with a deno.lock in the folder of the module, and read the file first",
    });
  }
  const bytes = await loaded(url, { by, signal });
  const [, found = ""] = integrityOf(bytes).split("-");
  if (found === recorded) return bytes;
  throw unfit(by, `${quoted(url, 200)} has another hash than deno.lock says`, {
    hint: "Review the change, then record the new hash with `deno cache --reload`",
  });
}

async function loaded(
  url: string,
  { by, signal }: { readonly by: string; readonly signal: AbortSignal },
): Promise<Uint8Array> {
  const ending = AbortSignal.any([signal, AbortSignal.timeout(REMOTE_MS)]);
  try {
    const response = await fetch(url, { redirect: "error", signal: ending });
    if (!response.ok || response.body === null) throw new Error(`status ${response.status}`);
    const parts: Uint8Array<ArrayBuffer>[] = [];
    let length = 0;
    for await (const part of response.body) {
      length += part.length;
      if (length > MOST.file) throw new Error(`more than ${MOST.file} bytes`);
      parts.push(part);
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  } catch (error) {
    const { message, cause } = error instanceof Error ? error : new Error(String(error));
    const why = quoted(cause instanceof Error ? cause.message : message, 300);
    throw unfit(by, `${quoted(url, 200)} cannot be loaded: ${why}`, {
      hint: "Check the network and the address",
    });
  }
}

async function importsOf(
  text: string,
  { url, walk }: { readonly url: string; readonly walk: Walk },
): Promise<ReadonlyMap<string, string>> {
  const { init, parse } = await import("es-module-lexer");
  await init;
  const parsed = (() => {
    try {
      return parse(text)[0];
    } catch {
      throw unfit(url, "it is not valid TypeScript", {
        hint: "Fix it; `pml check FILE` says where",
      });
    }
  })();
  const hashes = new Map<string, string>();
  for (const one of parsed) {
    if ("typeOnly" in one && one.typeOnly || one.type === "import-meta") continue;
    if (one.specifier === undefined) {
      throw unfit(url, "it imports a module whose name is computed at run time", {
        hint: "Import a file by a text in quotes",
      });
    }
    if (one.attributesStart !== undefined && one.attributesStart >= 0) {
      throw unfit(url, `the import of ${quoted(one.specifier)} has attributes`, {
        hint: "Only modules are bundled; put texts and JSON into a module",
      });
    }
    hashes.set(one.specifier, targetOf(one.specifier, { url, lock: walk.lock }));
  }
  return hashes;
}

/** Returns the URL that a specifier means. */
function targetOf(
  specifier: string,
  { url, lock }: { readonly url: string; readonly lock: RemoteLock },
): string {
  const isRelative = /^\.{0,2}\//.test(specifier);
  if (!isRelative && !specifier.startsWith("https://")) {
    throw unfit(url, `it imports ${quoted(specifier)}`, { hint: hintFor(specifier) });
  }
  const target = URL.parse(specifier, url);
  const isPlain = target !== null && target.username === "" && target.password === "";
  const isBelow = url.startsWith("file:") || target?.protocol === "https:";
  if (isPlain && isBelow) return lock.redirects.get(target.href) ?? target.href;
  throw unfit(url, `it imports ${quoted(specifier)}, which is no address of a file`);
}

function hintFor(specifier: string): string {
  if (/^(file|data|blob|http):/.test(specifier)) return "Import a file next to the module";
  if (specifier.startsWith("node:")) {
    return "The sandbox has no modules of Node; use the functions of Deno and `host`";
  }
  return "Packages are not bundled here. Make one file with `deno bundle --platform deno " +
    "-o NAME.js FILE`, review its content, and publish that";
}

function textOf(bytes: Uint8Array, url: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw unfit(url, "it is no text in UTF-8");
  }
}

function unfit(
  url: string,
  why: string,
  { hint }: { readonly hint?: string } = {},
): PmlError {
  const name = url.startsWith("file:") ? fileURLToPath(url) : url;
  return new PmlError("CONFIG_INVALID", `Cannot publish ${quoted(name, 300)}: ${why}`, {
    ...hint !== undefined && { hint },
  });
}
