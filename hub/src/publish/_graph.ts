/**
 * Reads a module and the files that it imports, before any of them is bundled or run.
 *
 * @module
 */

import { dirname, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { integrityOf, PmlError, quoted, readRegular } from "@casys/pml/registry";
import { readLock, type RemoteLock } from "./_lock.ts";

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
  /** The name in the bundle: the path relative to the folder of the module, or the URL. */
  readonly name: string;
  /** The URLs of its imports, by their specifiers. */
  readonly imports: ReadonlyMap<string, string>;
}

/** The maximum number of files, of bytes of all files, and of bytes of one file. */
const LIMITS = { files: 1_000, bytes: 10_000_000, file: 2_000_000 };
const REMOTE_MS = 30_000;

/** Reads a module and its imports. Throws `CONFIG_INVALID` if they cannot be bundled. */
export async function readGraph(path: string, signal: AbortSignal): Promise<Graph> {
  const real = await Deno.realPath(path);
  const folder = dirname(real);
  const entry = pathToFileURL(real).href;
  const walk = { entry, folder, lock: readLock(folder), signal };
  const files = new Map<string, GraphFile>();
  const queue = [{ url: entry, importer: entry }];
  let bytes = 0;
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const { url, importer } = next;
    if (files.has(url)) continue;
    if (files.size === LIMITS.files) {
      throw publishError(importer, `it imports more than ${LIMITS.files} files`);
    }
    const file = await readFile(url, { importer, ...walk });
    bytes += file.bytes.length;
    if (bytes > LIMITS.bytes) {
      throw publishError(importer, `its files have more than ${LIMITS.bytes} bytes`);
    }
    files.set(url, file);
    for (const target of file.imports.values()) queue.push({ url: target, importer: url });
  }
  return { entry, files };
}

/** The values that reading every file needs. */
interface Walk {
  readonly entry: string;
  readonly folder: string;
  readonly lock: RemoteLock;
  readonly signal: AbortSignal;
}

async function readFile(
  url: string,
  walk: Walk & { readonly importer: string },
): Promise<GraphFile> {
  const bytes = url.startsWith("https:") ? await fetchRemote(url, walk) : readLocal(url, walk);
  const text = textOf(bytes, url);
  const name = url.startsWith("https:")
    ? url
    : relative(walk.folder, fileURLToPath(url)).replaceAll(sep, "/");
  return { text, bytes, name, imports: await parseImports(text, { url, walk }) };
}

/** Reads a file by its real path, which must lie in the folder of the module. */
function readLocal(url: string, { importer, folder, entry }: Walk & { readonly importer: string }) {
  const path = fileURLToPath(url);
  const real = realPath(path, importer);
  if (url !== entry && !real.startsWith(folder + sep)) {
    throw publishError(
      importer,
      `it imports ${quoted(path, 200)}, which is outside the folder of the module`,
    );
  }
  const { bytes } = readRegular(real, { most: LIMITS.file });
  return bytes;
}

function realPath(path: string, importer: string): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    throw publishError(importer, `it imports ${quoted(path, 200)}, and there is no such file`);
  }
}

/** Fetches a file of another host. Its hash must be the one in `deno.lock`. */
async function fetchRemote(
  url: string,
  { importer, lock, signal }: Walk & { readonly importer: string },
) {
  const expectedHash = lock.hashes.get(url);
  if (expectedHash === undefined) {
    throw publishError(
      importer,
      `it imports ${quoted(url, 200)}, but deno.lock does not contain its hash`,
      {
        hint: "Review the file, and run `deno cache` with a deno.lock in the folder of the module",
      },
    );
  }
  const bytes = await fetchBytes(url, { importer, signal });
  const [, hash = ""] = integrityOf(bytes).split("-");
  if (hash === expectedHash) return bytes;
  throw publishError(importer, `${quoted(url, 200)} has another hash than in deno.lock`, {
    hint: "Review the change, then record the new hash with `deno cache --reload`",
  });
}

async function fetchBytes(
  url: string,
  { importer, signal }: { readonly importer: string; readonly signal: AbortSignal },
): Promise<Uint8Array> {
  const abortSignal = AbortSignal.any([signal, AbortSignal.timeout(REMOTE_MS)]);
  try {
    const response = await fetch(url, { redirect: "error", signal: abortSignal });
    if (!response.ok || response.body === null) throw new Error(`status ${response.status}`);
    const parts: Uint8Array<ArrayBuffer>[] = [];
    let length = 0;
    for await (const part of response.body) {
      length += part.length;
      if (length > LIMITS.file) throw new Error(`more than ${LIMITS.file} bytes`);
      parts.push(part);
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  } catch (error) {
    const { message, cause } = error instanceof Error ? error : new Error(String(error));
    const why = quoted(cause instanceof Error ? cause.message : message, 300);
    throw publishError(importer, `${quoted(url, 200)} cannot be loaded: ${why}`, {
      hint: "Check the network and the address",
    });
  }
}

async function parseImports(
  text: string,
  { url, walk }: { readonly url: string; readonly walk: Walk },
): Promise<ReadonlyMap<string, string>> {
  const { init, parse } = await import("es-module-lexer");
  await init;
  const parsed = (() => {
    try {
      return parse(text)[0];
    } catch {
      throw publishError(url, "it is not valid TypeScript", {
        hint: "Fix it; `pml check FILE` shows where",
      });
    }
  })();
  const targets = new Map<string, string>();
  for (const parsedImport of parsed) {
    if (
      "typeOnly" in parsedImport && parsedImport.typeOnly || parsedImport.type === "import-meta"
    ) continue;
    if (parsedImport.specifier === undefined) {
      throw publishError(url, "it imports a module whose name is computed at run time", {
        hint: "Write the name of the imported file in quotes",
      });
    }
    if (parsedImport.attributesStart !== undefined && parsedImport.attributesStart >= 0) {
      throw publishError(url, `the import of ${quoted(parsedImport.specifier)} has attributes`, {
        hint: "Only modules can be bundled; move texts and JSON into a module",
      });
    }
    targets.set(
      parsedImport.specifier,
      resolveSpecifier(parsedImport.specifier, { url, lock: walk.lock }),
    );
  }
  return targets;
}

/** Returns the URL for a specifier in the file at `url`. */
function resolveSpecifier(
  specifier: string,
  { url, lock }: { readonly url: string; readonly lock: RemoteLock },
): string {
  const isRelative = /^\.{0,2}\//.test(specifier);
  if (!isRelative && !specifier.startsWith("https://")) {
    throw publishError(url, `it imports ${quoted(specifier)}`, { hint: hintFor(specifier) });
  }
  const target = URL.parse(specifier, url);
  const isPlain = target !== null && target.username === "" && target.password === "";
  const isAllowed = url.startsWith("file:") || target?.protocol === "https:";
  if (isPlain && isAllowed) return lock.redirects.get(target.href) ?? target.href;
  throw publishError(url, `it imports ${quoted(specifier)}, which is not a usable address`);
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
    throw publishError(url, "it is not UTF-8 text");
  }
}

function publishError(
  url: string,
  why: string,
  { hint }: { readonly hint?: string } = {},
): PmlError {
  const name = url.startsWith("file:") ? fileURLToPath(url) : url;
  return new PmlError("CONFIG_INVALID", `Cannot publish ${quoted(name, 300)}: ${why}`, {
    ...hint !== undefined && { hint },
  });
}
