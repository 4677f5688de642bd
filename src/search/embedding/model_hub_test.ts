import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { FakeHub, type HubFaults } from "../../../tests/kit/fake_hub.ts";
import { GuardedFetch } from "../../transport/http/client/guarded_fetch.ts";
import { ModelHub, type ModelHubOptions } from "./model_hub.ts";

const ONNX = "onnx/model_quantized.onnx";
const FILES: Readonly<Record<string, Uint8Array>> = {
  "config.json": new TextEncoder().encode('{"model_type":"bert"}'),
  "tokenizer.json": new TextEncoder().encode("{}"),
  "tokenizer_config.json": new TextEncoder().encode("{}"),
  [ONNX]: new Uint8Array(randomBytes(300_000)),
};

/** A hub, the `fetch` that reaches it, and a folder for the model. */
class Scene implements AsyncDisposable {
  readonly hub = new FakeHub(FILES);
  readonly fetch = new GuardedFetch();
  readonly root = Deno.makeTempDirSync();
  readonly folder = join(this.root, "models", "tiny");
  readonly told: number[] = [];

  constructor(faults: HubFaults = {}) {
    this.hub.faults = faults;
  }

  model(more: Partial<ModelHubOptions> = {}): ModelHub {
    return new ModelHub({
      fetch: this.fetch.fetch,
      from: `${this.hub.url}/`,
      signal: new AbortController().signal,
      retryMs: 1,
      ...more,
    });
  }

  async install(more: Partial<ModelHubOptions> = {}, free?: number): Promise<void> {
    const model = this.model(more);
    if (free !== undefined) model.freeBytes = () => Promise.resolve(free);
    const onBytes = (done: number) => void this.told.push(done);
    await model.install(await model.listFiles(), { folder: this.folder, onBytes });
  }

  /** Asserts that the folder contains the whole model and nothing else. */
  assertWhole(): void {
    for (const [name, bytes] of Object.entries(FILES)) {
      assert.deepEqual(Deno.readFileSync(join(this.folder, name)), bytes, name);
    }
    const names = (path: string) => [...Deno.readDirSync(path)].map(({ name }) => name).sort();
    assert.deepEqual(names(join(this.folder, "..")), ["tiny"]);
    assert.deepEqual(names(join(this.folder, "onnx")), ["model_quantized.onnx"]);
  }

  /** The ranges that were requested of the model file, in order. */
  ranges(): string[] {
    return this.hub.asked.filter((one) => /^GET \/storage/.test(one))
      .map((one) => one.split(" ").slice(2).join(" "));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.fetch[Symbol.dispose]();
    await this.hub[Symbol.asyncDispose]();
    await Deno.remove(this.root, { recursive: true });
  }
}

Deno.test("ModelHub returns the size first, and downloads the complete fixed revision", async () => {
  await using scene = new Scene();
  const model = scene.model();
  const files = await model.listFiles();
  assert.ok(scene.hub.asked.every((one) => one.startsWith("HEAD /Xenova/all-MiniLM-L6-v2/")));
  const total = Object.values(FILES).reduce((sum, { length }) => sum + length, 0);
  assert.equal(files.reduce((sum, { bytes }) => sum + bytes, 0), total);
  assert.ok(scene.hub.asked.every((one) => one.includes(`/resolve/${model.model.revision}/`)));
  assert.equal(await model.has(files, scene.folder), false);
  await scene.install();
  scene.assertWhole();
  assert.equal(scene.told.at(-1), total);
  assert.deepEqual(scene.told, [...scene.told].sort((a, b) => a - b));
  assert.equal(await model.has(files, scene.folder), true);
  await Deno.writeFile(join(scene.folder, ONNX), new Uint8Array(300_000));
  assert.equal(await model.has(files, scene.folder), false, "by its hash");
});

Deno.test("ModelHub resumes a broken download, in the same run and in the next", async () => {
  await using scene = new Scene({ cut: { after: 70_000, times: 7 } });
  // The text files fit in one answer; each answer has a part of the model file.
  await scene.install();
  scene.assertWhole();
  assert.deepEqual(scene.ranges().slice(0, 3), ["", "bytes=70000-", "bytes=140000-"]);

  await using broken = new Scene({ cut: { after: 70_000, times: 4 } });
  const stopped = new AbortController();
  const model = broken.model({ signal: stopped.signal });
  const files = await model.listFiles();
  await assert.rejects(model.install(files, {
    folder: broken.folder,
    onBytes: (done) => done > 140_000 && stopped.abort(new Error("the user cancelled")),
  }));
  broken.hub.asked.length = 0;
  broken.hub.faults = {};
  await broken.install();
  broken.assertWhole();
  assert.match(broken.ranges().join(), /^bytes=1[4-9]\d{4}-$/);
});

