/**
 * Reads the folder of an embedding model: which files are used, and whether they are those of the
 * first use.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { basename, join, parse } from "node:path";
import { PmlError } from "../../core/errors.ts";
import { sha256 } from "../../core/hash.ts";
import { isObject, quoted } from "../../core/json.ts";
import { followedInfo, namesInFolder, stampOf } from "../../io/place.ts";
import { writePrivate } from "../../io/private_files.ts";
import { openRegular, readRegularText } from "../../io/regular_file.ts";
import { fileHash } from "../../io/tree.ts";

/** A model in its folder. */
export interface EmbeddingModel {
  /** The real path of the folder. */
  readonly folder: string;
  /** The number format of the model, by the library's name for it. */
  readonly dtype: string;
  /** The files that are used, relative to the folder. */
  readonly files: readonly string[];
  readonly bytes: number;
}

/** The pin of a model that was used. */
interface ModelPin {
  readonly folder: string;
  readonly hash: string;
  /** A stamp that shows quickly that no file has changed. */
  readonly stamp: string;
}

/** A model as it is now, and whether it differs from its pin. */
export interface SeenModel extends ModelPin {
  readonly isOther: boolean;
}

/** The text files that every model has. */
export const MODEL_TEXTS = ["config.json", "tokenizer.json", "tokenizer_config.json"];

/** The endings of model files, by number format. The first that exists is used. */
const KEPT: Readonly<Record<string, string>> = {
  q8: "_quantized",
  int8: "_int8",
  uint8: "_uint8",
  q4: "_q4",
  fp32: "",
  bnb4: "_bnb4",
  fp16: "_fp16",
  q4f16: "_q4f16",
};
const DATA = /^_data(_\d+)?$/;
const MOST_TEXT = 64 << 20;
const MOST_BYTES = 4 * 1024 ** 3;
const WANTED = "Give the folder of its config.json, or run `pml search install-model`";

/** Reads the folder of a model. Throws `CONFIG_INVALID` with the missing part. */
export function readModel(path: string): EmbeddingModel {
  const bad = (why: string) =>
    new PmlError("CONFIG_INVALID", `Cannot use the model in ${quoted(path, 400)}: ${why}`, {
      hint: WANTED,
    });
  const sizeOf = (name: string) => {
    const info = followedInfo(join(path, name));
    return info?.isFile ? info.size : undefined;
  };
  if (!followedInfo(path)?.isDirectory) throw bad("there is no such folder");
  const folder = Deno.realPathSync(path);
  // Deno's list of permissions cannot contain a path with a comma.
  if (folder.includes(",")) throw bad("its path has a comma in it");
  for (const name of MODEL_TEXTS) {
    const size = sizeOf(name);
    if (size === undefined) throw bad(`it has no ${name}`);
    if (size > MOST_TEXT) throw bad(`its ${name} is larger than ${MOST_TEXT} bytes`);
    if (!isJson(join(folder, name))) throw bad(`its ${name} is not a JSON object`);
  }
  const dtype = Object.keys(KEPT).find((one) => sizeOf(onnxOf(one)) !== undefined);
  if (dtype === undefined) {
    throw bad(`it has no ${onnxOf("q8")}, ${onnxOf("fp32")} or other known model file`);
  }
  const files = [...MODEL_TEXTS, onnxOf(dtype), ...beside(folder, onnxOf(dtype))];
  for (const name of files) {
    if (sizeOf(name) === undefined) throw bad(`its ${name} is not a file`);
    // A program that can write to the target of a link could change the model.
    if (Deno.realPathSync(join(folder, name)) !== join(folder, name)) {
      throw bad(
        `its ${name} is a link; copy the model with the files behind its links (cp -rL)`,
      );
    }
  }
  const bytes = files.reduce((sum, name) => sum + (sizeOf(name) ?? 0), 0);
  if (bytes > MOST_BYTES) throw bad(`it is larger than ${MOST_BYTES} bytes`);
  return { folder, dtype, files, bytes };
}

/** Keeps the hash of each model at its first use, in the PML home. */
export class ModelPins {
  readonly #folder: string;

