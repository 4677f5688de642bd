import assert from "node:assert/strict";
import type { App } from "../app/app.ts";
import { PmlError } from "../core/errors.ts";
import { namesIn } from "../io/private_files.ts";
import { ShownProcess } from "./shown_process.ts";

Deno.test("a process writes nothing into a home that was refused", async () => {
  const home = await Deno.makeTempDir();
  await Deno.chmod(home, 0o700);
  const problems = [{ file: "the home of PML", key: "" }];
  const refused = new PmlError("CONFIG_INVALID", "Cannot use it", { detail: { problems } });
  const open = async (problem?: PmlError) => {
    const app = { config: () => ({ home, workspace: "/ws", problem }) } as unknown as App;
    return await ShownProcess.open({
      command: "stdio",
      app,
      identityApps: () => Promise.resolve([]),
    });
  };
  {
    await using _ = await open(refused);
    assert.deepEqual(await namesIn(home), []);
  }
  await using _ = await open();
  assert.deepEqual(await namesIn(home), ["processes"]);
  await Deno.remove(home, { recursive: true });
});
