import assert from "node:assert/strict";
import { join } from "node:path";
import fc from "fast-check";
import type { PmlError } from "../core/errors.ts";
import { parseDotenv } from "./dotenv.ts";
import { CLOUD_KEY_FILE, Keys, SOURCES_FILE } from "./keys.ts";

Deno.test("parseDotenv() reads common files, and reports the lines that it cannot read", () => {
  const text = [
    "\uFEFF# a comment",
    "PLAIN=value",
    "  export SPACED =  two words  # and a comment",
    "HASH=a#b",
    "EMPTY=",
    "COMMENTED= # nothing",
    `SINGLE='as $it \\n is' # comment`,
    `DOUBLE="line\\nbreak \\"quoted\\" \\$x \\\\ \\q"`,
    'LONG="-----BEGIN\nMID=1\n-----END"',
    "REFERENCE=${OTHER}",
    "TWICE=1",
    "TWICE=2",
    "WINDOWS=yes\r",
    "EQUALS=a=b==",
    "not a value",
    "1BAD=x",
    'AFTER="x" y',
    "",
    "LAST=end",
  ].join("\n");
  const { values, invalid: odd } = parseDotenv(text);
  assert.deepEqual(Object.fromEntries(values), {
    PLAIN: "value",
    SPACED: "two words",
    HASH: "a#b",
    EMPTY: "",
    COMMENTED: "",
    SINGLE: "as $it \\n is",
    DOUBLE: 'line\nbreak "quoted" $x \\ \\q',
    LONG: "-----BEGIN\nMID=1\n-----END",
    REFERENCE: "${OTHER}",
    TWICE: "2",
    WINDOWS: "yes",
    EQUALS: "a=b==",
    LAST: "end",
  });
  assert.deepEqual(odd, [17, 18, 19]);
  assert.deepEqual(parseDotenv("A=1\nB='no end\nC=3"), {
    values: new Map([["A", "1"]]),
    invalid: [2],
  });
});

