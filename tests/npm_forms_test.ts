/**
 * How PML reads the commands of servers, compared with npm's handling of the same command.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { plainCommand } from "../src/core/plain_command.ts";
import { packageCommand } from "../src/servers/stdio/_package_command.ts";
import { FakeNpm, type Packages } from "./kit/fake_npm.ts";

/** A program that prints its name, its arguments, and the settings that affect it. */
const TELLS = `#!/usr/bin/env node
const { basename } = require("node:path");
console.log(JSON.stringify([
  basename(__dirname), process.argv.slice(2), process.env.NODE_OPTIONS ?? "", process.env.A ?? "",
]));
`;
const HOSTS: Packages = {
  tiny: {
    "1.0.0": { "package.json": JSON.stringify({ bin: "main.js" }), "main.js": TELLS },
  },
  other: {
    "1.0.0": { "package.json": JSON.stringify({ bin: { more: "main.js" } }), "main.js": TELLS },
  },
  "@acme/own": {
    "1.0.0": { "package.json": JSON.stringify({ bin: "main.js" }), "main.js": TELLS },
  },
};

/** PML's reading: the package, its arguments, the settings that affect it, and the variable `A`. */
type Wanted = readonly [name: string, args: readonly string[], options?: string, a?: string];

/** Commands that npm runs, and PML's reading of each; R is the address of a registry. */
const FORMS: Readonly<Record<string, Wanted>> = {
  "npx -y tiny --flag x": ["tiny", ["--flag", "x"]],
  "npx -yq tiny x": ["tiny", ["x"]],
  "npx -qy tiny -- --flag": ["tiny", ["--flag"]],
  "npx -yq tiny x --flag": ["tiny", ["x", "--flag"]],
  "npx -y tiny -- --flag": ["tiny", ["--", "--flag"]],
  "npx --yes=true tiny --flag": ["tiny", ["--flag"]],
  "npx -y --loglevel=silent tiny --flag": ["tiny", ["--flag"]],
  "npx -y --loglevel silent tiny --flag": ["tiny", ["--flag"]],
  "npx -y --no-audit tiny x": ["tiny", ["x"]],
  "npx --no-fund -y tiny --flag": ["tiny", ["--flag"]],
  "npx -y --no-update-notifier tiny -- --flag": ["tiny", ["--flag"]],
  "npx -y --audit=false --fund=false tiny --flag": ["tiny", ["--flag"]],
  "npx -y --prefer-offline tiny --flag": ["tiny", ["--flag"]],
  "npx -y --prefer-online tiny --flag": ["tiny", ["--flag"]],
  "npx -y --ignore-scripts tiny --flag": ["tiny", ["--flag"]],
  "npx -y --legacy-peer-deps tiny --flag": ["tiny", ["--flag"]],
  "npx -y -p tiny -p other more --flag": ["other", ["--flag"]],
  "npx -y --package=tiny --package other tiny x": ["tiny", ["x"]],
  "npx -y --registry=R tiny": ["tiny", []],
  "npx -y --registry R tiny --flag": ["tiny", ["--flag"]],
  "npx -y --@acme:registry=R @acme/own --flag": ["own", ["--flag"]],
  "npx -y --node-options=--no-warnings tiny": ["tiny", [], "--no-warnings"],
  "npx -y --node-options --no-warnings tiny x": ["tiny", ["x"], "--no-warnings"],
  "npm --silent exec -y tiny -- --flag": ["tiny", ["--flag"]],
  "npm --loglevel silent x --yes -- tiny --flag": ["tiny", ["--flag"]],
  "npm x --yes -- tiny -- --flag": ["tiny", ["--", "--flag"]],
  "npm exec -yq --package=tiny -- tiny --flag": ["tiny", ["--flag"]],
  "sh -c|npx -y tiny --flag 'a b'": ["tiny", ["--flag", "a b"]],
  'bash -lc|exec npx -y "tiny" x': ["tiny", ["x"]],
  "sh -c|A=b npx -y tiny@^1.0.0": ["tiny", [], "", "b"],
  "env A=b npx -y tiny --flag": ["tiny", ["--flag"], "", "b"],
  "env A=b sh -c|npm exec -y tiny -- --flag": ["tiny", ["--flag"], "", "b"],
};

const wordsOf = (form: string, url: string) => {
  const [head = "", ...line] = form.replace(/\bR\b/, url).split("|");
  return [...head.split(" "), ...line];
};

Deno.test("PML reads every form of a command as npm does", async () => {
  await using npm = new FakeNpm(HOSTS);
  await using away = new FakeNpm({ tiny: HOSTS.tiny ?? {} });
  const root = await Deno.makeTempDir();
  const settings = join(root, "npmrc");
  await writeFile(settings, `registry=${npm.url}\nupdate-notifier=false\n`);
  const env = {
    PATH: Deno.env.get("PATH") ?? "",
    HOME: root,
    NPM_CONFIG_USERCONFIG: settings,
    NPM_CONFIG_CACHE: join(root, "cache"),
  };
  for (const [form, [name, args, options = "", a = ""]] of Object.entries(FORMS)) {
    const url = form.includes("@acme") ? npm.url : away.url;
    const before = away.asked.length;
    const [command = "", ...words] = wordsOf(form, url);
    const result = await new Deno.Command(command, { args: words, env, clearEnv: true, cwd: root })
      .output();
    const text = new TextDecoder().decode(result.stdout);
    assert.ok(result.success, `${form}: ${new TextDecoder().decode(result.stderr)}`);
    assert.deepEqual(JSON.parse(text), [name, args, options, a], `npm: ${form}`);
    const isAway = url === away.url && form.includes("registry");
    if (isAway) assert.ok(away.asked.length > before, `${form} asks that registry`);

    const read = packageCommand({ name: "s", command, args: words });
    assert.deepEqual(
      [read?.args, read?.env.NODE_OPTIONS ?? "", read?.env.A ?? ""],
      [args, options, a],
      `PML: ${form}`,
    );
    assert.equal(
      read?.settings.some((one) => one.includes("registry=")),
      form.includes("registry"),
    );
  }
  await Deno.remove(root, { recursive: true });
});

Deno.test("a line with shell syntax is run by the shell", () => {
  const lines = [
    "npx -y tiny | tee log",
    "npx -y tiny && true",
    "npx -y $PACKAGE",
    'npx -y "$PACKAGE"',
    "npx -y `cat x`",
    "npx -y tiny > log",
    "npx -y tiny *",
    "npx -y tiny\\ x",
    "cd x; npx -y tiny",
    "npx -y ~/tiny",
    "npx -y tiny # x",
    "(npx -y tiny)",
  ];
  for (const line of lines) {
    for (const shell of [["sh", "-c"], ["/bin/bash", "-lc"], ["cmd", "/c"]]) {
      const [command = "", ...args] = [...shell, line];
      assert.deepEqual(plainCommand({ command, args }), { command, args, env: {} }, line);
    }
  }
  const others = [
    ["sh", "-c", "npx -y tiny", "zero"],
    ["sh", "-x", "npx"],
    ["sh"],
    ["env"],
    ["env", "A=b"],
    ["env", "-i", "npx"],
    ["ssh", "-c", "npx -y tiny"],
    ["bash", "npx"],
  ];
  for (const [command = "", ...args] of others) {
    assert.deepEqual(plainCommand({ command, args }), { command, args, env: {} }, args.join(" "));
  }
});
