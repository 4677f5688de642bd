/**
 * Every fenced block of every page, and every command in its text, is run or parsed here, or is
 * listed here with the test that covers it or the reason why no test can.
 *
 * @module
 */

import assert from "node:assert/strict";
import { basename, dirname } from "node:path";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/server/validators/ajv";
import { CommanderError } from "commander";
import userConfigJson from "../config/config.schema.json" with { type: "json" };
import workspaceJson from "../config/pml.schema.json" with { type: "json" };
import policyJson from "../config/policy.schema.json" with { type: "json" };
import { ARGUMENTS, parseCommandLine } from "../hub/src/cli/_command_line.ts";
import config from "../deno.json" with { type: "json" };
import { readFolder } from "../registry.ts";
import { COMMANDS } from "../src/cli/_commands.ts";
import { keepSearchWords, makeProgram } from "../src/cli/_program.ts";
import { readCompany } from "../src/config/_company_file.ts";
import { invalidConfigError, type Report } from "../src/config/_problem.ts";
import { Scratch } from "../src/config/_scratch_test.ts";
import { policySchema, userConfigSchema, workspaceSchema } from "../src/config/settings.ts";
import { parsePattern } from "../src/core/pattern.ts";
import { type Block, blocksIn, pages } from "./kit/pages.ts";
import { repoFile } from "./kit/pml_command.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

/**
 * The blocks that no test in this file reads: the page, the beginning of the block (the fence, and
 * the text under it), and the file that runs or parses it, which must name the page; or the reason
 * why none can.
 */
