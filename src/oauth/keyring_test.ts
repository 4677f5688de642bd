import assert from "node:assert/strict";
import { join } from "node:path";
import { keyringOf } from "./keyring.ts";

Deno.test("keyringOf() sends no value to the macOS keyring program that could run as a command", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const [file, got] = [join(folder, "security"), join(folder, "got")];
    await Deno.writeTextFile(file, `#!/bin/sh\ncat >> ${got}\n`, { mode: 0o755 });
    const keyring = keyringOf({ file, env: {} }, new AbortController().signal, { os: "darwin" });
    for (const end of ["\n", "\r\n"]) {
      assert.equal(await keyring?.set("A_KEY", `one${end}delete-keychain login`), false);
    }
    await assert.rejects(Deno.stat(got), "it was given lines");
    assert.equal(await keyring?.set("A_KEY", 'a "quoted\\ value'), false);
    assert.match(
      await Deno.readTextFile(got),
      /^add-generic-password .*"a \\"quoted\\\\ value"\n$/,
    );
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
