/**
 * Pins servers in other processes for tests: `deno run child_test.ts HOME WORKSPACE NAME COUNT`.
 * The file contains no test. Files with such a name are not published.
 *
 * @module
 */

import { type Folders, foldersOf } from "../core/folder_variables.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { Pins } from "./pins.ts";
import type { PinnedWorkspace } from "./pinned_workspace.ts";

/** A workspace in which no file defines a server. */
export class FakeWorkspace implements PinnedWorkspace {
  readonly folders: Folders;

  constructor(
    readonly home: string,
    readonly root: string,
    readonly isShared: (own: ServerDefinition) => boolean = () => false,
  ) {
    this.folders = foldersOf({ workspace: root, userHome: home });
  }

  register(): void {}

  plain(): undefined {}
}

/** Runs this file in several processes at the same time, and returns their output. */
export async function race(each: readonly (readonly string[])[]): Promise<string[]> {
  const children = each.map((args) =>
    new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        "--no-lock",
        "--no-check",
        "--quiet",
        import.meta.filename ?? "",
        ...args,
      ],
      cwd: import.meta.dirname ?? ".",
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn()
  );
  for (const { stdin } of children) await stdin.close();
  return await Promise.all(children.map(async (child) => {
    const output = await new Response(child.stdout).text();
    await child.status;
    return output;
  }));
}

if (import.meta.main && Deno.args.length > 0) {
  const [home = "", folder = "", name = "", count = "0"] = Deno.args;
  const pins = new Pins(new FakeWorkspace(home, folder), { warn: (text) => console.error(text) });
  // Each process waits for the end of stdin, so that all begin together.
  await new Response(Deno.stdin.readable).text();
  for (let at = 0; at < Number(count); at++) {
    const pinned = { source: "https://registry.example", kind: "stdio" } as const;
    const isOf = { isCoveredByTrust: false, isInLock: true };
    const identity = { name: `${name}-${at}`, facts: [], pinned, ...isOf };
    await (await pins.findUnapproved(identity))?.accept();
  }
  console.log("done");
}
