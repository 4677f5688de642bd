import assert from "node:assert/strict";
import { openApp } from "../app.ts";
import { environmentOf } from "../config/env.ts";
import type { Check } from "../core/check.ts";
import { PmlError } from "../core/errors.ts";
import { doctor } from "./_doctor.ts";

Deno.test("doctor() tells a workspace file that cannot be trusted as one finding of many", async () => {
  const HOME = await Deno.realPath(await Deno.makeTempDir());
  try {
    const cwd = `${HOME}/ws`;
    await Deno.mkdir(cwd);
    await Deno.writeTextFile(`${cwd}/real.json`, '{"version": 1}');
    await Deno.symlink("real.json", `${cwd}/.pml.json`);
    const environment = environmentOf({ HOME, PML_REGISTRIES: "none" });
    await using app = await openApp({ cwd, environment });
    const link = new PmlError("WORKSPACE_UNTRUSTED", "Cannot trust it: it is a link", {
      hint: "Put the file itself there",
    });
    const { signal } = new AbortController();
    const looks = async () => {
      const { value, text = "" } = await doctor({ app, signal });
      const { findings } = value as { readonly findings: readonly Check[] };
      assert.ok(findings.length > 5, text);
      return { text, trust: findings.find(({ name }) => name === "trust") };
    };
    assert.match((await looks()).text, /^(ok {2}|FAIL) trust: .+\n {5}.+/m);
    app.untrusted = () => Promise.reject(link);
    const { text, trust } = await looks();
    assert.deepEqual(trust, { name: "trust", ok: false, said: link.message, hint: link.hint });
    assert.match(text, /^FAIL trust: Cannot trust it: it is a link\n {5}Put/m);
  } finally {
    await Deno.remove(HOME, { recursive: true });
  }
});
