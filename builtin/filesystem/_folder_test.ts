/**
 * Makes a folder for one test, and calls the tools of the built-in `filesystem` in it.
 *
 * @module
 */

import assert from "node:assert/strict";
import * as tools from "./filesystem.ts";

export type Name = keyof typeof tools;
export interface Result {
  readonly content: readonly { readonly type: string; readonly [key: string]: unknown }[];
}

/**
 * A folder of one test, and the tools that work in it. `at:` at the start of a text stands for the
 * folder.
 */
export class Folder implements Disposable {
  readonly path = Deno.realPathSync(Deno.makeTempDirSync());
  readonly steps: number[] = [];
  signal = new AbortController().signal;

  constructor(files: Readonly<Record<string, string | Uint8Array>> = {}) {
    for (const [name, content] of Object.entries(files)) this.put(name, content);
  }

  put(name: string, content: string | Uint8Array): void {
    const path = `${this.path}/${name}`;
    Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true });
    if (typeof content === "string") Deno.writeTextFileSync(path, content);
    else Deno.writeFileSync(path, content);
  }

  get(name: string): string {
    return Deno.readTextFileSync(`${this.path}/${name}`);
  }

  names(): string[] {
    return [...Deno.readDirSync(this.path)].map(({ name }) => name).sort();
  }

  async run(name: Name, args: object = {}): Promise<unknown> {
    const host = {
      workspace: this.path,
      signal: this.signal,
      progress: ({ progress }: { progress: number }) => void this.steps.push(progress),
    };
    const placed = JSON.parse(JSON.stringify(args).replaceAll('"at:', `"${this.path}/`));
    // JSON from outside: the gateway checks it against the schema.
    const found = await tools[name](placed as never, host);
    return typeof found === "string" ? found.replaceAll(`${this.path}/`, "at:") : found;
  }

  async fails(name: Name, args: object, message: RegExp): Promise<void> {
    await assert.rejects(this.run(name, args), (error: Error) => {
      assert.match(error.message.replaceAll(`${this.path}/`, "at:"), message);
      return true;
    });
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.path, { recursive: true });
  }
}

/** Replaces a function of `Deno` until the end of the block. */
export function swap<K extends "readFile" | "rename" | "lstat" | "readDir">(
  name: K,
  other: typeof Deno[K],
) {
  const real = Deno[name];
  Deno[name] = other;
  return { [Symbol.dispose]: () => void (Deno[name] = real) };
}

export function lines(content: string): string[] {
  const found = content.split("\n");
  if (found.at(-1) === "") found.pop();
  return found;
}
