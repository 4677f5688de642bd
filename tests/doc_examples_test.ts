import assert from "node:assert/strict";
import packageFile from "../deno.json" with { type: "json" };
import hubFile from "../hub/deno.json" with { type: "json" };
import { runPml } from "./kit/run.ts";
import { makeWorkspace, writeFiles } from "./kit/workspace.ts";

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
/** The addresses of the packages that examples import. */
const PACKAGES = Object.fromEntries(
  Object.entries(packageFile.exports).map(([name, path]) => [
    name.replace(".", packageFile.name),
    new URL(`../${path}`, import.meta.url).href,
  ]),
);
const EXPORTS = [
  ...Object.values(PACKAGES),
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
  const texts = await Promise.all([...examples].map((url) => Deno.readTextFile(new URL(url))));
  const codes = texts.flatMap(examplesIn);
  assert.ok(codes.length >= 45, `${codes.length}`);
  await writeFiles(ws.path, {
    "deno.json": JSON.stringify({ imports: { ...packageFile.imports, ...PACKAGES } }),
    "all.ts": codes.map((_, at) => `await import("./example_${at}.ts");\n`).join(""),
    ...Object.fromEntries(codes.map((code, at) => [`example_${at}.ts`, code])),
  });
  // One process loads PML once for all of them; `deno test --doc` loads it for each.
  const result = await runPml(ws, ["run", "-A", "--no-check", "--no-lock", "all.ts"], {
    command: DENO,
    ms: 300_000,
  });
  assert.equal(result.code, 0, `${result.stdout}${result.stderr}`);
});

/** Returns the code blocks in the doc comments of a source. */
function examplesIn(source: string): readonly string[] {
  return (source.match(/\/\*\*[^]*?\*\//g) ?? []).flatMap((comment) => {
    const text = comment.replaceAll(/^ *\* ?/gm, "");
    return [...text.matchAll(/^```ts\n([^]*?)^```/gm)].map(([, code = ""]) => code);
  });
}
