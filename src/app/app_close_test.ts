import assert from "node:assert/strict";
import { environmentOf } from "../config/env.ts";
import { openApp } from "./app.ts";

Deno.test("a closed app records no change of the configuration, such as one that revokes its identity", async () => {
  const HOME = await Deno.realPath(await Deno.makeTempDir());
  try {
    const cwd = `${HOME}/ws`;
    await Deno.mkdir(cwd);
    await Deno.mkdir(`${HOME}/.pml`, { mode: 0o700 });
    await Deno.writeTextFile(`${HOME}/.pml/config.yaml`, "warm: false\n");
    const environment = environmentOf({ HOME, PML_REGISTRIES: "none", PML_LOG_LEVEL: "error" });
    const app = await openApp({ cwd, environment });
    const callPath = await app.callPath();
    callPath.record("test", { about: {} });
    await app[Symbol.asyncDispose]();
    const events: unknown[] = [];
    using _watched = callPath.watchRecords((record) => void events.push(record));
    await Deno.writeTextFile(`${HOME}/.pml/config.yaml`, "warm: true\n");
    await app.policy.refresh();
    assert.deepEqual(events, []);
  } finally {
    await Deno.remove(HOME, { recursive: true });
  }
});
