import assert from "node:assert/strict";
import process from "node:process";
import { repoFile } from "./kit/pml_command.ts";

Deno.test("each step of the README's demo has the expected result", async () => {
  const { code, stdout, stderr } = await new Deno.Command(process.execPath, {
    args: ["run", "-A", "--config", repoFile("deno.json"), repoFile("tools/demo.ts")],
    cwd: repoFile(""),
  }).output();
  const text = new TextDecoder().decode(stdout);
  assert.equal(code, 0, text + new TextDecoder().decode(stderr));
  assert.match(text, /10\. execute_code[^]*the expected result/);
});
