/**
 * The model that tests of meanings need, and the library that runs it: installed once on a machine,
 * from whatever registry of npm its environment names, and copied from there.
 *
 * @module
 */

import { cp, mkdir, stat } from "node:fs/promises";
import { homedir, tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { EmbedderPackage } from "../../src/search/embedding/embedder_package.ts";
import { repoFile } from "./pml_command.ts";

/** What tests of meanings run with. */
export interface Meanings {
  /** The folder of the model. */
  readonly model: string;
  /** Puts the library into a PML home. */
  install(home: string): Promise<void>;
}

/** Where the model lies that is no part of the project. `PML_TEST_MODEL` names another folder. */
const MODEL = process.env.PML_TEST_MODEL ?? repoFile("../shared/search/model/use-lite-en");
const CACHE = join(tmpdir(), `pml-test-embedder-${userInfo().uid}`);

/** Gives what tests run with, or says why they cannot. */
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

/** Gives the name of a test, with the reason where it does not run. */
export function meaningsTest(name: string, here: Meanings | string) {
  const isHere = typeof here !== "string";
  return { name: isHere ? name : `${name} (not run: ${here})`, ignore: !isHere };
}

/** Gives the installed library, or says why there is none. */
export async function libraryHere(): Promise<
  { readonly folder: string; readonly name: string } | string
> {
  const library = packageIn(CACHE);
  try {
    const folder = await library.ready();
    return { folder, name: folder.slice(join(CACHE, "embedder").length + 1) };
  } catch (error) {
    return `the library cannot be installed from npm: ${error}`;
  }
}

/** Gives the library of a home, with the environment of the tests. */
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
