/**
 * A folder with a workspace and a home for one test.
 *
 * @module
 */

import { dirname, join } from "node:path";
import { loadConfig, type LoadedConfig } from "./config.ts";
import type { PmlError } from "../core/errors.ts";
import { type Environment, environmentOf } from "./env.ts";
import { invalidConfigError, type Report } from "./_problem.ts";
import { readWorkspaceFile, type WorkspaceFile } from "./file.ts";

/** A folder that is removed after the test: `ws` is the workspace, `user` the home folder. */
export class Scratch implements Disposable {
  readonly root = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "pml-config-" }));
  readonly ws = join(this.root, "ws");
  readonly user = join(this.root, "user");
  readonly home = join(this.user, ".pml");

  /** Creates the folder. */
  constructor() {
    Deno.mkdirSync(this.ws);
    Deno.mkdirSync(this.user);
  }

  /** Writes a file under the root of the scratch folder. */
  write(name: string, content: string | Uint8Array): string {
    const path = join(this.root, name);
    Deno.mkdirSync(dirname(path), { recursive: true });
    Deno.writeFileSync(
      path,
      typeof content === "string" ? new TextEncoder().encode(content) : content,
    );
    return path;
  }

  /** Returns an environment with this home and more variables. */
  environment(more: Readonly<Record<string, string>> = {}): Environment {
    return environmentOf({ HOME: this.user, PML_REGISTRIES: "none", ...more }, this.user);
  }

  /** Loads the configuration of the workspace. */
  load(more: Readonly<Record<string, string>> = {}): Promise<LoadedConfig> {
    return loadConfig(this.environment({ PML_WORKSPACE: this.ws, ...more }), this.ws);
  }

  /** Removes the folder. */
  [Symbol.dispose](): void {
    Deno.removeSync(this.root, { recursive: true });
  }
}

/** The result of reading one file; `path` is its name in messages. */
export interface Read<T> {
  readonly path: string;
  readonly file: T;
  readonly warnings: readonly string[];
  readonly error: PmlError | undefined;
}

/** Reads a file at a path. */
export async function readAt<T>(
  path: string,
  read: (path: string, report: Report) => Promise<T>,
): Promise<Read<T>> {
  const { problems, warnings }: Report = { problems: [], warnings: [] };
  const file = await read(path, { problems, warnings });
  return {
    path,
    file,
    warnings,
    error: problems.length === 0 ? undefined : invalidConfigError(problems),
  };
}

/** Reads a `.pml.json` with this content. */
export async function readFile(
  content: string | Uint8Array,
): Promise<Read<WorkspaceFile | undefined>> {
  using scratch = new Scratch();
  return await readAt(scratch.write("ws/.pml.json", content), readWorkspaceFile);
}
