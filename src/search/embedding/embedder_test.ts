import assert from "node:assert/strict";
import { join } from "node:path";
import { isGone } from "../../../tests/fixtures/modules/yard.ts";
import { until } from "../../../tests/kit/wait.ts";
import { Embedder, type EmbedderBounds, type EmbedderOwner } from "./embedder.ts";
import { readModel } from "./embedding_model.ts";

/** A fake library. Its behaviour depends on the text. */
const LIBRARY = `
export const env = { backends: { onnx: { wasm: {} } } };
const attempts = {
  fetch: () => fetch("http://127.0.0.1:PORT/"),
  connect: () => Deno.connect({ hostname: "127.0.0.1", port: PORT }),
  passwd: () => Deno.readTextFile("/etc/passwd"),
  environ: () => Deno.readTextFile("/proc/self/environ"),
  home: () => Deno.readTextFile(OUTSIDE),
  unpinned: () => Deno.readTextFile(MODEL + "onnx/other.onnx_data_1"),
  fetched: () => env.fetch(env.localModelPath + "model/onnx/other.onnx_data_1").then((x) => x.text()),
  folder: async () => { for await (const one of Deno.readDir(MODEL)) return one; },
  write: () => Deno.writeTextFile(MODEL + "config.json", "{}"),
  env: () => Deno.env.toObject(),
  run: () => new Deno.Command("/bin/true").output(),
  ffi: () => Deno.dlopen("/lib/x.so", {}),
  npm: () => import("npm:left-pad@1.3.0"),
  remote: () => import("https://localhost:1/x.js"),
  file: () => import("file:///etc/hostname"),
};
async function opened() {
  const open = [];
  for (const [name, attempt] of Object.entries(attempts)) {
    try {
      await attempt();
      open.push(name);
    } catch {}
  }
  return open;
}
export async function pipeline(task, model, options) {
  console.log("loading");
  await (await env.fetch(env.localModelPath + model + "/config.json")).json();
  return async ([text, ...more], how) => {
    if (text === "probe") throw new Error("open: " + await opened());
    if (text === "said") {
      throw new Error(JSON.stringify([task, { ...options, session_options: 0 }, how, env.allowRemoteModels, typeof process]));
    }
    if (text === "hang") await new Promise(() => setInterval(() => {}, 1_000));
    if (text === "spin") for (;;);
    if (text === "die") Deno.exit(3);
    if (text === "eat") { globalThis.eaten = new Uint8Array(400 << 20).fill(1); for (;;); }
    if (text === "print") Deno.stdout.writeSync(new TextEncoder().encode("hello\\n"));
    if (text === "forge") Deno.stdout.writeSync(new TextEncoder().encode('{"id":77,"vectors":[]}\\n'));
    const count = more.length + 1;
    if (text === "few") return { dims: [count - 1, 2], data: new Float32Array(2 * count) };
    const one = text === "zero" ? 0 : text === "nan" ? NaN : 3;
    return { dims: [count, 2], data: Float32Array.from({ length: 2 * count }, (_, at) => at % 2 ? 4 : one).map((x) => text === "zero" ? 0 : x) };
  };
}
`;

/** A library, a model and a home in one folder, and the recorded process groups. */
class Stage implements EmbedderOwner, AsyncDisposable {
  readonly folder = Deno.realPathSync(Deno.makeTempDirSync());
  readonly home = this.folder;
  readonly pids = new Set<number>();
  readonly log = { debug: () => {} };
  readonly limits: EmbedderOwner["limits"];
  readonly embedder: Embedder;
  looks = 0;

  constructor(
    { bounds, limits = { startMs: 20_000, idleMs: 20_000 } }: {
      readonly bounds?: EmbedderBounds;
      readonly limits?: EmbedderOwner["limits"];
    } = {},
    library = LIBRARY.replaceAll("PORT", "0"),
  ) {
    this.limits = limits;
    const at = (...names: string[]) => join(this.folder, ...names);
    for (const name of ["library", "a model", "a model/onnx"]) Deno.mkdirSync(at(name));
    const texts = ["config.json", "tokenizer.json", "tokenizer_config.json"];
    for (const name of texts) Deno.writeTextFileSync(at("a model", name), "{}");
    Deno.writeTextFileSync(at("a model/onnx/model.onnx"), "x");
    Deno.writeTextFileSync(at("a model/onnx/other.onnx_data_1"), "not looked at");
    Deno.writeTextFileSync(at("outside.txt"), "secret");
    Deno.writeTextFileSync(at("library/ort-wasm-simd-threaded.wasm"), "");
    const code = library.replace("OUTSIDE", JSON.stringify(at("outside.txt")))
      .replaceAll("MODEL", JSON.stringify(at("a model/")));
    Deno.writeTextFileSync(at("library/transformers.web.min.js"), code);
    const model = { model: readModel(at("a model")), hash: "test" };
    this.embedder = new Embedder(model, this, bounds);
  }

