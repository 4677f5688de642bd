/**
 * Certificates and proxies of the user's environment: every server gets them, the trust question
 * shows them, and a client's file of the workspace cannot set them.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FakeNpm } from "../kit/fake_npm.ts";
import { tinyServer } from "../kit/tiny_server.ts";
import { writeFiles } from "../kit/workspace.ts";
import { textOf } from "./oracles.ts";
import { picked, questionOf } from "./questions.ts";
import { makeScene, type SceneOptions } from "./stage.ts";

/** Returns a variable, or the text of the file that it names. */
const TELLS = `(async ({ name, read }) => read
  ? require("node:fs").readFileSync(process.env[name], "utf8")
  : process.env[name] ?? "unset")(params.arguments)`;

const PROXIES = {
  HTTP_PROXY: "http://me:hid-den@127.0.0.1:9/",
  http_proxy: "http://me:hid-den@127.0.0.1:9/",
  NO_PROXY: "127.0.0.1,localhost",
  no_proxy: "127.0.0.1,localhost",
  ALL_PROXY: "socks5://127.0.0.1:9",
};

/**
 * Creates a scene with a server that node runs, and with certificates in the user's environment.
 */
function scenery(more: Partial<SceneOptions> & { readonly pml?: SceneOptions["pml"] }) {
  return makeScene({
    files: { "tiny.cjs": tinyServer(TELLS) },
    pml: {
      version: 1,
      permissions: { allow: ["tiny:*"] },
      mcpServers: { tiny: { command: "node", args: ["tiny.cjs"] } },
    },
    env: PROXIES,
    limits: { start_ms: 60_000, call_ms: 60_000 },
    ...more,
  });
}

async function told(
  { pml }: Awaited<ReturnType<typeof scenery>>,
  args: Record<string, unknown>,
): Promise<unknown> {
  const answer = await pml.callTool("call", { tool: "tiny:tell", arguments: args }, { ms: 60_000 });
  const text = textOf(answer);
  return (answer.result?.isError as unknown) === true ? text : JSON.parse(text);
}

Deno.test("a server gets the user's certificates and proxies (SP1)", async () => {
  const env = { ...PROXIES, SSL_CERT_FILE: "/etc/corp.pem", REQUESTS_CA_BUNDLE: "/etc/corp.pem" };
  await using scene = await scenery({
    env: { ...env, CORP_TOKEN: "none of its business" },
    era: "2025-11-25",
  });
  for (const [name, value] of Object.entries(env)) {
    assert.equal(await told(scene, { name }), value, name);
  }
  assert.equal(await told(scene, { name: "CORP_TOKEN" }), "unset");
  assert.equal((await scene.pml.close()).code, 0);
});

Deno.test("the trust question shows certificates and proxies, but no password (PM1)", async () => {
  const capabilities = { elicitation: { form: {} } };
  const scene = await scenery({ trusted: false, era: "2026-07-28", capabilities });
  await using _ = scene;
  const call = {
    name: "call",
    arguments: { tool: "tiny:tell", arguments: { name: "NO_PROXY" } },
  };
  const { text, answer } = await questionOf(scene.pml, call);
  assert.match(
    text,
    /variables of your environment.*http_proxy=.{0,4}http:\/\/\[redacted\]@127\.0\.0\.1:9/s,
  );
  assert.match(text, /ALL_PROXY=.{0,4}socks5/);
  assert.doesNotMatch(text, /hid-den/);
  assert.match(textOf(await answer(picked("Yes"))), /127\.0\.0\.1,localhost/);
});

const SETTERS: Readonly<Record<string, readonly [file: string, text: string]>> = {
  "in JSON": [
    ".mcp.json",
    JSON.stringify({
      mcpServers: { pml: { command: "pml", env: { HTTP_PROXY: PROXIES.HTTP_PROXY } } },
    }),
  ],
  "in TOML": [".codex/config.toml", '[mcp_servers.pml.env]\nHTTP_PROXY = "x"\n'],
};

for (const [how, [file, text]] of Object.entries(SETTERS)) {
  Deno.test(`a proxy that a client's file of the workspace sets is not used: ${how} (GW8)`, async () => {
    const scene = await scenery({ prepare: ({ path }) => writeFiles(path, { [file]: text }) });
    await using _ = scene;
    assert.equal(await told(scene, { name: "HTTP_PROXY" }), "unset");
    assert.equal(await told(scene, { name: "NO_PROXY" }), PROXIES.NO_PROXY);
    assert.match(scene.pml.stderr, /Ignored HTTP_PROXY: /);
    assert.doesNotMatch(scene.pml.stderr, /hid-den/);
    assert.equal((await scene.pml.close()).code, 0);
  });
}

Deno.test("no proxy is used where a client's file names a file of variables (GW8)", async () => {
  const servers = { pml: { command: "pml", envFile: "${workspaceFolder}/settings" } };
  const files = {
    ".vscode/mcp.json": JSON.stringify({ servers }),
    "settings": `HTTP_PROXY=${PROXIES.HTTP_PROXY}\n`,
  };
  const scene = await scenery({
    capabilities: { elicitation: { form: {} } },
    prepare: ({ path }) => writeFiles(path, files),
  });
  await using _ = scene;
  const call = {
    name: "call",
    arguments: { tool: "tiny:tell", arguments: { name: "HTTP_PROXY" } },
  };
  // Such a file may have set PML_TRUST, too, so PML asks the user.
  const { text, answer } = await questionOf(scene.pml, call);
  assert.doesNotMatch(text, /variables of your environment/);
  assert.match(textOf(await answer(picked("Yes"))), /unset/);
  assert.match(scene.pml.stderr, /Ignored HTTP_PROXY: /);
});

Deno.test("a confined server reads its certificates, and no other file next to them (SP1)", async () => {
  await using npm = new FakeNpm({
    tiny: { "1.0.0": { "package.json": '{"bin":"main.js"}', "main.js": tinyServer(TELLS) } },
  });
  const folder = await Deno.realPath(await Deno.makeTempDir());
  const real = join(folder, "real.pem");
  const linked = join(folder, "ca.pem");
  const certificate = "the certificate of a company";
  await writeFile(real, certificate);
  await writeFile(join(folder, "other.pem"), "what lies beside it");
  await Deno.symlink(real, linked);
  await mkdir(join(folder, "certs"));
  await writeFile(join(folder, "settings"), `registry=${npm.url}\n`);
  const server = {
    ...{ command: "npx", args: ["-y", "tiny"], confine: true },
    env: { BESIDE: join(folder, "other.pem"), GIT_SSL_CAINFO: join(folder, "other.pem") },
  };
  await using scene = await scenery({
    pml: { version: 1, permissions: { allow: ["tiny:*"] }, mcpServers: { tiny: server } },
    env: {
      NPM_CONFIG_USERCONFIG: join(folder, "settings"),
      CURL_CA_BUNDLE: linked,
      REQUESTS_CA_BUNDLE: real,
    },
  });
  for (const name of ["CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"]) {
    assert.equal(await told(scene, { name, read: true }), certificate, name);
  }
  // A path in the definition is not a variable of the user's environment.
  for (const name of ["BESIDE", "GIT_SSL_CAINFO"]) {
    assert.match(String(await told(scene, { name, read: true })), /Requires read access/, name);
  }
  assert.equal((await scene.pml.close()).code, 0);
});
