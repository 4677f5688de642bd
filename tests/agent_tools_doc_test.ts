import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { call } from "./full_scene.ts";
import { FakeProvider } from "./kit/fake_provider.ts";
import { repoFile } from "./kit/pml_command.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { denoDir, makeWorkspace, type Workspace } from "./kit/workspace.ts";
import { keyed } from "./sampling_scene.ts";

const PAGE = await Deno.readTextFile(new URL("../docs/agent-tools.md", import.meta.url));
const BLOCKS = [...PAGE.matchAll(/^```(\w+) ?(.*)\n([\s\S]*?)^```$/gm)]
  .map(([, language = "", file = "", text = ""]) => ({ language, file, text }));

function blockOf(name: string): string {
  return BLOCKS.find(({ file }) => file === name)?.text ?? assert.fail(name);
}

/** Creates the workspace of the page, with a provider on loopback. */
async function open(
  { url }: FakeProvider,
  allow: (rule: string) => boolean = () => true,
): Promise<Workspace> {
  const pml = JSON.parse(blockOf(".pml.json"));
  pml.permissions.allow = pml.permissions.allow.filter(allow);
  // The tests use one cache of Deno.
  const { reviewer } = pml.mcpServers;
  reviewer.command = process.execPath;
  reviewer.args.splice(1, 0, "--quiet", `--config=${repoFile("deno.json")}`);
  reviewer.env = { DENO_DIR: denoDir() };
  const names = ["summary.js", "reviewer.ts"];
  const ws = await makeWorkspace({
    pml,
    files: {
      ...Object.fromEntries(names.map((name) => [name, blockOf(name)])),
      "notes.txt": "We met.\n",
    },
  });
  const config = blockOf("config.yaml").trimEnd();
  await writeFile(join(ws.home, "config.yaml"), `${config}\n  base_url: ${url}\n`);
  return ws;
}

Deno.test("docs/agent-tools.md: its commands and examples run", async () => {
  const lines = BLOCKS.filter(({ language }) => language === "sh")
    .flatMap(({ text }) => text.trim().split("\n"));
  assert.deepEqual(lines, [
    "pml doctor",
    "pml call summary:summarize path=notes.txt",
    "pml call reviewer:review",
  ]);
  const reads = { uses: [{ name: "filesystem__read_file", input: { path: "notes.txt" } }] };
  await using provider = new FakeProvider(
    "anthropic",
    { text: "A meeting took place." },
    reads,
    { text: "The date is missing." },
  );
  await using ws = await open(provider);
  const texts = [
    "ok   sampling: claude-sonnet-4-5",
    "A meeting took place.",
    "The date is missing.",
  ];
  for (const [at, line] of lines.entries()) {
    const { stdout, stderr } = await runPml(ws, line.split(" ").slice(1), { env: keyed({}) });
    assert.ok(stdout.includes(texts[at] ?? "?"), `${line}\n${stdout}${stderr}`);
  }
  const [asked, first, second] = provider.bodies;
  assert.match(asked.messages[0].content[0].text, /We met\./);
  assert.equal(asked.system, "Answer with one sentence.");
  assert.deepEqual(first.tools.map(({ name }: { name: string }) => name), [
    "filesystem__list_directory",
    "filesystem__read_file",
  ]);
  assert.equal(second.messages.at(-1).content[0].content[0].text, "We met.\n");
});

Deno.test("docs/agent-tools.md: the question is the same as PML's", async () => {
  await using provider = new FakeProvider("anthropic", { text: "x" });
  await using ws = await open(provider, (rule) => !rule.endsWith("@sampling"));
  const questions: string[] = [];
  await using pml = new RawStdio(ws, {
    env: keyed({}),
    answer: (_, params) => {
      questions.push(String(params.message).replaceAll(provider.host, "api.anthropic.com"));
      return { action: "accept", content: { answer: "Yes" } };
    },
  });
  await pml.open();
  await call(pml, "reviewer:review");
  for (const line of blockOf("question").trim().split("\n")) {
    assert.ok(questions[0]?.includes(line), `${line}\n${questions[0]}`);
  }
});

Deno.test("docs/agent-tools.md: the settings are those of the configuration", async () => {
  const { samplingOf } = await import("../src/config/sampling.ts");
  const defaults = samplingOf({ provider: "openai", model: "m" });
  const rows = [...PAGE.matchAll(/^\| `(\w+)` +\|.*\| ([^|]*?) *\|$/gm)];
  const shown = Object.fromEntries(rows.map(([, name = "", value = ""]) => [name, value]));
  const numbers = {
    max_tokens: defaults.maxTokens,
    max_turns: defaults.maxTurns,
    requests_per_minute: defaults.requestsPerMinute,
    tokens_per_day: defaults.tokensPerDay,
  };
  for (const [name, value] of Object.entries(numbers)) {
    assert.equal(shown[name], value.toLocaleString("en"), name);
  }
  await using ws = await makeWorkspace();
  const local = BLOCKS.find(({ language, file }) => language === "yaml" && file === "");
  await writeFile(join(ws.home, "config.yaml"), local?.text ?? "");
  const { stdout } = await runPml(ws, ["doctor"], { env: { OPENAI_API_KEY: "any" } });
  assert.match(stdout, /ok +sampling: qwen3 of openai/);
});