  libraryFor(): Promise<string> {
    this.looks++;
    return Promise.resolve(join(this.folder, "library"));
  }

  groups(): ReturnType<EmbedderOwner["groups"]> {
    return Promise.resolve({
      mark: "test",
      add: (pid: number) => Promise.resolve(void this.pids.add(pid)),
      remove: (pid: number) => Promise.resolve(void this.pids.delete(pid)),
    });
  }

  embed(...texts: string[]): ReturnType<Embedder["embed"]> {
    return this.embedder.embed(texts, new AbortController().signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.embedder[Symbol.asyncDispose]();
    await Deno.remove(this.folder, { recursive: true });
  }
}

Deno.test("the embedder's child can read the library and the model, and do nothing else", async () => {
  // Each of these actions works without the sandbox.
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, () => {
    return new Response("");
  });
  const library = LIBRARY.replaceAll("PORT", `${server.addr.port}`);
  await (await fetch(`http://127.0.0.1:${server.addr.port}/`)).text();
  await using stage = new Stage({}, library);
  const [one, two] = await stage.embed("a", "b");
  assert.deepEqual(one && [...one].map((x) => x.toFixed(3)), ["0.600", "0.800"]);
  assert.equal(two?.length, 2);
  const [pid = 0] = stage.pids;
  const flags = await Deno.readTextFile(`/proc/${pid}/cmdline`);
  assert.ok(!/--allow-(?!read)|-A\b/.test(flags), flags);
  await assert.rejects(stage.embed("probe"), { message: /it reports Error: open: $/ });
  await assert.rejects(stage.embed("said"), {
    message:
      /\["feature-extraction",\{"dtype":"fp32","device":"wasm","session_options":0\},\{"pooling":"mean","normalize":true\},false,"undefined"\]$/,
  });
});

Deno.test("the embedder starts a new child after one that died, hung, looped or sent garbage", async () => {
  await using stage = new Stage({ bounds: { answerMs: 1_000 } });
  const failures: Readonly<Record<string, RegExp>> = {
    die: /ended with exit code 3/,
    hang: / 1 s/,
    spin: / 1 s/,
    print: /an answer: hello/,
    forge: /an answer: \{"id":77/,
    few: /contain the vectors/,
  };
  for (const [text, message] of Object.entries(failures)) {
    const [pid = 0] = stage.pids;
    await assert.rejects(stage.embed(text, "more"), { message, hint: /built-in model/ }, text);
    assert.equal((await stage.embed("a")).length, 1, `it is started anew after ${text}`);
    // The new child may answer before the end of the old one is noticed.
    await until(() => !stage.pids.has(pid));
    assert.ok(pid === 0 || await isGone(pid), text);
  }
  assert.equal(stage.looks, 1 + Object.keys(failures).length, "each start checks the files");
});

Deno.test("the embedder returns undefined for a text without a vector, and keeps its child", async () => {
  await using stage = new Stage();
  for (const text of ["zero", "nan"]) {
    const vectors = await stage.embed(text, "more");
    assert.equal(vectors.length, 2);
    assert.equal(vectors[0], undefined);
  }
  assert.equal((await stage.embed("a"))[0]?.length, 2);
  assert.equal(stage.looks, 1, "it is the same child");
});

Deno.test("the embedder ends a child that uses too much memory or is idle, and its child on dispose", async () => {
  await using stage = new Stage({
    bounds: { spareBytes: 300 << 20 },
    limits: { startMs: 20_000, idleMs: 50 },
  });
  await assert.rejects(stage.embed("eat"), {
    message: /it used \d+ MB of memory, more than 300 MB/,
  });
  await stage.embed("a");
  await until(() => stage.pids.size === 0);
  await stage.embed("a");
  const [pid = 0] = stage.pids;
  await stage.embedder[Symbol.asyncDispose]();
  assert.ok(await isGone(pid));
  await assert.rejects(stage.embed("a"), { code: "CANCELLED" });
});

Deno.test("the embedder reports why a model does not load, and stops waiting when its signal aborts", async () => {
  await using bad = new Stage({}, "throw new Error('no such thing');");
  await assert.rejects(bad.embed("a"), { message: /Error: no such thing/ });
  await using slow = new Stage({ limits: { startMs: 300, idleMs: 1_000 } }, "for (;;);");
  await assert.rejects(slow.embed("a"), { message: / 300 ms/ });
  await using stage = new Stage();
  const waiting = new AbortController();
  const asked = stage.embedder.embed(["hang"], waiting.signal);
  waiting.abort(new Error("enough"));
  await assert.rejects(asked, { message: "enough" });
});