Deno.test("ModelHub allows one installation at a time, and another when the first has ended", async () => {
  await using scene = new Scene();
  const model = scene.model();
  const files = await model.listFiles();
  const options = { folder: scene.folder, onBytes: () => {} };
  const said = { code: "OVERLOADED", message: /another PML is installing it$/ };
  for (const fault of [{ status: 404 }, {}]) {
    const first = model.install(files, options);
    scene.hub.faults = fault;
    await assert.rejects(scene.model().install(files, options), said);
    await first.catch((error) => assert.equal(error.code, "UPSTREAM_PROTOCOL"));
  }
  await scene.install();
  scene.assertWhole();
  // A lock file left by a killed process does not block an installation.
  Deno.writeTextFileSync(`${scene.folder}.lock`, "");
  await scene.install();
  scene.assertWhole();
});

Deno.test("ModelHub restarts a download if the hub supports no ranges or its content changed", async () => {
  await using plain = new Scene({ cut: { after: 70_000, times: 4 }, noRanges: true });
  await plain.install();
  plain.assertWhole();
  assert.ok(plain.ranges().length === 2, plain.ranges().join());

  await using other = new Scene({ cut: { after: 70_000, times: 4 } });
  const stopped = new AbortController();
  const model = other.model({ signal: stopped.signal });
  await assert.rejects(model.install(await model.listFiles(), {
    folder: other.folder,
    onBytes: (done) => done > 60_000 && stopped.abort(new Error("the user cancelled")),
  }));
  const part = join(`${other.folder}.part`, `${ONNX}.part`);
  assert.equal(Deno.statSync(part).size, 70_000);
  // The part belongs to content that the hub no longer serves.
  Deno.writeTextFileSync(`${part}.etag`, '"another"');
  Deno.writeFileSync(part, new Uint8Array(70_000));
  other.hub.faults = {};
  await other.install();
  other.assertWhole();
});

Deno.test("ModelHub refuses a file whose hash or size differs from the hub's", async () => {
  await using wrong = new Scene({ wrongHash: true });
  await assert.rejects(wrong.install(), { code: "INTEGRITY_MISMATCH" });
  assert.throws(() => Deno.statSync(wrong.folder), Deno.errors.NotFound);
  assert.throws(() => Deno.statSync(join(`${wrong.folder}.part`, `${ONNX}.part`)));

  await using more = new Scene({ told: 1_000 });
  await assert.rejects(more.install(), { message: /more than the announced 1000 bytes came/ });
  await using large = new Scene({ told: 10 ** 12 });
  await assert.rejects(large.install(), { code: "RESULT_TOO_LARGE" });
  await using less = new Scene({ told: 400_000 });
  await assert.rejects(less.install(), { message: /its answer ended/ });
});

Deno.test("ModelHub reports each failure with its reason, and that search uses the built-in model", async () => {
  const lexical = { hint: /built-in model/ };
  for (const [status, code] of [[404, "UPSTREAM_PROTOCOL"], [503, "UPSTREAM_DOWN"]] as const) {
    await using scene = new Scene({ status });
    await assert.rejects(scene.install(), {
      ...lexical,
      code,
      message: new RegExp(`^Cannot download ".*" from "127.0.0.1:\\d+": it answers ${status}$`),
    });
    // The first file that fails ends the others, too.
    const counts = Object.values(Object.groupBy(scene.hub.asked, (request) => request))
      .map((requests) => requests?.length ?? 0);
    assert.equal(Math.max(...counts), status === 503 ? 3 : 1, "only an outage is tried again");
  }
  await using scene = new Scene();
  const gone = scene.hub.url;
  await scene.hub[Symbol.asyncDispose]();
  const offline = scene.model({ from: gone });
  await assert.rejects(offline.listFiles(), {
    ...lexical,
    code: "UPSTREAM_DOWN",
    message: /connection refused$/,
  });
  assert.throws(() => scene.model({ from: "ftp://x" }), { code: "USAGE" });
  await using plain = new Scene();
  await assert.rejects(plain.install({}, 1 << 20), {
    code: "OVERLOADED",
    message: /MB are needed, 1 MB are free$/,
  });
  await using stalling = new Scene({ stalls: true });
  await assert.rejects(stalling.install({ stallMs: 30 }), { message: /no data came for 30 ms/ });
});

Deno.test("ModelHub follows at most five redirects, only to TLS or to the hub itself", async () => {
  const elsewhere = new FakeHub(FILES);
  await using _ = elsewhere;
  const to = async (location: string, message: RegExp) => {
    await using scene = new Scene({ location });
    await assert.rejects(scene.install(), { message });
  };
  await to(`${elsewhere.url}/storage/${ONNX}`, /an address without TLS$/);
  await to("file:///etc/passwd", /an address without TLS$/);
  await to("https://127.0.0.1:9/x", /its address is not public$/);
  await to("https://169.254.169.254/x", /its address is not public$/);
  const round = `/Xenova/all-MiniLM-L6-v2/resolve/${"0".repeat(40)}/${ONNX}`;
  await to(round, /it redirects more than 5 times$/);
  assert.deepEqual(elsewhere.asked, []);
});
