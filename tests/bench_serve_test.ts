import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { pathOf } from "../bench/measure.ts";
import { optionsOf } from "../bench/serve/options.ts";
import { PEERS } from "../bench/serve/servers.ts";

Deno.test("optionsOf() names the wrong option in one sentence", async () => {
  const folder = await mkdtemp(join(tmpdir(), "pml-peers-"));
  const wrong: readonly (readonly [string[], RegExp])[] = [
    [
      ["--peers", "/no/such"],
      /^Cannot use --peers \/no\/such: .*supergateway/,
    ],
    [["--peers", folder], /supergateway is not .*\(npm install supergateway mcp-/],
    [["--project", folder], /^Cannot use --project .*: there is no mod\.ts in it$/],
    [["--rounds", "x"], /--rounds x .* above 0$/],
    [["--seconds", "0"], /--seconds 0 is not/],
    [["--connections", "1,,2"], /--connections {2}is not/],
    [["--only", "("], /^Cannot measure: Invalid regular expression/],
    [["--peer", "x"], /^Cannot measure: Unknown option '--peer'/],
  ];
  for (const [args, said] of wrong) assert.match(String(optionsOf(args)), said);
  for (const file of Object.values(PEERS)) {
    const path = join(folder, "node_modules", file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, "");
  }
  assert.equal(Object(optionsOf(["--peers", folder])).peers, folder);
  await rm(folder, { recursive: true });
});

Deno.test("bench:serve reports at once that a folder contains no peers, and starts nothing", async () => {
  const args = ["run", "-A", "--quiet", pathOf("bench/serve/main.ts"), "--peers", "/no/such"];
  const { code, stdout, stderr } = await new Deno.Command(process.execPath, { args }).output();
  const text = new TextDecoder().decode(stderr);
  assert.deepEqual([code, stdout.length, text.split("\n").length], [2, 0, 2], text);
  assert.match(text, /^Cannot use --peers \/no\/such: /);
});
