import assert from "node:assert/strict";
import { join } from "node:path";
import { Scratch } from "./_scratch_test.ts";
import { loadConfig, type LoadedConfig, reloadConfig } from "./config.ts";
import { isOtherConfig, rulingPaths, watchConfig } from "./watch.ts";

/** Yields the changes of a watched configuration, and stops watching when the test ends. */
class Watched implements AsyncDisposable {
  readonly #stop = new AbortController();
  readonly #seen: LoadedConfig[] = [];
  readonly #done: Promise<void>;
  #wake = () => {};

  constructor(loaded: LoadedConfig) {
    let known = loaded;
    const reread = async () => {
      const now = await reloadConfig(known);
      if (isOtherConfig(now, known)) this.#seen.push(now);
      known = now;
      this.#wake();
    };
    const paths = () => rulingPaths(known);
    this.#done = watchConfig(paths, reread, this.#stop.signal);
  }

  /** Waits for a change that passes a test. */
  async until(test: (loaded: LoadedConfig) => boolean): Promise<LoadedConfig> {
    for (;;) {
      const found = this.#seen.find(test);
      if (found !== undefined) return found;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const deadline = setTimeout(() => reject(new Error("no such change came")), 5000);
      this.#wake = resolve;
      await promise.finally(() => clearTimeout(deadline));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }
}

const denies = (text: string) => (loaded: LoadedConfig) =>
  loaded.problem === undefined &&
  [loaded.file, ...loaded.parents].some((file) =>
    file?.permissions?.deny.some(({ pattern }) => pattern.text === text)
  );

function denying(text: string): string {
  return JSON.stringify({ version: 1, permissions: { deny: [text] } });
}

Deno.test("watchConfig() sees a file come, break, mend and go", async () => {
  using scratch = new Scratch();
  await using watched = new Watched(await scratch.load());
  scratch.write("ws/.pml.json", denying("a:b"));
  await watched.until(denies("a:b"));
  scratch.write("ws/.pml.json", "{");
  await watched.until((loaded) => loaded.problem?.code === "CONFIG_INVALID");
  scratch.write("ws/.pml.json.new", denying("c:d"));
  Deno.renameSync(join(scratch.ws, ".pml.json.new"), join(scratch.ws, ".pml.json"));
  await watched.until(denies("c:d"));
  Deno.removeSync(join(scratch.ws, ".pml.json"));
  const gone = await watched.until((loaded) => loaded.file === undefined && !loaded.problem);
  assert.match(gone.warnings.join(), /default rules/);
});

Deno.test("watchConfig() misses nothing that was written before it began", async () => {
  using scratch = new Scratch();
  const loaded = await scratch.load();
  scratch.write("ws/.pml.json", denying("a:b"));
  await using watched = new Watched(loaded);
  await watched.until(denies("a:b"));
});

Deno.test("watchConfig() sees the person's file come in a home that was not there", async () => {
  using scratch = new Scratch();
  await using watched = new Watched(await scratch.load());
  scratch.write("user/.pml/config.yaml", "limits: {batch: 7}");
  await watched.until(({ userConfig }) => userConfig.settings.limits.batch === 7);
  scratch.write("user/.pml/config.yaml", "limits: {batch: 8}");
  await watched.until(({ userConfig }) => userConfig.settings.limits.batch === 8);
});

Deno.test("watchConfig() sees a file above, and the real file behind a link", async () => {
  using scratch = new Scratch();
  scratch.write("ws/.git", "");
  const real = scratch.write("real/mine.json", denying("a:b"));
  Deno.mkdirSync(join(scratch.ws, "sub"));
  Deno.symlinkSync(real, join(scratch.ws, "sub/.pml.json"));
  const loaded = await loadConfig(scratch.environment(), join(scratch.ws, "sub"));
  assert.ok(denies("a:b")(loaded));
  await using watched = new Watched(loaded);
  scratch.write("ws/.pml.json", denying("e:f"));
  const seen = await watched.until(denies("e:f"));
  assert.equal(seen.workspace.root, join(scratch.ws, "sub"));
  scratch.write("real/mine.json", denying("c:d"));
  await watched.until(denies("c:d"));
  scratch.write("ws/.pml.json", denying("g:h"));
  await watched.until(denies("g:h"));
});

Deno.test("watchConfig() sees a bad file behind a link mended where it is", async () => {
  using scratch = new Scratch();
  const real = scratch.write("real/mine.json", "{");
  Deno.symlinkSync(real, join(scratch.ws, ".pml.json"));
  await using watched = new Watched(await scratch.load());
  scratch.write("real/mine.json", denying("a:b"));
  await watched.until(denies("a:b"));
});

Deno.test("watchConfig() ends at once when its signal aborts", async () => {
  using scratch = new Scratch();
  const loaded = await scratch.load();
  const reread = () => assert.fail("nothing changed");
  await watchConfig(() => [], reread, AbortSignal.abort());
  const watched = new Watched(loaded);
  await watched[Symbol.asyncDispose]();
});

Deno.test("watchConfig() keeps denying where no workspace was found", async () => {
  using scratch = new Scratch();
  const missing = join(scratch.root, "missing");
  const loaded = await scratch.load({ PML_WORKSPACE: missing });
  await using watched = new Watched(loaded);
  scratch.write("ws/.pml.json", '{"version": 1}');
  scratch.write("user/.pml/config.yaml", "limits: {batch: 7}");
  Deno.mkdirSync(missing);
  scratch.write("ws/.pml.json", '{"version": 1, "intent": "x"}');
  const found = await watched.until(({ workspaceError: lost }) => !lost);
  assert.equal(found.workspace.root, missing);
});
