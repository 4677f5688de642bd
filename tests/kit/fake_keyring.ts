/**
 * A program `secret-tool` for tests, which keeps secrets in files and records its calls. It can be
 * locked, and it can kill the process that stores a secret as soon as the secret is stored.
 *
 * @module
 */

import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder with the program, for PATH. */
export class FakeKeyring implements AsyncDisposable {
  /** The folder of the program. */
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Creates the program, without secrets. */
  static async make(): Promise<FakeKeyring> {
    const folder = await mkdtemp(join(tmpdir(), "fake-keyring-"));
    await mkdir(join(folder, "kept"));
    await writeFile(join(folder, "secret-tool"), PROGRAM);
    await chmod(join(folder, "secret-tool"), 0o755);
    return new FakeKeyring(folder);
  }

  /** A PATH that begins with the program. */
  get path(): string {
    return `${this.folder}:${Deno.env.get("PATH")}`;
  }

  /** Returns the calls, a line each. */
  async asked(): Promise<readonly string[]> {
    const text = await readFile(join(this.folder, "asked"), "utf8").catch(() => "");
    return text.split("\n").filter((line) => line !== "");
  }

  /** Returns the stored secrets, by their names. */
  async kept(): Promise<Readonly<Record<string, string>>> {
    const names = await readdir(join(this.folder, "kept"));
    const read = (name: string) => readFile(join(this.folder, "kept", name), "utf8");
    return Object.fromEntries(
      await Promise.all(names.map(async (name) => [name, await read(name)])),
    );
  }

  /** Locks or unlocks it; a locked keyring reads and stores nothing. */
  async lock(isLocked: boolean): Promise<void> {
    if (isLocked) await writeFile(join(this.folder, "locked"), "");
    else await rm(join(this.folder, "locked"));
  }

  /** Locks it after the next `count` reads. */
  async lockAfterLookups(count: number): Promise<void> {
    await writeFile(join(this.folder, "left"), `${count}`);
  }

  /**
   * Kills the ancestor process whose command contains `name` as soon as a secret is stored, once.
   */
  async killAfterStore(name: string): Promise<void> {
    await writeFile(join(this.folder, "kills"), name);
  }

  /** Removes it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true });
  }
}

const PROGRAM = `#!/bin/sh
here=$(dirname "$0")
echo "$*" >> "$here/asked"
[ -e "$here/locked" ] && { echo "the keyring is locked" >&2; exit 1; }
for name in "$@"; do :; done
at="$here/kept/$name"
case $1 in
  lookup)
    cat "$at" 2>/dev/null || exit 1
    left=$(cat "$here/left" 2>/dev/null) || exit 0
    [ "$left" -gt 1 ] && echo $((left - 1)) > "$here/left" || { rm "$here/left"; touch "$here/locked"; } ;;
  clear) rm "$at" 2>/dev/null ;;
  store)
    cat > "$here/new.$$" && mv "$here/new.$$" "$at"
    [ -e "$here/kills" ] || exit 0
    wanted=$(cat "$here/kills")
    rm "$here/kills"
    pid=$$
    until tr '\\0' ' ' < "/proc/$pid/cmdline" | grep -q -- "$wanted"; do
      pid=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$pid/status")
      [ "$pid" -gt 1 ] || exit 1
    done
    kill -9 "$pid" ;;
esac
`;
