import assert from "node:assert/strict";
import type { PmlError } from "../core/errors.ts";
import { foldersOf } from "../core/folder_variables.ts";
import { expand, referencesIn } from "./expand.ts";

const from = (set: Record<string, string>) => ({
  get: (name: string) => set[name],
  server: "db",
});

Deno.test("expand() fills in names and defaults, in every kind of place", () => {
  const env = { A: "${TOKEN}", B: "x-${TOKEN}-${NONE:-y}", C: "plain $HOME", D: "${EMPTY:-}" };
  const given = { env, args: { "0": "--key=${TOKEN}" } };
  assert.deepEqual(expand(given, from({ TOKEN: "s3cret\nof two lines" })), {
    env: {
      A: "s3cret\nof two lines",
      B: "x-s3cret\nof two lines-y",
      C: "plain $HOME",
      D: "",
    },
    args: { "0": "--key=s3cret\nof two lines" },
  });
});

Deno.test("expand() reports every missing name of every place at once", () => {
  const given = {
    env: { A: "${ONE}", B: "${TWO}${THREE}" },
    args: { "1": "${ONE}${PML_API_KEY}" },
  };
  assert.throws(() => expand(given, from({ THREE: "3" })), (error: PmlError) => {
    assert.equal(error.code, "KEY_MISSING");
    assert.equal(error.message, 'Cannot start "db": it requires ONE, TWO, PML_API_KEY');
    assert.match(
      error.hint ?? "",
      /env\.A, env\.B, args\.1, args\.1; no server gets/,
    );
    assert.deepEqual(error.detail, { missing: ["ONE", "TWO", "PML_API_KEY"] });
    return true;
  });
});

Deno.test("expand() refuses a value that cannot be sent, by the name of its variable alone", () => {
  const bad: readonly (readonly [string, "headers" | "url" | "env"])[] = [
    ["CANARY\nx: y", "headers"],
    ["CANARY\r", "headers"],
    ["CANARYé", "headers"],
    ["CANARY→", "url"],
    ["CANARY\0", "env"],
    ["CANARY".repeat(200_000), "env"],
    ["CANARY".repeat(200_000), "headers"],
  ];
  for (const [value, kind] of bad) {
    const fill = () => expand({ [kind]: { X: "Bearer ${TOKEN}" } }, from({ TOKEN: value }));
    assert.throws(fill, (error: PmlError) => {
      assert.equal(error.code, "CONFIG_INVALID");
      assert.match(error.message, /^Cannot start "db": TOKEN (contains|is longer)/);
      assert.doesNotMatch(Deno.inspect(error), /CANARY/);
      return true;
    });
  }
});

Deno.test("expand() replaces names of the definition's own env everywhere but in args", () => {
  const given = {
    env: { TOKEN: "${TOKEN}", BASE: "/b", FULL: "${BASE}/c", DEEP: "${FULL}/d", LOOP: "${LOOP}" },
    args: { "0": "Authorization:${TOKEN}", "1": "${OTHER}" },
    cwd: { "": "${DEEP}" },
  };
  assert.deepEqual(expand(given, from({ TOKEN: "key", OTHER: "o", BASE: "/user", LOOP: "l" })), {
    env: { TOKEN: "key", BASE: "/b", FULL: "/b/c", DEEP: "/b/c/d", LOOP: "l" },
    args: { "0": "Authorization:${TOKEN}", "1": "o" },
    cwd: { "": "/b/c/d" },
  });
  assert.deepEqual(referencesIn(given).map(({ at }) => at), ["env.TOKEN", "env.LOOP", "args.1"]);
});

Deno.test("expand() does not follow variables of an env that name each other in a circle", () => {
  const given = { env: { A: "${B}", B: "${A}" } };
  assert.deepEqual(expand(given, from({})), { env: { A: "${A}", B: "${B}" } });
});

Deno.test("expand() takes an unset name with a lower-case letter for text, except in requests", () => {
  const given = { args: { "0": "Hello ${name}", "1": "${known}" }, env: { A: "${x:-y}" } };
  assert.deepEqual(expand(given, from({ known: "k" })), {
    args: { "0": "Hello ${name}", "1": "k" },
    env: { A: "y" },
  });
  const sent = { headers: { Authorization: "Bearer ${token}" } };
  assert.throws(() => expand(sent, from({})), { code: "KEY_MISSING" });
  assert.throws(() => expand({ args: { "0": "${NAME}" } }, from({})), { code: "KEY_MISSING" });
});

Deno.test("expand() fills in each folder once, also if its name contains a variable", () => {
  const workspace = "/home/me/${TOKEN} ${userHome}";
  const folders = foldersOf({ workspace, userHome: "/home/me" });
  const given = {
    args: { "0": "${workspaceFolder}/a", "1": "${workspaceFolderBasename}", "2": "${dataFolder}" },
    headers: { "X-Home": "${userHome}" },
  };
  assert.deepEqual(referencesIn(given), []);
  assert.deepEqual(expand(given, { ...from({ TOKEN: "key" }), folders }), {
    args: { "0": `${workspace}/a`, "1": "${TOKEN} ${userHome}", "2": "${dataFolder}" },
    headers: { "X-Home": "/home/me" },
  });
});

Deno.test("referencesIn() returns each variable, its default, and its place", () => {
  const given = { headers: { Authorization: "Bearer ${A}", Other: "${B:-}" }, url: { "": "x" } };
  assert.deepEqual(referencesIn(given), [
    { name: "A", defaultValue: undefined, at: "headers.Authorization" },
    { name: "B", defaultValue: "", at: "headers.Other" },
  ]);
});
