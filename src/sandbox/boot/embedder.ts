/**
 * The child that makes vectors of texts: it loads the library and the model once, and answers line
 * by line until its input ends.
 *
 * @module
 */

import { stdinLines } from "./lines.ts";

/** The first line of its input: addresses of files. */
export interface EmbedderStart {
  readonly library: string;
  readonly wasm: string;
  /** The folder of the model, with a slash at its end. */
  readonly model: string;
  /** How the numbers of the model are kept, as the library calls it. */
  readonly dtype: string;
}

/** Any other line of its input. */
export interface EmbedderRequest {
  readonly id: number;
  readonly texts: readonly string[];
}

/** A line of its output: vectors as base64 of 32-bit floats, or why there are none. */
export interface EmbedderAnswer {
  /** 0 tells that the model is loaded. */
  readonly id: number;
  readonly vectors?: readonly string[];
  readonly error?: string;
}

/** What of the library is used. */
interface Library {
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

/** Loads the model and answers until the input ends. */
export async function embedder(): Promise<void> {
  const { exit, stdout } = Deno;
  // A model loaded by a library that prints would talk where only answers may stand.
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
    embed = await loaded(JSON.parse(value));
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

async function loaded({ library, wasm, model, dtype }: EmbedderStart): Promise<Pipeline> {
  const binary = await Deno.readFile(new URL(wasm));
  // With these it takes this for a browser, or for Node, and reaches for what is not granted.
  for (const name of ["caches", "process"]) Reflect.deleteProperty(globalThis, name);
  const { env, pipeline }: Library = await import(library);
  env.allowRemoteModels = false;
  env.allowLocalModels = true;
  env.useBrowserCache = false;
  // A name of its own: that of the folder may be none that the library takes for one.
  env.localModelPath = PLACE;
  env.fetch = (address) => fetch(`${address}`.replace(`${PLACE}${NAME}/`, model));
  const { wasm: runtime } = env.backends.onnx;
  runtime.wasmBinary = binary;
  // Its own would be an address in the network.
  runtime.wasmPaths = {};
  runtime.numThreads = 1;
  return await pipeline("feature-extraction", NAME, {
    dtype,
    device: "wasm",
    // Numbers that are kept small are made large once, and not again for each text.
    session_options: { extra: { session: { disable_quant_qdq: "1" } } },
  });
}
