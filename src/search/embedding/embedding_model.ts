/**
 * Reads the folder of an embedding model: which files are used, and whether they have changed since
 * the first use.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { basename, join, parse } from "node:path";
import { PmlError } from "../../core/errors.ts";
import { sha256 } from "../../core/hash.ts";
import { isObject, quoted } from "../../core/json.ts";
import { infoAfterLinks, namesInFolder, stampOf } from "../../io/path_info.ts";
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

/** The stored state of a model at its first use, or when the user accepted it. */
interface ModelPin {
  readonly folder: string;
  readonly hash: string;
  /** A stamp that shows quickly that no file has changed. */
  readonly stamp: string;
}

/** A model as it is now. */
export interface CheckedModel extends ModelPin {
  /** Whether the model differs from its pin. */
  readonly hasChanged: boolean;
}

/** The text files that every model has. */
export const MODEL_TEXTS = ["config.json", "tokenizer.json", "tokenizer_config.json"];

/** The suffixes of model files, by number format. The first existing file is used. */
const SUFFIXES: Readonly<Record<string, string>> = {
  q8: "_quantized",
  int8: "_int8",
  uint8: "_uint8",
  q4: "_q4",
  fp32: "",
  bnb4: "_bnb4",
  fp16: "_fp16",
  q4f16: "_q4f16",
};
const DATA_SUFFIX = /^_data(_\d+)?$/;
const TEXT_MAX = 64 << 20;
const BYTES_MAX = 4 * 1024 ** 3;
const MODEL_HINT = "Give the folder of its config.json, or run `pml search install-model`";

/** Reads the folder of a model. Throws `CONFIG_INVALID` with the missing part. */
export function readModel(path: string): EmbeddingModel {
  const modelError = (why: string) =>
    new PmlError("CONFIG_INVALID", `Cannot use the model in ${quoted(path, 400)}: ${why}`, {
      hint: MODEL_HINT,
    });
  const sizeOf = (name: string) => {
    const info = infoAfterLinks(join(path, name));
    return info?.isFile ? info.size : undefined;
  };
  if (!infoAfterLinks(path)?.isDirectory) throw modelError("there is no such folder");
  const folder = Deno.realPathSync(path);
  // Deno's list of permissions cannot contain a path with a comma.
  if (folder.includes(",")) throw modelError("its path has a comma in it");
  for (const name of MODEL_TEXTS) {
    const size = sizeOf(name);
    if (size === undefined) throw modelError(`it has no ${name}`);
    if (size > TEXT_MAX) throw modelError(`its ${name} is larger than ${TEXT_MAX} bytes`);
    if (!isJson(join(folder, name))) throw modelError(`its ${name} is not a JSON object`);
  }
  const dtype = Object.keys(SUFFIXES).find((format) => sizeOf(modelFile(format)) !== undefined);
  if (dtype === undefined) {
    throw modelError(
      `it has no ${modelFile("q8")}, ${modelFile("fp32")} or other known model file`,
    );
  }
  const files = [...MODEL_TEXTS, modelFile(dtype), ...findDataFiles(folder, modelFile(dtype))];
  for (const name of files) {
    if (sizeOf(name) === undefined) throw modelError(`its ${name} is not a file`);
    // A program that can write to the target of a link could change the model.
    if (Deno.realPathSync(join(folder, name)) !== join(folder, name)) {
      throw modelError(
        `its ${name} is a link; copy the model with the files behind its links (cp -rL)`,
      );
    }
  }
  const bytes = files.reduce((sum, name) => sum + (sizeOf(name) ?? 0), 0);
  if (bytes > BYTES_MAX) throw modelError(`it is larger than ${BYTES_MAX} bytes`);
  return { folder, dtype, files, bytes };
}

/** Stores the hash of each model at its first use, in the PML home. */
export class ModelPins {
  readonly #folder: string;

  /** Creates the pins in a PML home. */
  constructor(home: string) {
    this.#folder = join(home, "embedder", "pins");
  }

  /**
   * Returns the hash of a model, and pins it at its first use. Throws `INTEGRITY_MISMATCH` if it
   * differs from the pin.
   */
  async hashOf(model: EmbeddingModel): Promise<string> {
    const state = await this.check(model);
    this.assertUnchanged(state);
    if (this.#pinOf(model.folder)?.stamp !== state.stamp) await this.accept(state);
    return state.hash;
  }

  /** Returns the model as it is now, without pinning it. */
  async check(model: EmbeddingModel): Promise<CheckedModel> {
    const { folder } = model;
    const pin = this.#pinOf(folder);
    const stamp = stampOfAll(model);
    if (pin?.stamp === stamp) return { ...pin, hasChanged: false };
    const hash = await hashOf(model);
    return { folder, hash, stamp, hasChanged: pin !== undefined && pin.hash !== hash };
  }

  /** Pins a model that the user accepted, in place of any earlier pin. */
  async accept({ folder, hash, stamp }: CheckedModel): Promise<void> {
    await writePrivate(this.#fileOf(folder), { folder, hash, stamp });
  }

  /** Throws `INTEGRITY_MISMATCH` if a model differs from its pin. */
  assertUnchanged({ folder, hasChanged }: CheckedModel): void {
    if (!hasChanged) return;
    const hint = "If you changed it, accept it with " +
      `\`pml search install-model ${JSON.stringify(folder)}\`, or remove ${
        quoted(this.#fileOf(folder), 400)
      }`;
    throw pinError(folder, "its files changed since their first use", hint);
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
    // With an unreadable pin, a changed model must not count as a new model.
    const hint = `Remove ${quoted(path, 400)} to pin the model as it is now`;
    throw pinError(folder, "its pin cannot be read", hint);
  }
}

function pinError(folder: string, why: string, hint: string): PmlError {
  const message = `Cannot use the model in ${quoted(folder, 400)}: ${why}`;
  return new PmlError("INTEGRITY_MISMATCH", message, {
    hint: `Search uses the built-in model. ${hint}`,
  });
}

/** Returns the model file for a number format. */
export function modelFile(dtype: string): string {
  return `onnx/model${SUFFIXES[dtype] ?? ""}.onnx`;
}

/** Returns the data files of a large model, whose names follow the model file's name. */
function findDataFiles(folder: string, onnx: string): readonly string[] {
  const { dir, base } = parse(onnx);
  return namesInFolder(join(folder, dir)).filter((name) =>
    name.startsWith(base) && DATA_SUFFIX.test(name.slice(base.length))
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
    const count = file.readSync(head) ?? 0;
    return new TextDecoder().decode(head.subarray(0, count)).trimStart().startsWith("{");
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
  const hash = createHash("sha256");
  for (const name of files) hash.update(`${name} ${await fileHash(join(folder, name))}\n`);
  return hash.digest("hex");
}
