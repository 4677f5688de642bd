import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { meaningsHere, meaningsTest } from "../../tests/kit/embedder.ts";
import { until } from "../../tests/kit/wait.ts";
import { Log } from "../audit/log.ts";
import { Redactor } from "../audit/redact.ts";
import { environmentOf } from "../config/env.ts";
import { limitsOf } from "../config/limits.ts";
import { toolId } from "../core/tool_id.ts";
import type { CatalogEntry } from "./catalog.ts";
import { openApp } from "../app/app.ts";
import { Meaning, type MeaningOwner } from "./meaning.ts";

const here = await meaningsHere();
const OFFLINE = { NPM_CONFIG_REGISTRY: "http://127.0.0.1:9/" };

/** A PML home with a `Meaning`, and its log. */
class Scene implements MeaningOwner, AsyncDisposable {
  readonly home = Deno.realPathSync(Deno.makeTempDirSync());
  readonly environment = environmentOf({ PML_HOME: this.home, HOME: this.home, ...OFFLINE });
  readonly limits = limitsOf({});
  readonly logged: string[] = [];
  readonly log = new Log(new Redactor(), "debug", (line) => this.logged.push(line));
  readonly pids = new Set<number>();
  isLongRunning = false;

  open(folder: string): Meaning {
    return new Meaning(folder, this);
  }

  groups(): ReturnType<MeaningOwner["groups"]> {
    return Promise.resolve({
      mark: "test",
      add: (pid: number) => Promise.resolve(void this.pids.add(pid)),
      remove: (pid: number) => Promise.resolve(void this.pids.delete(pid)),
    });
  }

  proxyVariables(): Readonly<Record<string, string>> {
    return {};
  }

  onAllIndexed(): void {}

  warnings(): string[] {
    return this.logged.filter((line) => line.includes(" warn "));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.home, { recursive: true });
  }
}

const SAID = {
  read_file: "Read the contents of a file from disk",
  send_email: "Send an electronic letter to a person",
  get_weather: "Tell how warm it will be, and whether it rains",
};
const ENTRIES: readonly CatalogEntry[] = Object.entries(SAID).map(([name, description]) => ({
  id: toolId("one", name),
  tool: { name, description, inputSchema: { type: "object" } },
  server: { name: "one", origin: "private" },
}));

Deno.test("Meaning compares nothing if its model is unusable, logs the reason once, and waits", async () => {
  await using scene = new Scene();
  await using meaning = scene.open(join(scene.home, "nowhere"));
  for (let times = 0; times < 3; times++) {
    assert.equal(await meaning.similarities(["x"], ENTRIES), undefined);
  }
  assert.equal(scene.warnings().length, 1);
  assert.match(
    scene.warnings()[0] ?? "",
    / 5 s: Cannot use .*nowhere": /,
  );
  // The model is tried again later, after a longer pause each time.
  const now = performance.now.bind(performance);
  try {
    performance.now = () => now() + 6_000;
    assert.equal(await meaning.similarities(["x"], ENTRIES), undefined);
    assert.equal(scene.warnings().length, 2);
    assert.match(scene.warnings()[1] ?? "", /for the next 10 s/);
    performance.now = () => now() + 14_000;
    assert.equal(await meaning.similarities(["x"], ENTRIES), undefined);
    assert.equal(scene.warnings().length, 2);
  } finally {
    performance.now = now;
  }
  const { ok, message, hint } = await meaning.check(ENTRIES);
  assert.equal(ok, false);
  assert.match(message, /: Cannot use the model/);
  assert.match(hint ?? "", /pml search install-model/);
  assert.equal(meaning.library().isInstalled, false);
});

Deno.test("Meaning waits longer for a query in a process that ends after one search", async () => {
  await using scene = new Scene();
  await using meaning = scene.open(join(scene.home, "nowhere"));
  const single = meaning.queryMs;
  scene.isLongRunning = true;
  assert.ok(single >= 4 * meaning.queryMs, `${single}, ${meaning.queryMs}`);
});

