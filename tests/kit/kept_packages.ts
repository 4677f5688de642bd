/**
 * Keeps the packages that PML installed in one test for the next tests of a file, so that npm runs
 * once. For tests of installed servers.
 *
 * @module
 */

import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Workspace } from "./workspace.ts";

/** The packages of one test file. */
export class KeptPackages {
  #folder: string | undefined;

  /** Copies the packages of another workspace into this one. */
  async give({ home }: Workspace): Promise<void> {
    if (this.#folder !== undefined) await copied(join(this.#folder, "servers"), home);
  }

  /** Keeps the packages of a workspace, if none are kept yet. */
  async keep({ home }: Workspace): Promise<void> {
    const servers = join(home, "servers");
    const isThere = await stat(servers).then(() => true, () => false);
    if (this.#folder !== undefined || !isThere) return;
    const folder = this.#folder = await Deno.makeTempDir({ prefix: "pml-kept-" });
    globalThis.addEventListener("unload", () => Deno.removeSync(folder, { recursive: true }));
    await copied(servers, folder);
  }
}

/** Copies a folder into another with the permissions and times of its files. */
async function copied(from: string, into: string): Promise<void> {
  const { success, stderr } = await new Deno.Command("cp", { args: ["-a", from, into] }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
}
