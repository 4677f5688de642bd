/**
 * Copies the project, so that files can be changed and tests can run in the copy.
 *
 * @module
 */

import { join } from "node:path";

/** Texts of files by their paths from the project's root. */
export type Texts = ReadonlyMap<string, string>;

/** The exit code and output of a command. */
export interface CommandEnd {
  /** Undefined if the command did not end in time. */
  readonly code: number | undefined;
  readonly output: string;
}

const SOURCES = /^(?:src|builtin|hub\/src)\/.*\.ts$/;

/** A copy of the files of a project. Its folder is removed when it is disposed. */
export class Tree implements AsyncDisposable {
  /** The folder of the copy. */
  readonly folder: string;
  /** The files that can contain guards. */
  readonly sources: Texts;

  private constructor(folder: string, texts: Texts) {
    this.folder = folder;
    this.sources = new Map(
      [...texts].filter(([path]) => SOURCES.test(path) && !path.endsWith("_test.ts")),
    );
  }

  /** Copies the files of the working tree that git does not ignore. */
  static async copyOf(root: string): Promise<Tree> {
    const { output } = await run("git", ["ls-files", "-co", "--exclude-standard", "-z"], {
      cwd: root,
    });
    const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "pml-guards-" }));
    const texts = new Map<string, string>();
    for (const path of output.split("\0").filter((name) => name !== "")) {
      const info = await Deno.lstat(join(root, path)).catch(() => undefined); // a removed file
      if (!info?.isFile) continue;
      await Deno.mkdir(join(folder, path, ".."), { recursive: true });
      await Deno.copyFile(join(root, path), join(folder, path));
      if (path.endsWith(".ts")) texts.set(path, await Deno.readTextFile(join(root, path)));
    }
    return new Tree(folder, texts);
  }

  /** Runs Deno in the copy. */
  async deno(args: readonly string[], ms: number): Promise<CommandEnd> {
    return await run(Deno.execPath(), args, { cwd: this.folder, ms });
  }

  /** Writes a file of the copy. */
  async write(path: string, text: string): Promise<void> {
    await Deno.writeTextFile(join(this.folder, path), text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }
}

async function run(
  file: string,
  args: readonly string[],
  { cwd, ms }: { readonly cwd: string; readonly ms?: number },
): Promise<CommandEnd> {
  const timeout = ms === undefined ? undefined : AbortSignal.timeout(ms);
  // `deno task test` names its own code of PML there, which does not lack the guard.
  const { PML_TEST_MAIN: _, ...env } = Deno.env.toObject();
  const child = new Deno.Command(file, {
    args: [...args],
    cwd,
    clearEnv: true,
    env: { ...env, NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    ...(timeout && { signal: timeout }),
  }).spawn();
  const { stdout, stderr } = await child.output();
  const { code } = await child.status;
  const decoder = new TextDecoder();
  const output = decoder.decode(stdout) + decoder.decode(stderr);
  return { code: timeout?.aborted ? undefined : code, output };
}
