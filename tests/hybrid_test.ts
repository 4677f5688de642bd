import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { meaningsHere, meaningsTest } from "./kit/embedder.ts";
import { FakeHub } from "./kit/fake_hub.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace, type Workspace, writeFiles } from "./kit/workspace.ts";

const here = await meaningsHere();
const FILES = ["config.json", "tokenizer.json", "tokenizer_config.json"];
const LIST_CHANGED = "notifications/tools/list_changed";
const ONNX = "onnx/model_quantized.onnx";

/** Creates a workspace whose user has the library installed, and optionally a model configured. */
async function house(model?: string): Promise<Workspace> {
  const pml = { version: 1, intent: "read documents" };
  const ws = await makeWorkspace({ pml });
  assert.ok(typeof here !== "string");
  await here.install(ws.home);
  if (model !== undefined) {
    const text = `search:\n  model: ${
      JSON.stringify(model)
    }\ngateway:\n  tools_exposure: semantic\n`;
    await writeFiles(ws.home, { "config.yaml": text });
  }
  return ws;
}

async function modeOf(pml: RawStdio, query: string): Promise<unknown> {
  const { result } = await pml.callTool("search", { query });
  return result?._meta?.["pml/search"]?.mode;
}

Deno.test({
  ...meaningsTest(
    "pml stdio uses the built-in model at first and the configured one later, and the next process reuses the index",
    here,
  ),
  fn: async () => {
    assert.ok(typeof here !== "string");
    await using ws = await house(here.model);
    {
      // It ends before the next one starts.
      await using pml = new RawStdio(ws, { ownProcess: true });
      await pml.open();
      assert.ok(!pml.stderr.includes("Index"), "nothing before the first search");
      assert.equal(await modeOf(pml, "look into a document"), "builtin");
      await until(async () => await modeOf(pml, "look into a document") === "hybrid");
      assert.match(pml.stderr, /info {2}Indexed (\d+) of \1 tools/);
      // The query of the configuration may now select other tools.
      await until(() => pml.messages.some(({ method }) => method === LIST_CHANGED));
      await pml.close();
      await pml.watch.assertNothingLeft();
    }
    // The test kills it.
    await using pml = new RawStdio(ws, { ownProcess: true });
    await pml.open();
    await until(async () => await modeOf(pml, "another thing to do") === "hybrid");
    assert.ok(!pml.stderr.includes("Indexed"), pml.stderr);
    await pml.kill("SIGKILL");
    await pml.watch.assertNothingLeft();
  },
});

Deno.test({
  ...meaningsTest(
    "pml search install-model installs the model after a yes, tests it and writes it into the configuration",
    here,
  ),
  fn: async () => {
    assert.ok(typeof here !== "string");
    const { model } = here;
    const read = async (name: string) =>
      [name, new Uint8Array(await readFile(join(model, name)))] as const;
    await using hub = new FakeHub(
      Object.fromEntries(await Promise.all([...FILES, ONNX].map(read))),
    );
    await using ws = await house();
    const config = "# mine\nlimits:\n  call_ms: 50000 # so\n";
    await writeFiles(ws.home, { "config.yaml": config });
    const install = ["search", "install-model", "--from", hub.url];

    const alone = await runPml(ws, install);
    assert.equal(alone.code, 1);
    assert.match(alone.stderr, /7\.3 MB to download, 7\.3 MB on disk[^]*APPROVAL_REQUIRED/);
    assert.ok(hub.asked.every((one) => one.startsWith("HEAD ")), "nothing comes without a word");
    const done = await runPmlOnTerminal(ws, install, { typed: [[/Continue\?/, "yes"]] });
    assert.equal(done.code, 0, done.stdout);
    assert.match(
      done.stdout,
      /Model: 7\.3 MB of 7\.3 MB[^]*became 512 numbers[^]*Indexed (\d+) of \1/,
    );
    const folder = join(ws.home, "models", "all-MiniLM-L6-v2");
    assert.deepEqual(await readdir(join(ws.home, "models")), ["all-MiniLM-L6-v2"]);
    const written = await readFile(join(ws.home, "config.yaml"), "utf8");
    assert.equal(written, `${config}search:\n  model: ${folder}\n`);

    const result = await runPml(ws, ["search", "--json", "look into a document"]);
    assert.equal(JSON.parse(result.stdout).mode, "hybrid");

    // Another model than the pinned one needs the user, even with --yes.
    const settings = join(folder, "config.json");
    await writeFile(settings, `${await readFile(settings, "utf8")} `);
    const again = ["search", "install-model", "--yes", folder];
    const planted = await runPml(ws, again);
    assert.equal(planted.code, 1);
    assert.match(planted.stderr, /APPROVAL_REQUIRED: .*pinned one/);
    const refused = await runPmlOnTerminal(ws, again, { typed: [[/Type "pin"/, "yes"]] });
    assert.equal(refused.code, 1);
    const lexical = await runPml(ws, ["search", "--json", "look into a document"]);
    assert.equal(JSON.parse(lexical.stdout).mode, "builtin", "the pin is still the old one");
    const taken = await runPmlOnTerminal(ws, again, { typed: [[/Type "pin"/, "pin"]] });
    assert.equal(taken.code, 0, taken.stdout);
  },
});

Deno.test("pml search install-model reports problems of a folder, or that it is offline", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}", "m/config.json": "{}" } });
  const bad = await runPml(ws, ["search", "install-model", "--yes", "m"]);
  assert.match(bad.stderr, /^error: CONFIG_INVALID: .*m": it has no tokenizer\.json\n {2}Give/m);
  assert.equal(bad.code, 2);
  const offline = ["search", "install-model", "--json", "--from", "http://127.0.0.1:9"];
  const { stdout, code } = await runPml(ws, offline);
  assert.equal(code, 1);
  const { error } = JSON.parse(stdout);
  assert.equal(error.code, "UPSTREAM_DOWN");
  assert.match(error.hint, /^Search uses the built-in model/);
  // A query may be the name of a subcommand.
  const words = await runPml(ws, ["search", "--json", "--", "install-model"]);
  assert.equal(JSON.parse(words.stdout).mode, "builtin");
  assert.throws(() => Deno.statSync(join(ws.home, "config.yaml")), Deno.errors.NotFound);
  // A command that ends soon starts no download; it prints how to get the library.
  const texts = FILES.map((name) => [`model/${name}`, "{}"]);
  await writeFiles(ws.home, {
    ...Object.fromEntries(texts),
    [`model/${ONNX}`]: "x",
    "config.yaml": `search:\n  model: ${JSON.stringify(join(ws.home, "model"))}\n`,
  });
  const result = await runPml(ws, ["search", "read", "a", "file"]);
  assert.match(result.stdout, /^filesystem:/);
  assert.match(
    result.stderr,
    /Search works with the built-in model until `pml search install-model .*\(36 MB\)/,
  );
  assert.ok(!result.stderr.includes("Installing"), result.stderr);
  // If the settings of npm cannot be read, installing fails before it uses the network.
  const env = { NPM_CONFIG_USERCONFIG: join(ws.home, "none") };
  await using pml = new RawStdio(ws, { env });
  await pml.open();
  assert.equal(await modeOf(pml, "read a file"), "builtin");
  await until(() => /Installing .*36 MB/.test(pml.stderr));
});
