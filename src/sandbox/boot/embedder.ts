/**
 * The child that turns texts into vectors. It loads the library and the model once, and answers one
 * line at a time until its input ends.
 *
 * @module
 */

import { stdinLines } from "./lines.ts";

/** The first line of its input: the URLs of files. */
export interface EmbedderStart {
  readonly library: string;
  readonly wasm: string;
  /** The folder of the model, with a slash at the end. */
  readonly model: string;
  /** The number format of the model, by the library's name for it. */
  readonly dtype: string;
}

/** Each later line of its input. */
export interface EmbedderRequest {
  readonly id: number;
  readonly texts: readonly string[];
}

/** One line of its output: vectors as base64 of 32-bit floats, or an error. */
export interface EmbedderAnswer {
  /** The id of the request; 0 reports that the model is loaded. */
  readonly id: number;
  readonly vectors?: readonly string[];
  readonly error?: string;
}

/** The parts of the library that PML uses. */
interface EmbeddingLibrary {
  readonly env: {
    allowRemoteModels: boolean;
    allowLocalModels: boolean;
    useBrowserCache: boolean;
    localModelPath: string;
    fetch: (address: string | URL) => Promise<Response>;
    readonly backends: {
      readonly onnx: {
        readonly wasm: { wasmBinary: Uint8Array; wasmPaths: object; numThreads: number };
      };
    };
  };
  pipeline(
    task: "feature-extraction",
    model: string,
    options: { readonly dtype: string; readonly device: "wasm"; readonly session_options: object },
  ): Promise<Pipeline>;
}

const PLACE = "file:///models/";
const NAME = "model";

type Pipeline = (
  texts: readonly string[],
  options: { readonly pooling: "mean"; readonly normalize: true },
) => Promise<{ readonly dims: readonly number[]; readonly data: Float32Array }>;

/** Loads the model and answers requests until the input ends. */
export async function embedder(): Promise<void> {
  const { exit, stdout } = Deno;
  // Stdout is only for answers, and the library may print.
  for (const word of ["log", "info", "debug"] as const) console[word] = console.error;
  const say = (answer: EmbedderAnswer) => {
    const bytes = new TextEncoder().encode(`${JSON.stringify(answer)}\n`);
    for (let at = 0; at < bytes.length;) at += stdout.writeSync(bytes.subarray(at));
  };
  const answered = async (id: number, work: () => Promise<readonly string[]>) => {
    try {
      say({ id, vectors: await work() });
    } catch (error) {
      say({ id, error: String(error).slice(0, 2_000) });
    }
  };
  const lines = stdinLines();
  const { value = "{}" } = await lines.next();
  let embed: Pipeline;
  await answered(0, async () => {
    embed = await loadModel(JSON.parse(value));
    return [];
  });
  for await (const line of lines) {
    const { id, texts }: EmbedderRequest = JSON.parse(line);
    await answered(id, async () => {
      const { dims, data } = await embed(texts, { pooling: "mean", normalize: true });
      const [count = 0, size = 0] = dims;
      return Array.from({ length: count }, (_, at) => {
        const vector = data.slice(at * size, (at + 1) * size);
        return new Uint8Array(vector.buffer).toBase64();
      });
    });
  }
  exit(0);
}

async function loadModel({ library, wasm, model, dtype }: EmbedderStart): Promise<Pipeline> {
  const binary = await Deno.readFile(new URL(wasm));
  // If these globals existed, the library would detect a browser or Node, and use denied APIs.
  for (const name of ["caches", "process"]) Reflect.deleteProperty(globalThis, name);
  const { env, pipeline }: EmbeddingLibrary = await import(library);
  env.allowRemoteModels = false;
  env.allowLocalModels = true;
  env.useBrowserCache = false;
  // The model gets a fixed name, because the library may not accept the folder's own name.
  env.localModelPath = PLACE;
  env.fetch = (address) => fetch(`${address}`.replace(`${PLACE}${NAME}/`, model));
  const { wasm: runtime } = env.backends.onnx;
  runtime.wasmBinary = binary;
  // The default is a URL on the network.
  runtime.wasmPaths = {};
  runtime.numThreads = 1;
  return await pipeline("feature-extraction", NAME, {
    dtype,
    device: "wasm",
    // Converts weights of a small format once instead of for each text.
    session_options: { extra: { session: { disable_quant_qdq: "1" } } },
  });
}