Deno.test({
  ...meaningsTest(
    "Meaning compares tools with a model, stores the vectors, and refuses a changed model",
    here,
  ),
  fn: async () => {
    assert.ok(typeof here !== "string");
    await using scene = new Scene();
    await here.install(scene.home);
    const folder = join(scene.home, "my model");
    await cp(here.model, folder, { recursive: true });
    {
      await using meaning = scene.open(folder);
      assert.match((await meaning.check(ENTRIES)).message, /until .*\(0 of 3 now\)/);
      assert.equal(await meaning.similarities(["q"], ENTRIES), undefined, "not ready at first");
      await meaning.index(ENTRIES, { report: () => {}, signal: new AbortController().signal });
      const queries = ["show me what is written in my document", "do I need an umbrella tomorrow"];
      const [document, umbrella] = await meaning.similarities(queries, ENTRIES) ?? [];
      const best = (of: Float32Array = new Float32Array()) => of.indexOf(Math.max(...of));
      assert.equal(ENTRIES[best(document)]?.tool.name, "read_file");
      assert.equal(ENTRIES[best(umbrella)]?.tool.name, "get_weather");
      assert.match((await meaning.check(ENTRIES)).message, /^hybrid, 3 tools are indexed/);
      assert.equal(scene.pids.size, 1);
    }
    assert.equal(scene.pids.size, 0, "the child has ended");
    {
      await using again = scene.open(folder);
      assert.notEqual(await again.similarities(["q"], ENTRIES), undefined, "not stored");
      assert.ok(!scene.logged.slice(-1)[0]?.includes("Indexed"));
      assert.deepEqual(scene.warnings(), []);
      // Each start of a child checks the files again.
      const file = join(folder, "config.json");
      await Deno.chmod(file, 0o600);
      await Deno.writeTextFile(file, `${await Deno.readTextFile(file)} `);
      for (const pid of scene.pids) Deno.kill(pid, "SIGKILL");
      await until(() => scene.pids.size === 0);
      assert.equal(await again.similarities(["new"], ENTRIES), undefined);
      assert.match(scene.warnings().join(), /uses the built-in model .*: its files have changed/);
    }
    await using changed = scene.open(folder);
    assert.equal(await changed.similarities(["q"], ENTRIES), undefined);
    assert.match(scene.warnings().join(), /changed since their first/);
    assert.equal((await changed.check(ENTRIES)).ok, false);
    const unasked = changed.install(() => {});
    await assert.rejects(unasked, { code: "INTEGRITY_MISMATCH" });
    // The user accepts the changed model.
    const seen = await changed.checkModel();
    assert.equal(seen.hasChanged, true);
    const { dimensions } = await changed.install(() => {}, seen);
    assert.equal(dimensions, 512);
    assert.match((await changed.check(ENTRIES)).message, /until .*\(0 of 3 now\)/);
    // A model that does not work does not replace the pinned one.
    const numbers = join(folder, "onnx", "model_quantized.onnx");
    const whole = await Deno.readFile(numbers);
    await Deno.chmod(numbers, 0o600);
    await Deno.writeFile(numbers, whole.slice(0, 1_000));
    const broken = await changed.checkModel();
    await assert.rejects(changed.install(() => {}, broken), { code: "UPSTREAM_DOWN" });
    assert.equal((await changed.checkModel()).hasChanged, true);
    await Deno.writeFile(numbers, whole);
    assert.equal((await changed.checkModel()).hasChanged, false, "the pin is unchanged");
    assert.equal((await changed.check(ENTRIES)).ok, true);
  },
});

Deno.test("search without search.model uses the built-in model, and creates no model files", async () => {
  const home = Deno.realPathSync(await Deno.makeTempDir());
  const cwd = await Deno.makeTempDir();
  const environment = environmentOf({ PML_HOME: home, HOME: home, PML_LOG_LEVEL: "error" });
  await using app = await openApp({ cwd, environment });
  await app.servers.lists.prepare("tools", { only: "filesystem" });
  assert.equal((await (await app.finder()).search("read a file")).mode, "builtin");
  const { ok, message } = await (await app.finder()).check();
  assert.deepEqual([ok, message.split(";")[0]], [true, "with the built-in model"]);
  assert.throws(() => Deno.statSync(join(home, "embedder")), Deno.errors.NotFound);
});

Deno.test("only a long-running process installs the library; others report how to install it", async () => {
  await using scene = new Scene();
  const folder = join(scene.home, "model");
  await Deno.mkdir(join(folder, "onnx"), { recursive: true });
  for (const name of ["config.json", "tokenizer.json", "tokenizer_config.json"]) {
    await Deno.writeTextFile(join(folder, name), "{}");
  }
  await Deno.writeTextFile(join(folder, "onnx", "model.onnx"), "x");
  const installing = () => scene.logged.filter((line) => line.includes("Installing"));
  {
    await using meaning = scene.open(folder);
    assert.equal(await meaning.similarities(["x"], ENTRIES), undefined);
    const { ok, message } = await meaning.check(ENTRIES);
    assert.ok(ok);
    assert.match(message, /until `pml search install-model .*\(36 MB\)$/);
    assert.equal(message, meaning.installNote());
  }
  assert.deepEqual(installing(), []);
  scene.isLongRunning = true;
  await using meaning = scene.open(folder);
  assert.equal(await meaning.similarities(["x"], ENTRIES), undefined);
  await until(() => installing().length === 1);
});
