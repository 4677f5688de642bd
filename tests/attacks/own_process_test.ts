/**
 * Another process of the same user reads the memory and environment of PML's process.
 *
 * @module
 */

import assert from "node:assert/strict";
import { type Command, pmlCommand } from "../kit/pml_command.ts";
import { until } from "../kit/wait.ts";
import { endWell } from "./oracles.ts";
import { makeScene } from "./stage.ts";

const KEY = "key-in-the-environment-of-pml";
// Root reads everything. As root, all processes here run without capabilities, as those of a user.
const PLAIN = Deno.uid() === 0 ? ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] : [];

async function read(path: string): Promise<{ readonly code: number; readonly text: string }> {
  const [program = "", ...args] = [...PLAIN, "cat", path];
  const { code, stdout } = await new Deno.Command(program, { args }).output();
  return { code, text: new TextDecoder().decode(stdout) };
}

Deno.test({
  name: "another process of the user cannot read the environment of PML (GX13)",
  ignore: Deno.build.os !== "linux" || Deno.build.env !== "gnu",
  fn: async () => {
    const [first = "", ...rest] = [...PLAIN, ...pmlCommand(), "stdio"];
    const command: Command = [first, ...rest];
    await using scene = await makeScene({ command, env: { MY_KEY: KEY } });
    const { ws, pml } = scene;
    // The reader works: another process of the user can be read.
    const [program = "", ...args] = [...PLAIN, "sleep", "60"];
    const other = new Deno.Command(program, { args, env: { MY_KEY: KEY } }).spawn();
    await until(async () => (await read(`/proc/${other.pid}/environ`)).text.includes(KEY));
    const { code, text } = await read(`/proc/${pml.pid}/environ`);
    assert.notEqual(code, 0);
    assert.doesNotMatch(text, new RegExp(KEY));
    assert.notEqual((await read(`/proc/${pml.pid}/maps`)).code, 0);
    other.kill();
    await other.status;
    await endWell(ws, pml);
  },
});
