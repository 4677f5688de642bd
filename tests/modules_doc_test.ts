import assert from "node:assert/strict";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/server/validators/ajv";
import schema from "../config/pml.schema.json" with { type: "json" };
import { typeProblems } from "../src/authoring/_type_check.ts";
import { brokeredFiles } from "../src/sandbox/boot/files.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

/** A block of code of the page: its language, its file, its text. */
interface Block {
  readonly language: string;
  readonly file: string;
  readonly text: string;
}

const PAGE = await Deno.readTextFile(new URL("../docs/modules.md", import.meta.url));
const BLOCKS: readonly Block[] = [...PAGE.matchAll(/^```(\w+) ?(.*)\n([\s\S]*?)^```$/gm)]
  .map(([, language = "", file = "", text = ""]) => ({ language, file, text }));

function open(): Promise<Workspace> {
  const files = BLOCKS.filter(({ file }) => file !== "" && file !== ".pml.json");
  const pml = BLOCKS.find(({ file }) => file === ".pml.json");
  return makeWorkspace({
    files: {
      ...Object.fromEntries(files.map(({ file, text }) => [file, text])),
      "docs/a.md": "one two\nthree\n",
    },
    pml: pml?.text ?? "",
  });
}

/** Runs a line of the page with this `deno`, without network. */
async function run(ws: Workspace, line: string): Promise<string> {
  const [program, ...args] = [...line.matchAll(/'([^']*)'|(\S+)/g)]
    .map(([, quoted, plain]) => quoted ?? plain ?? "");
  const offline = args[0] === "test" ? ["--no-check", "--no-lock"] : [];
  const result = program === "pml"
    ? await runPml(ws, args)
    : await runPml(ws, [...args.slice(0, 1), ...offline, ...args.slice(1)], {
      command: [Deno.execPath()],
    });
  assert.equal(result.code, 0, `${line}\n${result.stdout}${result.stderr}`);
  return result.stdout;
}

Deno.test("docs/modules.md: the tests cover each kind of code block", () => {
  for (const { language, file, text } of BLOCKS) {
    assert.ok(["ts", "js", "json", "sh", "text"].includes(language), text);
    assert.equal(file !== "", language === "ts" || language === "js" || file === ".pml.json", text);
  }
  assert.ok(BLOCKS.length > 10);
});

Deno.test("docs/modules.md: every command runs, and prints the output on the page", async () => {
  await using ws = await open();
  let output = "";
  for (const { language, text } of BLOCKS) {
    if (language === "text") assert.equal(output, text);
    if (language !== "sh") continue;
    for (const line of text.trim().split("\n")) output = await run(ws, line);
  }
  const called = JSON.parse(output);
  assert.deepEqual(called.structuredContent, { files: 1, words: 3 });
  // The short form in a comment, which the page does not run.
  await run(ws, "pml check hello.js");
});

Deno.test("docs/modules.md: every TypeScript block passes the type check", async () => {
  await using ws = await open();
  const { signal } = new AbortController();
  const files = BLOCKS.filter(({ language }) => language === "ts");
  const all = files.map(({ file }) => `import "./${file}";`).join("\n");
  const specifiers = files
    .flatMap(({ text }) => [...text.matchAll(/from "(.*)"/g)].map(([, name = ""]) => name));
  for (const [more, found] of [["", 0], ["\nexport const a: number = '';", 1]] as const) {
    await Deno.writeTextFile(ws.file("all.ts"), all + more);
    const problems = await typeProblems(ws.file("all.ts"), { home: ws.home, specifiers, signal });
    assert.equal(problems.length, found, JSON.stringify(problems));
  }
  assert.ok(files.length >= 5);
});

Deno.test("docs/modules.md: every .pml.json matches its schema", () => {
  const validate = new AjvJsonSchemaValidator().getValidator(schema as object);
  for (const { text } of BLOCKS.filter(({ language }) => language === "json")) {
    assert.ok(validate(JSON.parse(text)).valid, text);
  }
});

Deno.test("docs/modules.md names each file function of a module, and each member of host", async () => {
  const [, list = ""] = /<!-- files -->([\s\S]*)<!-- \/files -->/.exec(PAGE) ?? [];
  const named = [...list.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  const there = Object.keys(brokeredFiles({} as never)).filter((name) => /^[a-z]/.test(name));
  assert.deepEqual(named.sort(), there.filter((name) => !name.endsWith("Sync")).sort());
  for (const name of named) assert.ok(there.includes(`${name}Sync`), name);
  const host = await Deno.readTextFile(new URL("../src/sandbox/host.ts", import.meta.url));
  const [, body = ""] = /interface Host \{([\s\S]*?)^\}/m.exec(host) ?? [];
  for (const [, name] of body.matchAll(/^ {2}(?:readonly )?(\w+)[(:]/gm)) {
    assert.match(PAGE, new RegExp(`^\\| \`${name}\\b`, "m"), name);
  }
});