Deno.test("parseDotenv() reads written values back, and any text in little time", () => {
  const value = fc.string({ unit: "binary-ascii" }).map((text) => text.replace(/['\0]/g, ""));
  fc.assert(
    fc.property(fc.array(value), (values) => {
      const text = values.map((each, at) => `N${at}='${each}'`).join("\n");
      assert.deepEqual([...parseDotenv(text).values.values()], values);
    }),
    { seed: 5, numRuns: 40 },
  );
  const begun = performance.now();
  for (const part of ["A='", 'A="\\', " ", "A= #", "export ", "A=\t", '"', "a\n"]) {
    parseDotenv(part.repeat(65_536 / part.length));
  }
  assert.ok(performance.now() - begun < 5_000);
});

Deno.test("Keys takes the environment before .env, and nothing that is empty or a placeholder", async () => {
  await using scene = await makeScene("A=file\nB=file\nC=${C}\nD=file\nE=\n");
  const keys = scene.keys({ A: "here", B: "${B}", D: "  " });
  assert.deepEqual(keys.find("A"), { value: "here", from: "the environment" });
  assert.deepEqual(keys.find("B"), { value: "file", from: ".env" });
  assert.deepEqual(keys.find("D"), { value: "file", from: ".env" });
  for (const name of ["C", "E", "NONE", "constructor", "__proto__"]) {
    assert.equal(keys.find(name), undefined, name);
  }
  assert.deepEqual(scene.registered, ["here", "file", "file"]);
});

Deno.test("Keys reads .env only where the workspace is trusted, and never through a link", async () => {
  await using scene = await makeScene("A=file\n");
  const keys = scene.keys({});
  assert.equal(keys.get("A"), "file");
  scene.trusted = false;
  assert.equal(keys.get("A"), undefined);
  scene.trusted = true;
  assert.equal(keys.get("A"), "file");
  await Deno.rename(scene.path, `${scene.path}.real`);
  await Deno.symlink(`${scene.path}.real`, scene.path);
  assert.equal(keys.get("A"), undefined);
  await Deno.remove(scene.path);
  await Deno.mkdir(scene.path);
  assert.equal(keys.get("A"), undefined);
  await Deno.remove(scene.path);
  // Nothing is ever written to this pipe, so opening it would wait forever.
  await new Deno.Command("mkfifo", { args: [scene.path] }).output();
  assert.equal(keys.get("A"), undefined);
  await Deno.remove(scene.path);
  await Deno.writeTextFile(scene.path, `A=${"x".repeat(70_000)}`);
  assert.equal(keys.get("A"), undefined);
  assert.equal(scene.warned.length, 4);
  for (const warning of scene.warned) assert.match(warning, /64 KB/);
  await Deno.remove(scene.path);
  assert.equal(keys.get("A"), undefined);
});

Deno.test("Keys returns no key of PML to a server, and no variable of .env that changes how programs run", async () => {
  const dangerous =
    "LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES NODE_OPTIONS NODE_PATH DENO_DIR DENO_CERT " +
    "NODE_TLS_REJECT_UNAUTHORIZED PATH HOME HTTPS_PROXY https_proxy ALL_PROXY NPM_CONFIG_REGISTRY " +
    "npm_config_registry UV_INDEX PYTHONPATH PYTHONSTARTUP PERL5OPT RUBYOPT BASH_ENV ENV IFS SHELL " +
    "GIT_SSH_COMMAND GIT_EXEC_PATH SSL_CERT_FILE TMPDIR TEMP JAVA_TOOL_OPTIONS _JAVA_OPTIONS";
  const own = ["PML_API_KEY", "PML_CLOUD_URL", "PML_HOME", "pml_x"];
  const harmless =
    "GITHUB_TOKEN GIT_TOKEN NPM_TOKEN NODE_ENV OPENAI_API_KEY PATHWAY_KEY ENVIRONMENT";
  const all = [...dangerous.split(" "), ...own, ...harmless.split(" ")];
  await using scene = await makeScene(all.map((name) => `${name}=from-file`).join("\n"));
  const fromFile = scene.keys({});
  const set = scene.keys(Object.fromEntries(all.map((name) => [name, "from-here"])));
  for (const name of dangerous.split(" ")) {
    assert.equal(fromFile.get(name), undefined, name);
    assert.equal(set.get(name), "from-here", name);
  }
  for (const name of own) {
    assert.equal(fromFile.get(name), undefined, name);
    assert.equal(set.get(name), undefined, name);
  }
  for (const name of harmless.split(" ")) assert.equal(fromFile.get(name), "from-file", name);
});

Deno.test("Keys fills in a definition again when .env changes, and returns the same object otherwise", async () => {
  await using scene = await makeScene("A=one\nOTHER=1\n");
  const keys = scene.keys({ B: "two" });
  const given = { env: { X: "${A}", Y: "${B}" } };
  const first = keys.fill(given, "db");
  assert.deepEqual(first, { env: { X: "one", Y: "two" } });
  assert.equal(keys.fill(given, "db"), first);
  await Deno.writeTextFile(scene.path, "A=one\nOTHER=another\n");
  assert.equal(keys.fill(given, "db"), first, "nothing of it changed");
  await Deno.writeTextFile(scene.path, "A=three\n");
  assert.deepEqual(keys.fill(given, "db"), { env: { X: "three", Y: "two" } });
  await Deno.remove(scene.path);
  assert.throws(() => keys.fill(given, "db"), { code: "KEY_MISSING" });
  await Deno.writeTextFile(scene.path, "A=four\nodd line\n");
  assert.deepEqual(keys.fill(given, "db"), { env: { X: "four", Y: "two" } });
  assert.match(scene.warned.join(), /Cannot read ".*:2": it is not NAME=value/);
  assert.doesNotMatch(scene.warned.join(), /odd line/);
});

Deno.test("Keys finds the cloud's key in the environment, else in the key file, and says which", async () => {
  await using scene = await makeScene("PML_API_KEY=from-the-workspace\n");
  const none = scene.keys({});
  assert.equal(none.cloud(), undefined);
  const file = join(scene.home, CLOUD_KEY_FILE);
  await Deno.writeTextFile(file, " \n");
  assert.equal(none.cloud(), undefined);
  await Deno.writeTextFile(file, "key-of-the-file\n");
  assert.deepEqual(none.cloud(), { value: "key-of-the-file", from: "the key file" });
  const set = scene.keys({}, "key-of-the-environment");
  assert.deepEqual(set.cloud(), { value: "key-of-the-environment", from: "the environment" });
  assert.ok(scene.registered.includes("key-of-the-file"));
  for (const bad of ["CANARY two", "CANARY\nx: y", "CANARYé", "CANARY".repeat(200_000)]) {
    assert.throws(() => scene.keys({}, bad).cloud(), (error: PmlError) => {
      assert.equal(error.code, "CONFIG_INVALID");
      assert.match(error.message, /PML_API_KEY/);
      assert.doesNotMatch(Deno.inspect(error), /CANARY/);
      return true;
    });
  }
  await Deno.writeTextFile(file, "CANARY two\n");
  assert.throws(() => none.cloud(), (error: PmlError) => {
    assert.ok(error.message.includes(file));
    assert.doesNotMatch(Deno.inspect(error), /CANARY/);
    return true;
  });
  await Deno.remove(file);
  await Deno.symlink(scene.path, file);
  assert.equal(none.cloud(), undefined);
});

Deno.test("Keys checks and registers an `envFile` that is also the `.env` of the workspace", async () => {
  await using scene = await makeScene("LD_PRELOAD=/evil.so\nTOKEN=one-secret\n");
  const keys = scene.keys({});
  assert.equal(keys.get("OTHER"), undefined, "now the file was read as .env");
  assert.throws(() => keys.variablesOf(scene.path, "db"), { code: "CONFIG_INVALID" });
  await Deno.writeTextFile(scene.path, "TOKEN=another-secret\n");
  assert.equal(keys.get("OTHER"), undefined);
  assert.equal(keys.variablesOf(scene.path, "db").get("TOKEN"), "another-secret");
  assert.ok(scene.registered.includes("another-secret"));
});

Deno.test("Keys fills in nothing again that an identity may no longer use", async () => {
  await using scene = await makeScene("");
  let isWithheld = false;
  const keys = new Keys({
    environment: () => ({
      get: (name) => isWithheld || name !== "TOKEN" ? undefined : "secret",
      apiKey: undefined,
      home: scene.home,
    }),
    trustedRoot: () => undefined,
    isWithheld: () => isWithheld,
    register: () => {},
    warn: () => {},
  });
  const definition = { env: { TOKEN: "${TOKEN}" } };
  assert.deepEqual(keys.fill(definition, "db"), { env: { TOKEN: "secret" } });
  isWithheld = true;
  assert.throws(() => keys.fill(definition, "db"), { code: "KEY_MISSING" });
});

Deno.test("waitForOutside() also waits for keys that were stored outside of PML since the last lookup", async () => {
  await using scene = await makeScene("");
  const keys = scene.keys({});
  const path = join(scene.home, SOURCES_FILE);
  let value = "one";
  keys.useOutside(() => Promise.resolve(new Map([["A", { value, from: "the keyring" }]])));
  await keys.waitForOutside();
  assert.equal(keys.get("A"), undefined, "no key is stored");
  await Deno.writeTextFile(path, "{}");
  await keys.waitForOutside();
  assert.equal(keys.get("A"), "one");
  value = "two";
  await Deno.writeTextFile(path, '{ "A": 1 }');
  await keys.waitForOutside();
  assert.equal(keys.get("A"), "two");
});

interface Scene extends AsyncDisposable {
  /** The `.env` of the workspace. */
  readonly path: string;
  readonly home: string;
  readonly registered: string[];
  readonly warned: string[];
  trusted: boolean;
  keys(set: Record<string, string>, apiKey?: string): Keys;
}

async function makeScene(dotenv: string): Promise<Scene> {
  const root = await Deno.makeTempDir();
  const home = join(root, "home");
  await Deno.mkdir(home);
  const path = join(root, ".env");
  await Deno.writeTextFile(path, dotenv);
  const variables = (set: Record<string, string>) => new Map(Object.entries(set));
  const scene: Scene = {
    path,
    home,
    registered: [],
    warned: [],
    trusted: true,
    keys: (set, apiKey) => {
      const all = variables(set);
      return new Keys({
        environment: () => ({ get: (name) => all.get(name), apiKey, home }),
        trustedRoot: () => scene.trusted ? root : undefined,
        register: (value) => void scene.registered.push(value),
        warn: (message) => void scene.warned.push(message),
      });
    },
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
  return scene;
}
