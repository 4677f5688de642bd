import assert from "node:assert/strict";
import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runPml } from "../kit/run.ts";
import { assertNoLeak } from "../kit/sinks.ts";
import { call, evil, toldCode } from "./evil_servers.ts";
import { endWell, textOf } from "./oracles.ts";
import { makeScene } from "./stage.ts";

const FILE_KEY = "sx-file-key-0123456789";
const SET_KEY = "sx-set-key-0123456789";
const OTHER_KEY = "sx-other-key-0123456789";
const NEXT_KEY = "sx-next-key-0123456789";
const SECRETS = [FILE_KEY, SET_KEY, OTHER_KEY, NEXT_KEY];

const DANGEROUS = [
  "LD_PRELOAD",
  "NODE_OPTIONS",
  "DENO_DIR",
  "HTTPS_PROXY",
  "PATH",
  "PML_CLOUD_URL",
];
const DOTENV = [
  `FILE_KEY=${FILE_KEY}`,
  `BOTH_KEY=${OTHER_KEY}`,
  `UNDECLARED_KEY=${OTHER_KEY}`,
  "PLACEHOLDER=${NOBODY}",
  ...DANGEROUS.map((name) => `${name}=/nowhere/evil`),
].join("\n");
const PML = {
  version: 1,
  permissions: { allow: ["filesystem:*", "good:*", "wants:*"] },
  mcpServers: {
    good: {
      ...evil("good"),
      env: {
        GIVEN_FILE: "${FILE_KEY}",
        GIVEN_SET: "Bearer ${BOTH_KEY}",
        ...Object.fromEntries(DANGEROUS.map((name) => [`OF_${name}`, `\${${name}:-unset}`])),
      },
    },
    wants: { ...evil("exit", "${THIRD}"), env: { A: "${FIRST}", B: "${PLACEHOLDER}" } },
  },
};

Deno.test("a key reaches the server that names it, also from .env, and no other place (SX8, SX12)", async () => {
  await using scene = await makeScene({
    pml: PML,
    files: { ".env": DOTENV },
    env: { BOTH_KEY: SET_KEY },
  });
  const { ws, pml } = scene;
  const seen = async () => JSON.parse(textOf(await call(pml, "good:env")));
  const first = await seen();
  assert.equal(first.GIVEN_FILE, FILE_KEY);
  assert.equal(first.GIVEN_SET, `Bearer ${SET_KEY}`);
  assert.equal(first.UNDECLARED_KEY, undefined);
  assert.doesNotMatch(first.PATH, /nowhere/);
  // Only the user's own environment may set these.
  for (const name of DANGEROUS) assert.doesNotMatch(first[`OF_${name}`], /nowhere/, name);
  assert.deepEqual([first.OF_LD_PRELOAD, first.OF_PML_CLOUD_URL], ["unset", "unset"]);

  const missing = await call(pml, "wants:echo");
  assert.equal(toldCode(missing), "KEY_MISSING");
  assert.match(textOf(missing), /"wants": it requires FIRST, PLACEHOLDER, THIRD\n/);

  const result = await runPml(ws, ["doctor", "--json"], { env: { BOTH_KEY: SET_KEY } });
  assert.equal(result.code, 1, "a key is missing");
  const { keys } = JSON.parse(result.stdout);
  const of = (name: string) => keys.find((key: { readonly name: string }) => key.name === name);
  assert.deepEqual(of("FILE_KEY"), {
    name: "FILE_KEY",
    by: ["good"],
    isRequired: true,
    from: ".env",
  });
  assert.equal(of("BOTH_KEY").from, "the environment");
  assert.equal(of("FIRST").from, undefined);
  assert.equal(of("UNDECLARED_KEY"), undefined);
  for (const secret of SECRETS) assert.ok(!(result.stdout + result.stderr).includes(secret));

  // Another key makes another server.
  await writeFile(ws.file(".env"), `FILE_KEY=${NEXT_KEY}\n`);
  assert.equal((await seen()).GIVEN_FILE, NEXT_KEY);
  const running = await pml.watch.living();
  assert.ok(running.length > 1, "PML and its server run");
  for (const { command } of running) {
    for (const secret of SECRETS) assert.ok(!command.includes(secret), command);
  }
  await rm(ws.file(".env"));
  assert.equal(toldCode(await call(pml, "good:env")), "KEY_MISSING");
  // The server's own result may contain its keys, which belong to the client.
  await endWell(ws, pml);
  const texts: Record<string, string> = { stderr: pml.stderr };
  for (const entry of await readdir(ws.root, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    texts[path] = await readFile(path, "latin1");
    const isPrivate = ((await stat(path)).mode & 0o077) === 0;
    assert.ok(isPrivate || !path.startsWith(ws.home), `${path} is open to others`);
  }
  for (const secret of SECRETS) assertNoLeak(secret, texts);
});
