/**
 * The file functions of `Deno`, over the broker.
 *
 * @module
 */

import { type Asking, denied } from "./asking.ts";
import { type Any, brokered, BrokeredFile, infoOf, type Table } from "./fs_file.ts";

/** Gives the brokered functions by their names in `Deno`. */
export function brokeredFiles(asking: Asking): Record<string, unknown> {
  const functions = brokered(asking, tableOf(asking));
  const { readDir, writeFile, writeTextFile, open } = functions;
  return {
    ...functions,
    FsFile: BrokeredFile,
    readDir: async function* (path: unknown) {
      yield* await readDir(path);
    },
    writeFile: streamed(writeFile, open),
    writeTextFile: streamed(writeTextFile, open),
  };
}

function tableOf(asking: Asking): Table {
  const one = (path: unknown) => [textOf(path)];
  const two = (from: unknown, to: unknown) => [textOf(from), textOf(to)];
  const withOptions = (path: unknown, options: unknown) => [textOf(path), plain(options)];
  const writing = (path: unknown, bytes: unknown, options?: unknown) => [
    textOf(path),
    bytes,
    { create: true, ...plain(options) },
  ];
  const file = (number: number) => new BrokeredFile(asking, number);
  const pathSent = (_: unknown, [path]: Any[]) => path;
  const made = { read: true, write: true, truncate: true, create: true };
  return {
    stat: { send: one, give: infoOf },
    lstat: { send: one, give: infoOf },
    realPath: { send: one },
    readLink: { send: one },
    readDir: { send: one, give: (entries) => entries.values() },
    readFile: { send: one },
    readTextFile: { op: "readFile", send: one, give: (bytes) => new TextDecoder().decode(bytes) },
    writeFile: { send: writing },
    writeTextFile: {
      op: "writeFile",
      send: (path, text, options) => writing(path, encoded(text), options),
    },
    open: { send: (path, options = { read: true }) => withOptions(path, options), give: file },
    create: { op: "open", send: (path) => withOptions(path, made), give: file },
    mkdir: { send: withOptions },
    remove: { send: withOptions },
    rename: { send: two },
    copyFile: { send: two },
    truncate: { send: (path, length = 0) => [textOf(path), length] },
    makeTempFile: {
      op: "writeFile",
      send: (options) => [freshName(options), encoded(""), { createNew: true, mode: 0o600 }],
      give: pathSent,
    },
    makeTempDir: {
      op: "mkdir",
      send: (options) => [freshName(options), { mode: 0o700 }],
      give: pathSent,
    },
  };
}

/** Lets a function that writes take a stream too, as Deno's do. */
function streamed(write: Any, open: Any): unknown {
  return async (path: unknown, data: unknown, options: Any = {}): Promise<void> => {
    if (!(data instanceof ReadableStream)) return await write(path, data, options);
    const truncate = options.append !== true;
    const file: BrokeredFile = await open(path, {
      create: true,
      ...options,
      write: true,
      truncate,
    });
    const encode = new TransformStream<unknown, Uint8Array>({
      transform: (chunk, to) => to.enqueue(chunk instanceof Uint8Array ? chunk : encoded(chunk)),
    });
    await data.pipeThrough(encode).pipeTo(file.writable);
  };
}

function freshName(options: unknown): string {
  const { dir, prefix = "", suffix = "" } = plain(options);
  if (dir === undefined) {
    throw denied('Cannot make a temporary file: pass "dir", a folder that the module may write');
  }
  const random = crypto.randomUUID().replaceAll("-", "").slice(0, 16);
  return `${textOf(dir)}/${prefix}${random}${suffix}`;
}

function encoded(text: unknown): Uint8Array {
  return new TextEncoder().encode(String(text));
}

function textOf(path: unknown): string {
  return path instanceof URL ? path.href : String(path);
}

/** Keeps what can cross: flags, numbers and texts. */
function plain(options: unknown): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(options ?? {}).filter(([, value]) =>
      ["boolean", "number", "string"].includes(typeof value)
    ),
  );
}
