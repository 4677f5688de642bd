/**
 * The pages as a reader meets them: their size, links, commands and blocks of configuration.
 *
 * @module
 */

import assert from "node:assert/strict";
import { CommanderError } from "commander";
import { dirname, join, relative } from "node:path";
import { mkdir, writeFile } from "node:fs/promises";
import { COMMANDS } from "../src/cli/_commands.ts";
import { makeProgram, searched } from "../src/cli/_program.ts";
import { formatted, limitsPage } from "../tools/limits.ts";
import { repoFile } from "./kit/pml_command.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const ROOT = repoFile(".");

async function pages(): Promise<Readonly<Record<string, string>>> {
  const names = ["README.md", "SECURITY.md", "CONTRIBUTING.md"];
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

Deno.test("README, SECURITY and the design stay short, and the page of limits is what the code says", async () => {
  const all = await pages();
  const bytes = (name: string) => new TextEncoder().encode(all[name]).length;
  assert.ok(bytes("README.md") <= 9 * 1024, `README.md has ${bytes("README.md")} bytes`);
  assert.ok(bytes("SECURITY.md") <= 8 * 1024, `SECURITY.md has ${bytes("SECURITY.md")} bytes`);
  const lines = all["docs/design.md"]?.split("\n").length ?? Infinity;
  assert.ok(lines <= 400, `docs/design.md has ${lines} lines`);
  assert.equal(
    all["docs/limits.md"],
    await formatted(await limitsPage()),
    "run `deno task limits`",
  );
});

function anchorsOf(text: string): ReadonlySet<string> {
  const titles = [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) => title);
  return new Set(
    titles.map((title) =>
      title.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").trim().replaceAll(/\s/g, "-")
    ),
  );
}

Deno.test("Every link of a page leads to a file, and to a title that is in it", async () => {
  const all = await pages();
  const wrong: string[] = [];
  for (const [name, text] of Object.entries(all)) {
    const bare = text.replaceAll(/^```[^]*?^```/gm, "").replaceAll(/`[^`\n]*`/g, "");
    for (const [, target = ""] of bare.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      const [path = "", anchor] = target.split("#");
      const file = path === "" ? name : relative(ROOT, join(ROOT, dirname(name), path));
      const isThere = await Deno.lstat(repoFile(file)).then(() => true, () => false);
      if (!isThere) wrong.push(`${name}: ${target}`);
      const there = all[file];
      if (anchor !== undefined && there !== undefined && !anchorsOf(there).has(anchor)) {
        wrong.push(`${name}: ${target} names no title`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});

/** A fenced block of a page. */
interface Block {
  readonly language: string;
  readonly text: string;
}

function blocksIn(page: string): readonly Block[] {
  const blocks: Block[] = [];
  let open: { language: string; lines: string[] } | undefined;
  for (const line of page.split("\n")) {
    const [fence, language = ""] = /^ *```(\w*)/.exec(line) ?? [];
    if (fence === undefined) open?.lines.push(line);
    else if (open === undefined) open = { language, lines: [] };
    else {
      blocks.push({ language: open.language, text: open.lines.join("\n") });
      open = undefined;
    }
  }
  assert.equal(open, undefined, "a block is not closed");
  return blocks;
}

/** Returns the commands of PML in the blocks of a page. */
function commandsIn(page: string): readonly string[] {
  return blocksIn(page).filter(({ language }) => ["", "sh", "bash"].includes(language))
    .flatMap(({ text }) => text.split("\n"))
    .flatMap((line) => /^ *(?:\$ )?pml ([^{].*)/.exec(line)?.[1] ?? []);
}

/** Returns the words of a command line, up to a comment, a pipe or a redirection. */
function wordsOf(line: string): readonly string[] {
  const words: string[] = [];
  for (
    const [word = "", double, single] of line.matchAll(/"((?:\\.|[^"])*)"|'([^']*)'|[^\s"']+/g)
  ) {
    if (/^(?:#|\||>|<|&&)/.test(word)) break;
    words.push(double ?? single ?? word);
  }
  return words;
}

/** Returns why arguments are no command of PML; undefined if they are one. Runs nothing. */
async function checkedCommand(args: readonly string[]): Promise<string | undefined> {
  try {
    await makeProgram(() => Promise.resolve()).parseAsync(searched(args), { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode !== 0) return error.message;
  }
  return undefined;
}

Deno.test("Every command of a page is one that pml takes, with these options", async () => {
  const wrong: string[] = [];
  const known = new Set(Object.values(COMMANDS).flat().map(({ usage }) => usage.split(" ", 1)[0]));
  let count = 0;
  for (const [name, text] of Object.entries(await pages())) {
    for (const line of commandsIn(text)) {
      count++;
      const why = await checkedCommand(wordsOf(line.replaceAll("…", "x")));
      if (why !== undefined) wrong.push(`${name}: pml ${line}: ${why}`);
    }
    for (const [, command = ""] of text.matchAll(/`pml ([a-z][a-z-]*)/g)) {
      if (!known.has(command)) wrong.push(`${name}: there is no command "pml ${command}"`);
    }
  }
  assert.ok(count > 30, `${count} commands were found`);
  assert.deepEqual(wrong, []);
});

/** The pages whose blocks are configuration of PML. */
const CONFIGURING = ["README.md"].concat(
  [
    "rules",
    "servers",
    "registries",
    "keys",
    "exposure",
    "remote",
    "search",
    "agent-tools",
    "workflows",
  ]
    .map((name) => `docs/${name}.md`),
);
/** The first keys of files of PML: of `.pml.json`, and of `config.yaml`. */
const OURS =
  /^\s*"?(?:version|permissions|private_mcps|mcpServers|gateway|grants|registries|limits|network|oauth|sampling|toolsets|identities|search|workflow|memory)"?:/m;

Deno.test("Every block of configuration on a page is one that pml takes", async () => {
  const all = await pages();
  let count = 0;
  for (const name of CONFIGURING) {
    for (const { language, text: block } of blocksIn(all[name] ?? "")) {
      const isManifest = /"install"|"fqdn"|"serverInfo"|"tasks"/.test(block);
      if (!/^(?:jsonc?|yaml)$/.test(language) || isManifest) continue;
      if (!OURS.test(block) && !/^\s*"[^"]+": \{/.test(block)) continue;
      count++;
      await using ws = await makeWorkspace();
      await mkdir(ws.file("mcp"), { recursive: true });
      const isYaml = language === "yaml";
      // Some blocks show one key of the file, or one server.
      const isServer = !isYaml && /^"[^"]+": \{\n? *"(?:type|command|url)"/.test(block);
      const one = isServer ? `{"mcpServers": {${block}}}` : `{${block}}`;
      const text = isYaml || /^\s*\{/.test(block) ? block : one;
      await writeFile(isYaml ? join(ws.home, "config.yaml") : ws.file(".pml.json"), text);
      const env = { PML_TRUST: ws.path };
      const { code, stderr } = await runPml(ws, ["config", "--json"], { env });
      assert.equal(code, 0, `${name}:\n${block}\n${stderr}`);
    }
  }
  assert.ok(count >= 10, `${count} blocks were found`);
});
