/**
 * Bundles a module with its imports into one file. The bundler is WebAssembly without access to files
 * or the network, and gets only the texts of the module graph.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { PmlError, quoted, readRegular } from "@casys/pml/registry";
import type { Graph } from "./_graph.ts";

const WASM = "npm:esbuild-wasm@0.28.2/esbuild.wasm";
/** The namespace of the files of the module graph in esbuild. */
const NAMESPACE = "walked";
/** The comment in the first line of a module that describes its tools. */
const META_COMMENT = /^\/\/ __meta__:.*/;

/** Returns the code of a module with all its imports. The same files result in the same code. */
export async function bundle({ entry, files }: Graph): Promise<string> {
  const esbuild = await import("esbuild-wasm/esm/browser.js");
  const wasm = readRegular(fileURLToPath(import.meta.resolve(WASM)), { links: true }).bytes;
  await esbuild.initialize({ wasmModule: await WebAssembly.compile(wasm), worker: false });
  const byName = new Map([...files.values()].map((file) => [file.name, file]));
  const nameOf = (url: string) => files.get(url)?.name;
  const entryFile = files.get(entry);
  const [comment] = META_COMMENT.exec(entryFile?.text ?? "") ?? [];
  const plugin = {
    name: NAMESPACE,
    setup(build: Build) {
      build.onResolve({ filter: /.*/ }, ({ path, importer, kind }) => {
        const url = kind === "entry-point" ? entry : byName.get(importer)?.imports.get(path);
        const name = url === undefined ? undefined : nameOf(url);
        if (name !== undefined) return { path: name, namespace: NAMESPACE };
        return { errors: [{ text: `${path} is not in the module graph` }] };
      });
      build.onLoad({ filter: /.*/, namespace: NAMESPACE }, ({ path }) => {
        const file = byName.get(path);
        return file === undefined
          ? { errors: [{ text: `${path} is not in the module graph` }] }
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
    throw new PmlError("CONFIG_INVALID", `Cannot bundle ${quoted(entryFile?.name ?? "")}: ${why}`, {
      hint: "Fix the module; `deno check FILE` shows details",
    });
  } finally {
    await esbuild.stop();
  }
}

/** The members of the bundler's `PluginBuild` that are used here. */
interface Build {
  onResolve(
    options: { readonly filter: RegExp },
    resolve: (
      args: { readonly path: string; readonly importer: string; readonly kind: string },
    ) => object,
  ): void;
  onLoad(
    options: { readonly filter: RegExp; readonly namespace: string },
    load: (args: { readonly path: string }) => object,
  ): void;
}

function loaderOf(name: string): "ts" | "js" {
  return /\.[cm]?js$/.test(name.replace(/[?#].*/, "")) ? "js" : "ts";
}
