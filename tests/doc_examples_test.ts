import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import packageFile from "../deno.json" with { type: "json" };
import hubFile from "../hub/deno.json" with { type: "json" };
import { runPml } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

/** A declaration of `deno doc --json`. */
interface Declaration {
  readonly kind: string;
  readonly location: { readonly filename: string };
  readonly jsDoc?: { readonly tags?: readonly { readonly kind: string }[] };
}

/** The declarations that a file exports. */
interface DocumentedFile {
  readonly symbols: readonly { readonly name: string; readonly declarations: Declaration[] }[];
}

const DENO: readonly [string] = [Deno.execPath()];
const EXPORTS = [
  ...Object.values(packageFile.exports).map((path) => new URL(`../${path}`, import.meta.url).href),
  new URL(hubFile.exports, new URL("../hub/", import.meta.url)).href,
];

Deno.test("the example of each exported function and class runs", async () => {
  await using ws = await makeWorkspace({ files: { "README.md": "# An example\n" } });
  const { stdout } = await runPml(ws, ["doc", "--json", ...EXPORTS], { command: DENO });
  const { nodes }: { readonly nodes: Readonly<Record<string, DocumentedFile>> } = JSON.parse(
    stdout,
  );
  const declared = Object.values(nodes).flatMap(({ symbols }) =>
    symbols.flatMap(({ name, declarations }) => declarations.map((own) => ({ name, ...own })))
  );
  const examples = new Set<string>(EXPORTS.slice(0, 2));
  for (const { name, kind, location: { filename }, jsDoc } of declared) {
    const has = jsDoc?.tags?.some((tag) => tag.kind === "example");
    if (kind === "function" || kind === "class") assert.ok(has, `${name} has no @example`);
    if (has) examples.add(filename);
  }
  const options = ["--doc", "-A", "--no-check", "--config", pathOf("../deno.json"), "--no-lock"];
  const result = await runPml(ws, ["test", ...options, ...examples], {
    command: DENO,
    ms: 300_000,
  });
  assert.equal(result.code, 0, `${result.stdout}${result.stderr}`);
  const [, passed] = /^ok \| (\d+) passed/m.exec(result.stdout) ?? [];
  assert.ok(Number(passed) >= 45, result.stdout);
});

function pathOf(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}