  /** Takes the PML home. */
  constructor(home: string) {
    this.#folder = join(home, "embedder", "pins");
  }

  /**
   * Returns the hash of a model, and pins it at its first use. Throws `INTEGRITY_MISMATCH` if it
   * differs from the pin.
   */
  async hashOf(model: EmbeddingModel): Promise<string> {
    const state = await this.look(model);
    this.mustBeKnown(state);
    if (this.#pinOf(model.folder)?.stamp !== state.stamp) await this.accept(state);
    return state.hash;
  }

  /** Returns the model as it is now, without pinning it. */
  async look(model: EmbeddingModel): Promise<SeenModel> {
    const { folder } = model;
    const pin = this.#pinOf(folder);
    const stamp = stampOfAll(model);
    if (pin?.stamp === stamp) return { ...pin, isOther: false };
    const hash = await hashOf(model);
    return { folder, hash, stamp, isOther: pin !== undefined && pin.hash !== hash };
  }

  /** Pins a model that the user accepted, in place of any earlier pin. */
  async accept({ folder, hash, stamp }: SeenModel): Promise<void> {
    await writePrivate(this.#fileOf(folder), { folder, hash, stamp });
  }

  /** Throws `INTEGRITY_MISMATCH` if a model differs from its pin. */
  mustBeKnown({ folder, isOther }: SeenModel): void {
    if (!isOther) return;
    const hint = "If you changed it, accept it with " +
      `\`pml search install-model ${JSON.stringify(folder)}\`, or remove ${
        quoted(this.#fileOf(folder), 400)
      }`;
    throw unusable(folder, "its files changed since their first use", hint);
  }

  #fileOf(folder: string): string {
    return join(this.#folder, `${basename(folder)}-${sha256(folder).slice(0, 16)}.json`);
  }

  #pinOf(folder: string): ModelPin | undefined {
    const path = this.#fileOf(folder);
    try {
      const json: unknown = JSON.parse(readRegularText(path));
      if (isPin(json)) return json;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined;
    }
    // An unreadable pin must not make a model look like a new one.
    const hint = `Remove ${quoted(path, 400)} to pin the model as it is now`;
    throw unusable(folder, "its pin cannot be read", hint);
  }
}

function unusable(folder: string, why: string, hint: string): PmlError {
  const message = `Cannot use the model in ${quoted(folder, 400)}: ${why}`;
  return new PmlError("INTEGRITY_MISMATCH", message, {
    hint: `Search uses the built-in model. ${hint}`,
  });
}

/** Returns the model file for a number format. */
export function onnxOf(dtype: string): string {
  return `onnx/model${KEPT[dtype] ?? ""}.onnx`;
}

/** Returns the data files of a large model, whose names follow the model file's name. */
function beside(folder: string, onnx: string): readonly string[] {
  const { dir, base } = parse(onnx);
  return namesInFolder(join(folder, dir)).filter((name) =>
    name.startsWith(base) && DATA.test(name.slice(base.length))
  )
    .sort().map((name) => `${dir}/${name}`);
}

/**
 * Returns whether a file looks like a JSON object. Only its start is read, because it may be long.
 */
function isJson(path: string): boolean {
  try {
    using file = openRegular(path, { read: true, links: true });
    const head = new Uint8Array(64);
    const read = file.readSync(head) ?? 0;
    return new TextDecoder().decode(head.subarray(0, read)).trimStart().startsWith("{");
  } catch {
    return false;
  }
}

function isPin(record: unknown): record is ModelPin {
  return isObject(record) &&
    ["folder", "hash", "stamp"].every((key) => typeof record[key] === "string");
}

function stampOfAll({ folder, files }: EmbeddingModel): string {
  return sha256(JSON.stringify(files.map((name) => {
    return [name, stampOf(Deno.statSync(join(folder, name)))];
  })));
}

async function hashOf({ folder, files }: EmbeddingModel): Promise<string> {
  const all = createHash("sha256");
  for (const name of files) all.update(`${name} ${await fileHash(join(folder, name))}\n`);
  return all.digest("hex");
}
