import assert from "node:assert/strict";
import { join } from "node:path";
import { PmlError } from "../../core/errors.ts";
import { type EmbeddingModel, ModelPins, readModel } from "./embedding_model.ts";
import { assertGolden } from "../../../tests/kit/golden.ts";

/** Creates a folder that looks like a model. */
function modelFolder(
  files: Readonly<Record<string, string>> = { "onnx/model_quantized.onnx": "numbers" },
): string {
  const folder = join(Deno.realPathSync(Deno.makeTempDirSync()), "tiny");
  const texts = { "config.json": "{}", "tokenizer.json": "{}", "tokenizer_config.json": "{}" };
  Deno.mkdirSync(join(folder, "onnx"), { recursive: true });
  for (const [name, text] of Object.entries({ ...texts, ...files })) {
    if (text !== "-") Deno.writeTextFileSync(join(folder, name), text);
  }
  return folder;
}

function problem(folder: string): string {
  try {
    readModel(folder);
  } catch (error) {
    assert.ok(error instanceof PmlError);
    assert.equal(error.code, "CONFIG_INVALID");
    assert.match(error.hint ?? "", /pml search install-model/);
    return error.message.replace(/^Cannot use the model in ".*?": /, "");
  }
  return "none";
}

Deno.test("readModel() selects the smallest number format and the text files of every model", () => {
  const folder = modelFolder({
    "onnx/model.onnx": "many numbers",
    "onnx/model.onnx_data": "more",
    "onnx/model.onnx_data_1": "still more",
    "onnx/model.onnx_data_10": "yet more",
    "onnx/model.onnx_database": "something else",
    "onnx/model_quantized.onnx": "numbers",
  });
  const { files, dtype, bytes } = readModel(folder);
  assert.equal(dtype, "q8");
  assert.deepEqual(files, [
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "onnx/model_quantized.onnx",
  ]);
  assert.equal(bytes, 6 + 7);
  Deno.removeSync(join(folder, "onnx/model_quantized.onnx"));
  const whole = readModel(folder);
  assert.equal(whole.dtype, "fp32");
  assert.deepEqual(whole.files.slice(3), [
    "onnx/model.onnx",
    "onnx/model.onnx_data",
    "onnx/model.onnx_data_1",
    "onnx/model.onnx_data_10",
  ]);
});

Deno.test("readModel() reports the missing part of a folder", () => {
  const numbers = { "onnx/model.onnx": "x" };
  assertGolden("search/a model that does not exist", problem("/nowhere/at/all") ?? "");
  assert.equal(problem(modelFolder({ ...numbers, "config.json": "-" })), "it has no config.json");
  assert.equal(problem(modelFolder({})).split(",")[0], "it has no onnx/model_quantized.onnx");
  const broken = modelFolder({ ...numbers, "tokenizer.json": "[" });
  assert.equal(problem(broken), "its tokenizer.json is not a JSON object");
  const odd = join(modelFolder(), "..", "a,b");
  Deno.renameSync(join(odd, "..", "tiny"), odd);
  assertGolden("search/a model with a comma in its path", problem(odd) ?? "");
  for (const name of ["config.json", "onnx/model.onnx", "onnx/model.onnx_data_1"]) {
    const linked = modelFolder({ ...numbers, "onnx/model.onnx_data_1": "more" });
    const outside = join(linked, "..", "outside");
    Deno.renameSync(join(linked, name), outside);
    Deno.symlinkSync(outside, join(linked, name));
    assert.ok(problem(linked)?.startsWith(`its ${name} is a link;`));
    Deno.removeSync(outside);
    Deno.removeSync(join(linked, name));
    Deno.mkdirSync(join(linked, name));
    assert.notEqual(problem(linked), "none", `a folder as ${name}`);
  }
});

Deno.test("ModelPins refuses a model that changed after its first use, until the user accepts it", async () => {
  const home = await Deno.makeTempDir();
  const folder = modelFolder();
  const pins = new ModelPins(home);
  const first = await pins.hashOf(readModel(folder));
  assert.match(first, /^[0-9a-f]{64}$/);
  assert.equal(await new ModelPins(home).hashOf(readModel(folder)), first);
  for (const name of readModel(folder).files) {
    const path = join(folder, name);
    const before = await Deno.readTextFile(path);
    await Deno.writeTextFile(path, `${before} `);
    await assert.rejects(pins.hashOf(readModel(folder)), {
      code: "INTEGRITY_MISMATCH",
      hint: /pml search install-model ".*tiny"/,
    });
    await Deno.writeTextFile(path, before);
    // The same content is the same model, whenever it was written.
    assert.equal(await pins.hashOf(readModel(folder)), first);
  }
  await Deno.writeTextFile(join(folder, "onnx/model_quantized.onnx"), "others");
  const seen = await pins.check(readModel(folder));
  assert.deepEqual([seen.hasChanged, seen.hash === first], [true, false]);
  await assert.rejects(pins.hashOf(readModel(folder)), "look() does not pin");
  const { sync } = Deno.FsFile.prototype;
  let synced = 0;
  try {
    Deno.FsFile.prototype.sync = async function () {
      await sync.call(this);
      synced++;
    };
    await pins.accept(seen);
  } finally {
    Deno.FsFile.prototype.sync = sync;
  }
  assert.ok(synced > 0, "the acceptance is synced to disk");
  const { hash: second } = seen;
  assert.equal(await pins.hashOf(readModel(folder)), second);
});

Deno.test("ModelPins does not hash unchanged files again, and refuses a broken pin", async () => {
  const home = await Deno.makeTempDir();
  const folder = modelFolder();
  const pins = new ModelPins(home);
  const model = readModel(folder);
  await pins.hashOf(model);
  const all = join(home, "embedder", "pins");
  const [{ name = "" } = {}] = [...Deno.readDirSync(all)];
  const path = join(all, name);
  assert.equal((await Deno.stat(path)).mode! & 0o777, 0o600);
  const pin = JSON.parse(await Deno.readTextFile(path));
  // Only the stamp is compared: with the right stamp, another hash is returned as it is.
  await Deno.writeTextFile(path, JSON.stringify({ ...pin, hash: "known" }));
  assert.equal(await pins.hashOf(model), "known");
  for (const text of ["", "{}", "null", '{"folder": 1}']) {
    await Deno.writeTextFile(path, text);
    await assert.rejects(pins.hashOf(model), { code: "INTEGRITY_MISMATCH", hint: /Remove/ });
  }
  await Deno.remove(path);
  const again: EmbeddingModel = readModel(folder);
  assert.equal(await pins.hashOf(again), pin.hash);
});
