/**
 * The model and the library for tests of semantic search: installed once on a machine, from the npm
 * registry of the environment, and copied from there.
 *
 * @module
 */

import { cp, mkdir, stat } from "node:fs/promises";
import { homedir, tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { EmbedderPackage } from "../../src/search/embedding/embedder_package.ts";
import { repoFile } from "./pml_command.ts";

/** The model and library of these tests. */
export interface Meanings {
  /** The folder of the model. */
  readonly model: string;
  /** Installs the library in a PML home. */
  install(home: string): Promise<void>;
}

/**
 * The folder of the model, which is not part of the project. `PML_TEST_MODEL` names another folder.
 */
const MODEL = process.env.PML_TEST_MODEL ?? repoFile("../shared/search/model/use-lite-en");
const CACHE = join(tmpdir(), `pml-test-embedder-${userInfo().uid}`);

/** Returns the model and library, or the reason why they are not available. */
export async function meaningsHere(): Promise<Meanings | string> {
  const isModel = await stat(join(MODEL, "onnx")).catch(() => undefined);
  if (isModel === undefined) return "no model: set PML_TEST_MODEL to the folder of one";
  const library = await libraryHere();
  if (typeof library === "string") return library;
  return {
    model: await Deno.realPath(MODEL),
    install: async (home) => {
      await mkdir(join(home, "embedder"), { recursive: true, mode: 0o700 });
      await cp(library.folder, join(home, "embedder", library.name), { recursive: true });
    },
  };
}

/** Returns the title of a test, with the reason if it does not run. */
export function meaningsTest(name: string, here: Meanings | string) {
  const isHere = typeof here !== "string";
  return { name: isHere ? name : `${name} (not run: ${here})`, ignore: !isHere };
}

/** Returns the installed library, or the reason why there is none. */
export async function libraryHere(): Promise<
  { readonly folder: string; readonly name: string } | string
> {
  const library = packageIn(CACHE);
  try {
    const folder = await library.ensureInstalled();
    return { folder, name: folder.slice(join(CACHE, "embedder").length + 1) };
  } catch (error) {
    return `the library cannot be installed from npm: ${error}`;
  }
}

/** Returns the library of a home, with the environment of the tests. */
export function packageIn(home: string, env: Readonly<Record<string, string>> = {}) {
  const variables = { HOME: homedir(), ...process.env, ...env };
  const installVariables = () =>
    Object.fromEntries(
      Object.entries(variables).filter((one): one is [string, string] => one[1] !== undefined),
    );
  return new EmbedderPackage({
    ...{ home, installVariables, log: { info: () => {} }, closing: new AbortController().signal },
    groups: () => Promise.resolve({ mark: "test", add: async () => {}, remove: async () => {} }),
  });
}
