import assert from "node:assert/strict";
import { openApp } from "../app/app.ts";
import { environmentOf } from "../config/env.ts";
import type { CheckReport } from "../core/check.ts";
import { PmlError } from "../core/errors.ts";
import { gatedServer } from "../../tests/kit/gated_server.ts";
import { doctor } from "./_doctor.ts";
import { toolsCommand } from "./_find.ts";

Deno.test("doctor() reports a workspace file that cannot be trusted as one of many findings", async () => {
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
      const { findings } = value as { readonly findings: readonly CheckReport[] };
      assert.ok(findings.length > 5, text);
      return { text, trust: findings.find(({ name }) => name === "trust") };
    };
    assert.match((await looks()).text, /^(warn|FAIL) trust: .+\n {5}.+/m);
    app.policy.findUnapproved = () => Promise.reject(link);
    const { text, trust } = await looks();
    assert.deepEqual(trust, { name: "trust", ok: false, message: link.message, hint: link.hint });
    assert.match(text, /^FAIL trust: .*a link\n {5}Put/m);
  } finally {
    await Deno.remove(HOME, { recursive: true });
  }
});

Deno.test("doctor() reports which server needs which key and its source, never its value", async () => {
  const HOME = await Deno.realPath(await Deno.makeTempDir());
  try {
    const cwd = `${HOME}/ws`;
    await Deno.mkdir(`${HOME}/.pml`, { recursive: true, mode: 0o700 });
    await Deno.mkdir(cwd);
    const own = { command: "none", env: { A: "${MINE_KEY}", B: "${NO_KEY}", C: "${SET_KEY:-}" } };
    await Deno.writeTextFile(`${HOME}/.pml/config.yaml`, JSON.stringify({ mcpServers: { own } }));
    await Deno.writeTextFile(`${cwd}/.pml.json`, '{"version": 1}');
    await Deno.writeTextFile(`${cwd}/.env`, "MINE_KEY=CANARY-of-the-file\n");
    const variables = { HOME, SET_KEY: "CANARY-of-the-environment", PML_TRUST: cwd };
    await using app = await openApp({ cwd, environment: environmentOf(variables) });
    const { text = "", value } = await doctor({ app, signal: new AbortController().signal });
    const lines = [
      "ok   key MINE_KEY: needed by own: set, in .env",
      "FAIL key NO_KEY: needed by own: not set",
      "ok   key SET_KEY: needed by own: set, in the environment",
    ];
    assert.deepEqual(text.split("\n").filter((line) => / key \w+:/.test(line)), lines);
    // The check of the server reports the key that is missing, too, with the command that sets it.
    assert.match(text, /FAIL server own: .*NO_KEY\n {5}.*`pml key set NO_KEY`/);
    assert.doesNotMatch(text + JSON.stringify(value), /CANARY/);
    // The user's own server gets no variable from the same file while it is not trusted.
    const { PML_TRUST: _, ...untrusted } = variables;
    await using other = await openApp({ cwd, environment: environmentOf(untrusted) });
    assert.equal(other.keys.find("MINE_KEY"), undefined);
    assert.equal(app.keys.find("MINE_KEY")?.from, ".env");
  } finally {
    await Deno.remove(HOME, { recursive: true });
  }
});

Deno.test("doctor() reports which model search uses, also if a model cannot be used", async () => {
  const HOME = await Deno.realPath(await Deno.makeTempDir());
  try {
    const cwd = `${HOME}/ws`;
    await Deno.mkdir(cwd);
    await Deno.mkdir(`${HOME}/.pml`, { mode: 0o700 });
    const findings = async () => {
      const environment = environmentOf({ HOME, PML_REGISTRIES: "none", PML_LOG_LEVEL: "error" });
      await using app = await openApp({ cwd, environment });
      const { value, code } = await doctor({ app, signal: new AbortController().signal });
      const { findings } = value as { readonly findings: readonly CheckReport[] };
      return { code, search: findings.find(({ name }) => name === "search") };
    };
    const without = await findings();
    assert.equal(without.search?.ok, true);
    assert.match(
      without.search?.message ?? "",
      /^with the built-in model; `pml search install-model`/,
    );
    await Deno.writeTextFile(`${HOME}/.pml/config.yaml`, "search:\n  model: ./nowhere\n");
    const { search, code } = await findings();
    assert.equal(code, 1);
    assert.equal(search?.ok, false);
    assert.match(
      search?.message ?? "",
      /^with the built-in model: .*\/nowhere": there is no such folder$/,
    );
  } finally {
    await Deno.remove(HOME, { recursive: true });
  }
});

Deno.test("doctor() makes no home where the home is refused, and says why", async () => {
  const HOME = await Deno.realPath(await Deno.makeTempDir());
  try {
    const cwd = `${HOME}/ws`;
    await Deno.mkdir(cwd);
    await Deno.writeTextFile(`${cwd}/package.json`, "{}");
    const environment = {
      ...environmentOf({ HOME, PML_REGISTRIES: "none" }),
      homeProblem: "one that does not count",
    };
    await using app = await openApp({ cwd, environment });
    const { text = "", code } = await doctor({ app, signal: new AbortController().signal });
    assert.equal(code, 1);
    assert.match(text, /^FAIL home: .*one that does not count/m);
    assert.doesNotMatch(text, /^ok {3}(?:home|server)/m);
    await assert.rejects(Deno.stat(`${HOME}/.pml`), Deno.errors.NotFound);
  } finally {
    await Deno.remove(HOME, { recursive: true });
  }
});

for (const command of ["doctor", "tools --refresh"]) {
  Deno.test(`${command} waits for servers beyond the time of a first list`, async () => {
    const HOME = await Deno.realPath(await Deno.makeTempDir());
    try {
      await using app = await slowApp(HOME);
      const at = { app, signal: new AbortController().signal };
      await (command === "doctor" ? doctor(at) : toolsCommand(at, { words: [], refresh: true }));
      const slow = app.servers.states().find(({ name }) => name === "slow");
      assert.deepEqual([slow?.state, slow?.tools], ["ready", 1]);
    } finally {
      await Deno.remove(HOME, { recursive: true });
    }
  });
}

Deno.test("doctor() warns of a server that is not ready yet", async () => {
  const HOME = await Deno.realPath(await Deno.makeTempDir());
  try {
    await using app = await slowApp(HOME);
    app.servers.lists.prepare = () => Promise.resolve();
    const { value } = await doctor({ app, signal: new AbortController().signal });
    const { findings } = value as { readonly findings: readonly CheckReport[] };
    const { ok, warns, hint } = findings.find(({ name }) => name === "server slow") ?? {};
    assert.deepEqual([ok, warns, hint?.includes("`pml tools slow`")], [true, true, true]);
  } finally {
    await Deno.remove(HOME, { recursive: true });
  }
});

/** Opens an app with a server that no request for a first list waits for. */
async function slowApp(HOME: string) {
  const cwd = `${HOME}/ws`;
  await Deno.mkdir(`${HOME}/.pml`, { mode: 0o700 });
  await Deno.mkdir(cwd);
  await Deno.writeTextFile(`${cwd}/slow.gate`, "");
  const slow = { ...gatedServer("slow"), cwd };
  const config = { mcpServers: { slow }, limits: { first_list_ms: 0 } };
  await Deno.writeTextFile(`${HOME}/.pml/config.yaml`, JSON.stringify(config));
  const environment = environmentOf({ HOME, PML_REGISTRIES: "none", PML_LOG_LEVEL: "error" });
  return await openApp({ cwd, environment });
}
