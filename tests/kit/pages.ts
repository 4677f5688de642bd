/**
 * The pages of the documentation, and the blocks in them.
 *
 * @module
 */

import assert from "node:assert/strict";
import { repoFile } from "./pml_command.ts";

/** A fenced block of a page. */
export interface Block {
  readonly page: string;
  /** The words behind the fence: the language, and optionally a name. */
  readonly fence: string;
  readonly language: string;
  readonly text: string;
}

/** Returns the text of every page, by its path in the repository. */
export async function pages(): Promise<Readonly<Record<string, string>>> {
  const names = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "hub/README.md"];
  for (const folder of ["docs", "docs/design"]) {
    for await (const { name } of Deno.readDir(repoFile(folder))) {
      if (name.endsWith(".md")) names.push(`${folder}/${name}`);
    }
  }
  const read = names.sort().map(async (name) =>
    [name, await Deno.readTextFile(repoFile(name))] as const
  );
  return Object.fromEntries(await Promise.all(read));
}

/** Returns the fenced blocks of a page, without the indentation of their fences. */
export function blocksIn(page: string, text: string): readonly Block[] {
  const blocks: Block[] = [];
  let open: { indent: string; fence: string; lines: string[] } | undefined;
  for (const line of text.split("\n")) {
    const [mark, indent = "", fence = ""] = /^( *)```(.*)$/.exec(line) ?? [];
    if (mark === undefined) open?.lines.push(line.slice(open.indent.length));
    else if (open === undefined) open = { indent, fence, lines: [] };
    else {
      const [language = ""] = open.fence.split(" ");
      blocks.push({ page, fence: open.fence, language, text: open.lines.join("\n") });
      open = undefined;
    }
  }
  assert.equal(open, undefined, `a block of ${page} is not closed`);
  return blocks;
}
