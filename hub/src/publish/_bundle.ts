/**
 * Bundles a module with its imports into one file. The bundler is WebAssembly without access to files
 * or the network: it gets the texts of the module graph, and nothing else.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { PmlError, quoted, readRegular } from "@casys/pml/registry";
import type { Graph } from "./_graph.ts";

const WASM = "npm:esbuild-wasm@0.28.2/esbuild.wasm";
const WALKED = "walked";
/** A comment of the first line that describes the tools. */
const META = /^\/\/ __meta__:.*/;

/** Returns the code of a module with all that it imports: the same for the same files. */
export async function bundled({ entry, files }: Graph): Promise<string> {
  const esbuild = await import("esbuild-wasm/esm/browser.js");
  const wasm = readRegular(fileURLToPath(import.meta.resolve(WASM)), { links: true }).bytes;
  await esbuild.initialize({ wasmModule: await WebAssembly.compile(wasm), worker: false });
  const byName = new Map([...files.values()].map((file) => [file.name, file]));
  const nameOf = (url: string) => files.get(url)?.name;
  const first = files.get(entry);
  const [comment] = META.exec(first?.text ?? "") ?? [];
  const plugin = {
    name: WALKED,
    setup(build: Build) {
      build.onResolve({ filter: /.*/ }, ({ path, importer, kind }) => {
        const url = kind === "entry-point" ? entry : byName.get(importer)?.imports.get(path);
        const name = url === undefined ? undefined : nameOf(url);
        if (name !== undefined) return { path: name, namespace: WALKED };
        return { errors: [{ text: `${path} was not walked` }] };
      });
      build.onLoad({ filter: /.*/, namespace: WALKED }, ({ path }) => {
        const file = byName.get(path);
        return file === undefined
          ? { errors: [{ text: `${path} was not walked` }] }
          : { contents: file.text, loader: loaderOf(path) };
      });
    },
  };
  try {
    const { outputFiles } = await esbuild.build({
      entryPoints: ["module"],
      bundle: true,
      write: false,
      format: "esm",
      target: "esnext",
      charset: "utf8",
      logLevel: "silent",
      plugins: [plugin],
      ...comment !== undefined && { banner: { js: comment } },
    });
    return outputFiles[0]?.text ?? "";
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new PmlError("CONFIG_INVALID", `Cannot bundle ${quoted(first?.name ?? "")}: ${why}`, {
      hint: "Fix the module; `deno check FILE` says more",
    });
  } finally {
    await esbuild.stop();
  }
}

/** The build that a plugin of the bundler gets. */
interface Build {
  onResolve(
    options: { readonly filter: RegExp },
    resolve: (
      of: { readonly path: string; readonly importer: string; readonly kind: string },
    ) => object,
  ): void;
  onLoad(
    options: { readonly filter: RegExp; readonly namespace: string },
    load: (of: { readonly path: string }) => object,
  ): void;
}

function loaderOf(name: string): "ts" | "js" {
  return /\.[cm]?js$/.test(name.replace(/[?#].*/, "")) ? "js" : "ts";
}
