import assert from "node:assert/strict";
import { isDefinedMethod } from "../src/protocol/revisions.ts";
import { repoFile } from "../tests/kit/pml_command.ts";
import { walkFiles } from "./words/files.ts";

/** A hop: a numbered item with the lines that continue it. */
const HOP = /^ *\d+\. .*\n(?: {3,}.*\n)*/gm;
/** A name in code: a member (`Server.call`, `Server.#send`), a function or a type. */
const NAME = /^(?:[A-Z]\w*(?:\.#?\w+)?|#\w+|[a-z]\w*[A-Z]\w*)(?:\(\))?$/;

Deno.test("docs/design.md names existing members in the path of a call", async () => {
  const page = await Deno.readTextFile(repoFile("docs/design.md"));
  const [, section = ""] = /\n## The path of [^\n]*\n(.*?)\n## /s.exec(page) ?? [];
  const code = new Map<string, string>();
  for await (const { path, text } of walkFiles("src/")) {
    if (!path.endsWith("_test.ts")) code.set(path, text);
  }
  const all = [...code.values()].join("\n");
  const hops = [...section.matchAll(HOP)].map(([hop]) => hop);
  assert.ok(hops.length > 25, `${hops.length} hops`);
  let folders: string[] = [];
  let names = 0;
  for (const hop of hops) {
    folders = folders.slice(-1);
    for (const [, text = "", file] of hop.matchAll(/`([^`]+)`(?:\s+\(`([^`]+\.ts)`)?/g)) {
      const path = [file, text].find((one) => one?.endsWith(".ts"));
      // A short name is a file next to one that the hop named before, or the hop before it.
      const whole = path?.includes("/")
        ? `src/${path}`
        : folders.map((one) => `${one}/${path}`).findLast((one) => code.has(one)) ?? `${path}`;
      if (path !== undefined) {
        assert.ok(code.has(whole), `${path} does not exist`);
        folders.push(whole.slice(0, whole.lastIndexOf("/")));
      }
      if (!NAME.test(text)) continue;
      names++;
      const where = file === undefined ? all : code.get(whole) ?? "";
      const [owner = "", member] = text.replace("()", "").split(".");
      const isThere = new RegExp(`(?<![\\w#])${owner}(?!\\w)`).test(where);
      assert.ok(isThere, `${owner} is not in ${file ?? "src"}`);
      if (member !== undefined) {
        assert.ok(membersOf(owner, code).has(member), `${owner} declares no ${member}`);
      }
    }
  }
  assert.ok(names > 50, `${names} names`);
});

/** Returns the members that the files with a class or interface of this name declare. */
function membersOf(owner: string, code: ReadonlyMap<string, string>): Set<string> {
  const declares = new RegExp(`(?:class|interface|const|enum) ${owner}\\b`);
  const texts = [...code.values()].filter((text) => declares.test(text)).join("\n");
  const modifiers = "(?:(?:static|async|get|set|readonly|override|protected|abstract) )*";
  const declarations = texts.matchAll(new RegExp(`^ {2,}${modifiers}(#?\\w+)[?!]?[:(<= ]`, "gm"));
  return new Set([...declarations].map(([, name = ""]) => name));
}

Deno.test("docs/design.md and the pages of docs/design name existing files", async () => {
  let page = await Deno.readTextFile(repoFile("docs/design.md"));
  for await (const { path, text } of walkFiles("docs/design/")) {
    // Their JSON files are in the PML home.
    if (path.endsWith(".md")) page += text.replaceAll(".json", "");
  }
  const paths = [...page.matchAll(/`((?:[a-z_]+\/)+[a-z_]+\.(?:ts|json))`/g)].map(([, path]) =>
    path
  );
  assert.ok(paths.length > 20, `${paths.length} paths`);
  for (const path of new Set(paths)) {
    const files = [`src/${path}`, `${path}`].map((one) => repoFile(one));
    const exists = await Promise.all(files.map((one) => Deno.stat(one).catch(() => undefined)));
    assert.ok(exists.some((one) => one !== undefined), `${path} does not exist`);
  }
});

Deno.test("src/transport contains no method of the protocol", async () => {
  const methods: string[] = [];
  const look = async (folder: string) => {
    for await (const { name, isDirectory } of Deno.readDir(repoFile(folder))) {
      const path = `${folder}/${name}`;
      if (isDirectory) await look(path);
      else if (name.endsWith(".ts") && !name.endsWith("_test.ts")) {
        const code = await Deno.readTextFile(repoFile(path));
        const texts = [...code.matchAll(/"([\w/]+)"/g)].map(([, text = ""]) => text);
        methods.push(...texts.filter(isDefinedMethod).map((text) => `${path}: ${text}`));
      }
    }
  };
  await look("src/transport");
  assert.deepEqual(methods, []);
});
