/**
 * The file functions of `Deno`, implemented by requests to the broker.
 *
 * @module
 */

import type { HostClient } from "./host_client.ts";
import {
  type Any,
  brokerFunctions,
  compact,
  fileClass,
  type FunctionTable,
  infoOf,
} from "./fs_file.ts";

/** Returns the brokered functions by their names in `Deno`. */
export function brokeredFiles(client: HostClient): Record<string, unknown> {
  const { FsFile, opened } = fileClass(client);
  const functions = brokerFunctions(client, tableOf(opened));
  const { readDir, open } = functions;
  const writeFile = acceptStreams(functions.writeFile, open);
  return {
    ...functions,
    FsFile,
    readDir: (path: unknown) => {
      const text = textOf(path);
      return {
        async *[Symbol.asyncIterator]() {
          yield* await readDir(text);
        },
      };
    },
    writeFile,
    writeTextFile: (path: unknown, data: unknown, options?: unknown) =>
      data instanceof ReadableStream
        ? writeFile(path, data.pipeThrough(new TextEncoderStream()), options)
        : functions.writeTextFile(path, data, options),
  };
}

function tableOf(opened: (number: number) => unknown): FunctionTable {
  const onePath = (path: unknown, ...rest: unknown[]) => [textOf(path), ...rest];
  const twoPaths = (from: unknown, to: unknown) => [textOf(from), textOf(to)];
  const withOptions = (path: unknown, options?: unknown) => [textOf(path), plain(options)];
  const writing = (path: unknown, bytes: unknown, options: Any = {}) => [
    textOf(path),
    compact(bytes),
    { ...plain(options), create: options.create ?? true },
  ];
  const temporary = (options: Any = {}) => {
    const { dir, prefix, suffix } = options;
    return [{ dir: dir === undefined ? dir : textOf(dir), prefix, suffix }];
  };
  // Keeps a byte order mark at the start, as Deno does.
  const text = new TextDecoder("utf-8", { ignoreBOM: true });
  const encoder = new TextEncoder();
  const createFlags = { read: true, write: true, truncate: true, create: true };
  return {
    stat: { send: onePath, give: infoOf },
    lstat: { send: onePath, give: infoOf },
    realPath: { send: onePath },
    readLink: { send: onePath },
    readDir: { send: onePath, give: (entries) => entries.values() },
    readFile: { send: (path) => [textOf(path)] },
    readTextFile: {
      op: "readFile",
      send: (path) => [textOf(path)],
      give: (bytes) => text.decode(bytes),
    },
    writeFile: { send: writing },
    writeTextFile: {
      op: "writeFile",
      send: (path, data, options) => writing(path, encoder.encode(data), options),
    },
    open: { send: (path, options) => withOptions(path, options ?? { read: true }), give: opened },
    create: { op: "open", send: (path) => withOptions(path, createFlags), give: opened },
    mkdir: { send: withOptions },
    remove: { send: (path, { recursive } = {}) => [textOf(path), { recursive: !!recursive }] },
    rename: { send: twoPaths },
    copyFile: { send: twoPaths },
    truncate: { send: onePath },
    chmod: { send: onePath },
    utime: { send: onePath },
    makeTempFile: { send: temporary },
    makeTempDir: { send: temporary },
  };
}

/** Returns a write function that also takes a stream, as Deno's does. */
function acceptStreams(write: Any, open: Any) {
  return async (path: unknown, data: unknown, options: Any = {}): Promise<void> => {
    if (!(data instanceof ReadableStream)) return await write(path, data, options);
    const { mode, append = false, create = true, createNew = false, signal } = options;
    signal?.throwIfAborted();
    const flags = { mode, append, create, createNew, truncate: !append, write: true };
    await data.pipeTo((await open(path, flags)).writable, { signal });
  };
}

function textOf(path: unknown): string {
  if (!(path instanceof URL)) return `${path as string}`; // a symbol throws here, as in Deno
  if (path.protocol === "file:") return path.href;
  throw new TypeError("Must be a file URL");
}

/** Returns the options that can be sent: booleans, numbers and strings. */
function plain(options: unknown): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(options ?? {}).filter(([, value]) =>
      ["boolean", "number", "string"].includes(typeof value)
    ),
  );
}
