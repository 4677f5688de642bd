/**
 * The file functions of `Deno`, over the broker.
 *
 * @module
 */

import { type Answer, type Asking, denied, infoOf } from "./asking.ts";
import { BrokeredFile } from "./fs_file.ts";

// deno-lint-ignore no-explicit-any -- the arguments of a module are whatever it passes
type Given = any[];

interface Brokered {
  readonly op: string;
  /** What is sent, from what the module passed. */
  readonly send: (...given: Given) => unknown[];
  /** What the module gets, from what came back. */
  readonly give: (answer: Answer) => unknown;
}

/** Gives the brokered functions by their names in `Deno`. */
export function brokeredFiles(asking: Asking): Record<string, unknown> {
  const functions: Record<string, unknown> = { FsFile: BrokeredFile };
  for (const [name, { op, send, give }] of Object.entries(table(asking))) {
    functions[name] = async (...given: Given) => {
      stopIfAborted(given);
      return give(await asking.later(op, send(...given)));
    };
    functions[`${name}Sync`] = (...given: Given) => give(asking.now(op, send(...given)));
  }
  const list = table(asking).readDir?.send ?? (() => []);
  functions.readDir = async function* (path: unknown) {
    yield* (await asking.later("readDir", list(path))).value as Deno.DirEntry[]; // the broker's list
  };
  functions.writeFile = streamed(functions.writeFile, functions.open);
  functions.writeTextFile = streamed(functions.writeTextFile, functions.open);
  return { ...functions, ...temporary(functions) };
}

function table(asking: Asking): Record<string, Brokered> {
  const file = ({ value }: Answer) => new BrokeredFile(asking, Number(value));
  const bytes = (answer: Answer) => answer.bytes ?? new Uint8Array();
  const nothing = () => undefined;
  const one = (path: unknown) => [textOf(path)];
  const two = (from: unknown, to: unknown) => [textOf(from), textOf(to)];
  const made = { read: true, write: true, truncate: true, create: true };
  return {
    stat: { op: "stat", send: one, give: infoOf },
    lstat: { op: "lstat", send: one, give: infoOf },
    realPath: { op: "realPath", send: one, give: ({ value }) => value },
    readLink: { op: "readLink", send: one, give: ({ value }) => value },
    readDir: {
      op: "readDir",
      send: one,
      give: ({ value }) => (value as Deno.DirEntry[]).values(), // the broker's list
    },
    readFile: { op: "readFile", send: one, give: bytes },
    readTextFile: {
      op: "readFile",
      send: one,
      give: (answer) => new TextDecoder().decode(bytes(answer)),
    },
    writeFile: { op: "writeFile", send: (p, data, o) => writing(p, data, o), give: nothing },
    writeTextFile: {
      op: "writeFile",
      send: (p, data, o) => writing(p, new TextEncoder().encode(String(data)), o),
      give: nothing,
    },
    open: { op: "open", send: (p, o) => [textOf(p), plain(o ?? { read: true })], give: file },
    create: { op: "open", send: (p) => [textOf(p), made], give: file },
    mkdir: { op: "mkdir", send: (p, o) => [textOf(p), plain(o)], give: nothing },
    remove: { op: "remove", send: (p, o) => [textOf(p), plain(o)], give: nothing },
    rename: { op: "rename", send: two, give: nothing },
    copyFile: { op: "copyFile", send: two, give: nothing },
    truncate: {
      op: "truncate",
      send: (p, length) => [textOf(p), Number(length ?? 0)],
      give: nothing,
    },
  };
}

function writing(path: unknown, data: Uint8Array, options: unknown): unknown[] {
  return [textOf(path), data, { create: true, ...plain(options) }];
}

/** Lets a function that writes take a stream too, as Deno's do. */
function streamed(write: unknown, open: unknown): unknown {
  const [whole, opened] = [write, open] as ((...given: Given) => Promise<unknown>)[]; // made above
  return async (path: unknown, data: unknown, options: Record<string, unknown> = {}) => {
    if (!(data instanceof ReadableStream)) return void await whole?.(path, data, options);
    const append = options.append === true;
    const flags = { create: true, ...options, write: true, append, truncate: !append };
    const file = await opened?.(path, flags) as BrokeredFile; // what open gives
    const encode = new TransformStream<unknown, Uint8Array>({
      transform: (chunk, to) =>
        to.enqueue(chunk instanceof Uint8Array ? chunk : new TextEncoder().encode(String(chunk))),
    });
    return void await data.pipeThrough(encode).pipeTo(file.writable);
  };
}

function temporary(functions: Record<string, unknown>): Record<string, unknown> {
  // deno-lint-ignore no-explicit-any -- both are functions of the table above
  const { open, openSync, mkdir, mkdirSync } = functions as Record<string, any>;
  const fresh = { write: true, createNew: true, mode: 0o600 };
  return {
    makeTempFile: async (options: unknown) => {
      const path = freshName(options);
      (await open(path, fresh)).close();
      return path;
    },
    makeTempFileSync: (options: unknown) => {
      const path = freshName(options);
      openSync(path, fresh).close();
      return path;
    },
    makeTempDir: async (options: unknown) => {
      const path = freshName(options);
      await mkdir(path, { mode: 0o700 });
      return path;
    },
    makeTempDirSync: (options: unknown) => {
      const path = freshName(options);
      mkdirSync(path, { mode: 0o700 });
      return path;
    },
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

function stopIfAborted(given: Given): void {
  for (const one of given) {
    if (typeof one === "object" && one?.signal instanceof AbortSignal) one.signal.throwIfAborted();
  }
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