const ELSEWHERE: readonly (readonly [page: string, begins: RegExp, why: string])[] = [
  ["README.md", /^\nClaude Code ┐/, "a picture"],
  [
    "docs/agent-tools.md",
    /^(sh|(yaml|json|js|ts|text) \S+|yaml)\n/,
    "tests/agent_tools_doc_test.ts",
  ],
  ["docs/clients.md", /^(json|toml|yaml)\n/, "tests/clients_doc_test.ts"],
  ["docs/commands.md", /^ts\n/, "tests/cli_types_test.ts"],
  ["docs/deploy.md", /^nginx\n/, "tests/hub_replicas_test.ts"],
  ["docs/design.md", /^\nmod.ts /, "the tree of the source"],

  ["docs/design.md", /^\nrequest ─ capacity/, "a picture"],
  ["docs/registry-api.md", /^\n{\n {2}"registry": {4}the address/, "a form in words"],
  ["docs/exposure.md", /^\nDoes a list/, "a picture"],
  ["docs/hub.md", /^ts\n/, "tests/hub_capabilities_test.ts"],
  ["docs/modules.md", /^(ts|js|json|sh|text)\b/, "tests/modules_doc_test.ts"],
  ["docs/observability.md", /^\nServing MCP at/, "what `pml serve` prints"],
  ["docs/observability.md", /^yaml\nscrape_configs:/, "the configuration of Prometheus"],
  ["docs/rules.md", /^\npages:\n/, "what the table of a new server shows"],
  ["docs/search.md", /^\ngithub:create_issue\(/, "an answer of `search`"],
  ["docs/serve.md", /^nginx\n/, "tests/kit/nginx.ts"],
  ["docs/serve.md", /^\nServing MCP at/, "what `pml serve` prints"],
  ["docs/serve.md", /^(\nTOKEN=|json\n)/, "tests/serve_doc_test.ts"],
  ["docs/workflows.md", /^(json|ts|text) \S+\n/, "tests/workflows_doc_test.ts"],
  ["docs/workflows.md", /^text\nResult: text of /, "the form is in tests/golden/results.txt"],
];

const PAGES = await pages();
const ALL = Object.entries(PAGES).flatMap(([page, text]) => blocksIn(page, text));
const OWN = ALL.filter((block) => elsewhere(block).length === 0);

function elsewhere({ page, fence, text }: Block): typeof ELSEWHERE {
  return ELSEWHERE.filter(([name, begins]) => name === page && begins.test(`${fence}\n${text}`));
}

Deno.test("every block of a page is run or parsed by a test, or is listed with the reason", async () => {
  const kinds = [isCommands, isRules, isModule, isSettings];
  const open = OWN.filter((block) => !kinds.some((is) => is(block)));
  assert.deepEqual(open, []);
  for (const entry of ELSEWHERE) {
    const [page, begins, why] = entry;
    assert.ok(ALL.some((block) => elsewhere(block).includes(entry)), `${page} has no ${begins}`);
    if (!why.startsWith("tests/")) continue;
    assert.ok((await Deno.readTextFile(repoFile(why))).includes(page), `${why} reads no ${page}`);
  }
  assert.ok(ALL.length > 100, `${ALL.length} blocks were found`);
});

function isCommands({ language, text }: Block): boolean {
  const lines = linesOf(text);
  return ["", "sh"].includes(language) && lines.length > 0 &&
    lines.every((line) => /^(?:pml|pml-hub|deno|npm|npx)$/.test(wordsOf(line)[0] ?? ""));
}

function isRules({ language, text }: Block): boolean {
  return language === "" && text.split("\n").every((line) => /^[a-z]+:\S+$/.test(line));
}

/** Returns whether a block is the module of the README, whose first line names its file. */
function isModule({ page, language, text }: Block): boolean {
  return page === "README.md" && language === "ts" && text.startsWith("// mcp/weather.ts\n");
}

function isSettings({ language }: Block): boolean {
  return ["json", "jsonc", "yaml"].includes(language);
}

/** Returns the command lines of a block. If some begin with `$`, the others are output. */
function linesOf(text: string): readonly string[] {
  const lines = text.split("\n").map((line) => line.trim());
  const typed = lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
  return (typed.length > 0 ? typed : lines)
    .filter((line) => line !== "" && !/^(?:#|export \w+=\S+$)/.test(line));
}

/** Returns the words of a line, without variables before them, up to a comment or a redirection. */
function wordsOf(line: string): readonly string[] {
  const words: string[] = [];
  for (
    const [word = "", double, single] of line.matchAll(/"((?:\\.|[^"])*)"|'([^']*)'|[^\s"']+/g)
  ) {
    if (/^(?:#|\||>|<|&&)/.test(word)) break;
    if (words.length > 0 || !/^[A-Z_]+=/.test(word)) words.push(double ?? single ?? word);
  }
  return words;
}

Deno.test("every command of a page exists, with its options", async () => {
  const wrong: string[] = [];
  const lines = OWN.filter(isCommands)
    .flatMap(({ page, text }) => linesOf(text).map((line) => [page, line] as const));
  for (const [page, line] of lines) {
    const why = await whyWrong(wordsOf(line));
    if (why !== undefined) wrong.push(`${page}: ${line}: ${why}`);
  }
  assert.ok(lines.length > 50, `${lines.length} commands were found`);
  assert.deepEqual(wrong, []);
});

/** Returns why a command line is wrong; undefined if it is right. Runs nothing. */
async function whyWrong([program, ...args]: readonly string[]): Promise<string | undefined> {
  const [last = ""] = args.slice(-1);
  switch (program) {
    case "pml":
      return await whyWrongPml(args);
    case "pml-hub":
      return whyWrongHub(args);
    case "npm":
      return /^(?:deno@|@casys\/pml$)/.test(last) ? undefined : "it installs another package";
    case "npx":
      // It runs a package: Deno, whose arguments follow.
      return await whyWrong(args.slice(1).map((word) => word.replace(/^deno@.*/, "deno")));
    default:
      return await whyWrongDeno(args);
  }
}

async function whyWrongPml(args: readonly string[]): Promise<string | undefined> {
  try {
    const program = makeProgram(() => Promise.resolve());
    // Each command takes these options, and would print something.
    const words = keepSearchWords(args).filter((word) => !/^--(?:help|version)$/.test(word));
    if (words.length > 0) await program.parseAsync(words, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode !== 0) return `${error.code}: ${error.message}`;
  }
  // Some commands have subcommands as their first argument, which their help lists.
  const [name = "", word = ""] = args;
  const row = Object.values(COMMANDS).flat().find(({ usage }) =>
    /^(\S+) [<[]what/.exec(usage)?.[1] === name
  );
  const isKnown = row === undefined || !/^[a-z]/.test(word) ||
    new RegExp(`\\b${word}\\b`).test(row.does.replace(/^.*: /, ""));
  return isKnown ? undefined : `there is no "${name} ${word}"`;
}

function whyWrongHub(args: readonly string[]): string | undefined {
  try {
    const { verb, isHelp } = parseCommandLine(args);
    return isHelp || Object.hasOwn(ARGUMENTS, verb) ? undefined : "there is no such command";
  } catch (error) {
    return `${error}`;
  }
}

async function whyWrongDeno([verb = "", ...args]: readonly string[]): Promise<string | undefined> {
  const tasks: Readonly<Record<string, string>> = config.tasks;
  const line = verb === "task" ? tasks[args[0] ?? ""]?.split(" ") : args;
  if (line === undefined) return "there is no such task";
  const [last = ""] = args.slice(-1);
  if (verb === "install") {
    return /^jsr:@casys\/pml(?:-hub)?$|^\.\/mod\.ts$/.exec(last) ? undefined : last;
  }
  const script = line.find((word) => /^[^*]+\.ts$/.test(word));
  if (script === undefined) return args.length === 1 ? undefined : "it runs no file";
  const text = await Deno.readTextFile(repoFile(script));
  const names = args.flatMap((word) => /^\[?--([a-z-]+)/.exec(word)?.[1] ?? []);
  const unknown = names.filter((name) => !new RegExp(`\\b${name}\\b`).test(text));
  return unknown.length === 0 ? undefined : `${script} takes no ${unknown.join(", ")}`;
}

Deno.test("every command in the text of a page exists", async () => {
  const wrong: string[] = [];
  let count = 0;
  for (const [page, text] of Object.entries(PAGES)) {
    const bare = text.replaceAll(/^ *```[^]*?^ *```/gm, "");
    for (const [, program = "", said = ""] of bare.matchAll(/`(pml(?:-hub)?) ([a-z-][^`]*)`/g)) {
      count++;
      // Optional parts and placeholders are no words of the command.
      const line = said.replaceAll(/\s*\[[^\]]*\]|\s*…|\s+or \S+/g, "")
        .replaceAll("URL", "https://hub.example.com/mcp");
      const why = await whyWrong([program, ...wordsOf(line)]);
      const isShort = /missingArgument|: write `/.test(why ?? "");
      if (why !== undefined && !isShort) wrong.push(`${page}: ${program} ${said}: ${why}`);
    }
  }
  assert.ok(count > 100, `${count} commands were found`);
  assert.deepEqual(wrong, []);
  const names = Object.values(COMMANDS).flat().map(({ usage }) => usage.split(" ", 1)[0]);
  const [, table = ""] = /^## Commands\n([^]*?)\n## /m.exec(PAGES["README.md"] ?? "") ?? [];
  const named = [...table.matchAll(/^\|.*$/gm)].flatMap(([row]) => [...row.matchAll(/`(\w+)`/g)]);
  assert.deepEqual(named.map(([, name]) => name).filter((name) => !names.includes(name)), []);
});

Deno.test("PML reads every list of rules on a page", () => {
  const rules = OWN.filter(isRules).flatMap(({ text }) => text.split("\n"));
  assert.ok(rules.length > 0);
  for (const rule of rules) parsePattern(rule);
});

Deno.test("the module of the README passes its check and runs, with the commands of the README", async () => {
  const [module, ...more] = OWN.filter(isModule);
  assert.deepEqual(more, []);
  const readme = PAGES["README.md"] ?? "";
  const [, data = "", file = ""] = /^Put `(.*)` into `(.*)`/m.exec(readme) ?? [];
  const files = { "mcp/weather.ts": module?.text ?? "", [file]: data };
  const [, checks = "", adds = "", calls = ""] =
    /^(pml check \S+).*\n(pml add \S+).*\n(pml call weather:.*)$/m.exec(readme) ?? [];
  await using bare = await makeWorkspace({ files, pml: "{}", trusted: true });
  const added = await runPml(bare, [...wordsOf(adds).slice(1), "--json"]);
  assert.equal(added.code, 0, added.stderr);
  const { name, definition } = JSON.parse(added.stdout);
  await using ws = await makeWorkspace({
    files,
    pml: JSON.stringify({
      private_mcps: { [name]: definition },
      permissions: { allow: ["weather:*"] },
    }),
    trusted: true,
  });
  for (const line of [`${checks} --no-types`, calls]) {
    const { code, stdout, stderr } = await runPml(ws, wordsOf(line).slice(1));
    assert.equal(code, 0, `${line}\n${stdout}${stderr}`);
    if (line === calls) assert.match(stdout, /"sky": ?"clear"/);
  }
});

Deno.test("PML and the JSON Schemas agree about each block of JSON and YAML on a page", async () => {
  const { parse } = await import("yaml");
  const { parse: parseJsonc } = await import("jsonc-parser");
  const validator = new AjvJsonSchemaValidator();
  const files = [
    [workspaceSchema, validator.getValidator(workspaceJson as object)],
    [userConfigSchema, validator.getValidator(userConfigJson as object)],
    [policySchema, validator.getValidator(policyJson as object)],
  ] as const;
  let count = 0;
  for (const { page, language, text } of ALL.filter(isSettings)) {
    const whole = text.trimStart().startsWith('"') ? `{${text}}` : text;
    const value: unknown = language === "yaml" ? parse(text) : parseJsonc(whole);
    const values = [value, { mcpServers: value }, { private_mcps: value }];
    for (
      const [one, [schema, accepts]] of values.flatMap((one) =>
        files.map((file) => [one, file] as const)
      )
    ) {
      const isValid = schema(one, { path: [], wrong: () => {} });
      assert.equal(accepts(one).valid, isValid, `${page}:\n${text}`);
      if (isValid) count++;
    }
  }
  assert.ok(count > 20, `${count} valid files were found`);
});

Deno.test("PML accepts every block of settings on a page", async () => {
  const before = new Map<string, string>();
  const settings = OWN.filter(isSettings);
  for (const block of settings) {
    const { page, language, text } = block;
    // The YAML blocks of a page are one file. A hash may be shortened.
    const whole = text.replaceAll(/\b([0-9a-f]{4})…/g, (_, start) => start.repeat(16));
    const yaml = `${before.get(page) ?? ""}${whole}\n`;
    if (language === "yaml") before.set(page, yaml);
    const problem = await (language !== "yaml"
      ? whyNoJson(block)
      : page === "docs/policy.md"
      ? whyNoPolicy(yaml)
      : whyNoConfig("user/.pml/config.yaml", yaml));
    assert.equal(problem, undefined, `${page}:\n${text}`);
  }
  assert.ok(settings.length > 15, `${settings.length} blocks were found`);
});

/** Returns why PML refuses a block: a manifest, a whole file, some keys of one, or some servers. */
async function whyNoJson({ text }: Block): Promise<string | undefined> {
  if (/^\{\n {2}"type"/.test(text)) return await whyNoManifest(text);
  const isServer = /^"[^"]+": \{\n? *"(?:type|command|url)"/.test(text);
  const whole = isServer ? `"mcpServers": {${text}}` : text;
  return await whyNoConfig("ws/.pml.json", text.startsWith("{") ? text : `{${whole}}`);
}

async function whyNoConfig(name: string, text: string): Promise<string | undefined> {
  using scratch = new Scratch();
  scratch.write(name, text);
  const { problem } = await scratch.load();
  return problem?.message;
}

async function whyNoManifest(text: string): Promise<string | undefined> {
  using scratch = new Scratch();
  const path = scratch.write("in/server.json", text);
  const warnings: string[] = [];
  const warn = (message: string) => warnings.push(message);
  const found = await readFolder(dirname(path), { warn, signal: new AbortController().signal });
  return found.length === 1 && warnings.length === 0 ? undefined : `${basename(path)}: ${warnings}`;
}

async function whyNoPolicy(text: string): Promise<string | undefined> {
  using scratch = new Scratch();
  const policy = scratch.write("ws/policy.yaml", text);
  Deno.chmodSync(dirname(policy), 0o755);
  Deno.chmodSync(policy, 0o644);
  const report: Report = { problems: [], warnings: [] };
  await readCompany({ ...scratch.environment(), policies: [], policy }, report);
  return report.problems.length === 0 ? undefined : invalidConfigError(report.problems).message;
}
