/**
 * The requested and the actual permissions of a module: none beyond the workspace without a grant
 * of the user in a trusted file, and exactly that with one.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runPml } from "../kit/run.ts";
import { HttpSink, TcpSink } from "../kit/sinks.ts";
import { waitUntil } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { moduleText, summaryOf } from "./evilmod/house.ts";
import { assertAftermath, codeOf, endWell, textOf } from "./oracles.ts";
import { picked, questionOf } from "./questions.ts";
import { makeScene, type Scene, type SceneOptions } from "./stage.ts";

const CAN_ASK = { elicitation: { form: {} } } as const;
const ENV = { GREEDY_KEY: "greedy-key-0d8f61b7c2a94e35", PML_API_KEY: "pml-key-77f1c0a2b9e84d63" };
const SECRETS = Object.values(ENV);

type Grants = Readonly<Record<string, readonly string[]>>;

/** Creates a workspace with the greedy module, and folders next to it. */
async function greedy(
  grants: Grants | undefined,
  more: SceneOptions & { readonly allow?: readonly string[] } = {},
): Promise<Scene> {
  const { allow = ["filesystem:*", "greedy:*"], ...options } = more;
  return await makeScene({
    files: { "greedy.ts": await moduleText("greedy.ts") },
    pml: {
      version: 1,
      permissions: { allow },
      private_mcps: { greedy: { type: "deno", path: "greedy.ts" } },
      ...grants === undefined ? {} : { grants: { greedy: grants } },
    },
    env: ENV,
    prepare: plantFolders,
    ...options,
  });
}

async function attempt({ pml }: Scene, what: string, target: string): Promise<string> {
  const { code, text } = summaryOf(
    await pml.callTool("call", { tool: "greedy:attempt", arguments: { what, target } }),
  );
  return code ?? text;
}

/** Returns all accesses that the module may try, with the code of the refusal. */
function wanted({ ws, sink, tcp }: {
  readonly ws: Workspace;
  readonly sink: HttpSink;
  readonly tcp: TcpSink;
}): readonly (readonly [what: string, target: string, code: string])[] {
  const [out, no] = ["PATH_OUTSIDE_WORKSPACE", "SANDBOX_DENIED"];
  return [
    ["read", ws.outside, out],
    ["read", "../granted/in.txt", out],
    ["read", "/etc/hostname", out],
    ["list", "/", out],
    ["list", "/proc/self", out],
    ["write", join(ws.root, "outside/made"), out],
    ["write", "../granted/made", out],
    ["database", "../granted/a.db", out],
    ["run", "printf", no],
    ["run", "/bin/sh", no],
    ["shell", "touch made", no],
    ["fetch", sink.url, no],
    ["fetch", "https://example.com/", no],
    ["global_fetch", sink.url, no],
    ["connect", `127.0.0.1:${tcp.port}`, no],
    ["env", "GREEDY_KEY", no],
    ["env", "PML_API_KEY", no],
    ["env", "PATH", no],
    ["deno_env", "GREEDY_KEY", no],
  ];
}

Deno.test("a module gets no permission without a grant, and the question shows that (SE11)", async () => {
  await using sink = new HttpSink();
  await using tcp = new TcpSink();
  const allow = ["filesystem:*", "greedy:attempt"];
  await using scene = await greedy(undefined, { era: "2025-11-25", allow, capabilities: CAN_ASK });
  const { ws, pml } = scene;
  for (const [what, target, code] of wanted({ ws, sink, tcp })) {
    assert.equal(await attempt(scene, what, target), code, `${what} ${target}`);
  }
  const question = await questionOf(pml, { name: "greedy__count", arguments: {} });
  for (const line of UNGRANTED) {
    assert.ok(question.text.includes(line), `${line}: ${question.text}`);
  }
  assert.doesNotMatch(question.text, /connects to|runs .* with your rights|reads the variable/);
  await question.answer(picked("Yes"));
  sink.assertSilent();
  tcp.assertSilent();
  await assertNothingMade(ws);
  await endWell(ws, pml, { secrets: SECRETS });
});

const UNGRANTED = [
  "asks for read /: not granted",
  "asks for write /: not granted",
  "asks for net *: not granted",
  "asks for run *: not granted",
  "asks for env *: not granted",
  "asks for env GREEDY_KEY: not granted",
];

Deno.test("`pml tools` lists requests of a module without a grant, and its grants (SE11)", async () => {
  await using bare = await greedy(undefined);
  const result = await runPml(bare.ws, ["tools", "greedy:attempt"]);
  for (const line of UNGRANTED) {
    assert.ok(result.stdout.includes(line), `${line}: ${result.stdout}`);
  }
  await endWell(bare.ws, bare.pml, { secrets: SECRETS });
  await using rich = await greedy({
    net: ["api.example.com"],
    run: ["printf"],
    env: ["GREEDY_KEY"],
  });
  const text = (await runPml(rich.ws, ["tools", "greedy:attempt"], { env: ENV })).stdout;
  const given = [
    "connects to api.example.com:443",
    "runs printf with your rights, outside the sandbox",
  ];
  for (const line of [...given, "reads the variable GREEDY_KEY", "asks for read /: not granted"]) {
    assert.ok(text.includes(line), `${line}: ${text}`);
  }
  for (const secret of SECRETS) assert.ok(!text.includes(secret));
  await endWell(rich.ws, rich.pml, { secrets: SECRETS });
});

Deno.test("with grants a module gets exactly these permissions (SE11, NI2)", async () => {
  await using other = new HttpSink();
  await using tcp = new TcpSink();
  const routes: Record<string, string> = {};
  await using sink = new HttpSink(({ path }) => {
    const to = routes[path];
    return to === undefined
      ? new Response("granted")
      : new Response(null, { status: 302, headers: { location: to } });
  });
  const at = `127.0.0.1:${sink.port}`;
  Object.assign(routes, {
    "/same": `http://${at}/end`,
    "/other": `${other.url}/stolen`,
    "/name": `http://localhost:${sink.port}/stolen`,
    "/file": "file:///etc/passwd",
    "/data": "data:text/plain,stolen",
    "/user": `http://${at}@127.0.0.1:${other.port}/stolen`,
    "/loop": `http://${at}/loop`,
  });
  const env = ["GREEDY_KEY", "PML_API_KEY"];
  const grants = { read: ["../granted"], net: [at], run: ["printf"], env };
  await using scene = await greedy(grants);
  const { ws, pml } = scene;
  const hash = createHash("sha256").update(ENV.GREEDY_KEY).digest("hex");
  const good: readonly (readonly [string, string, string])[] = [
    ["read", "../granted/in.txt", "got inside"],
    ["run", "printf", "got x"],
    ["fetch", `http://${at}/plain`, "got granted"],
    ["fetch", `http://${at}/same`, "got granted"],
    ["env", "GREEDY_KEY", `got ${hash}`],
  ];
  for (const [what, target, text] of good) {
    assert.equal(await attempt(scene, what, target), text, `${what} ${target}`);
  }
  for (const [what, target, code] of beyond({ ws, sink, other, tcp })) {
    assert.equal(await attempt(scene, what, target), code, `${what} ${target}`);
  }
  assert.match(await attempt(scene, "fetch", `http://${at}/loop`), /redirects more than/);
  other.assertSilent();
  tcp.assertSilent();
  assert.ok(sink.received.every(({ path }) => path !== "/stolen"));
  await assertNothingMade(ws);
  await endWell(ws, pml, { secrets: SECRETS });
});

/** Returns accesses next to the granted ones, with the code of the refusal. */
function beyond({ ws, sink, other, tcp }: {
  readonly ws: Workspace;
  readonly sink: HttpSink;
  readonly other: HttpSink;
  readonly tcp: TcpSink;
}): readonly (readonly [what: string, target: string, code: string])[] {
  const at = `127.0.0.1:${sink.port}`;
  const [out, no] = ["PATH_OUTSIDE_WORKSPACE", "SANDBOX_DENIED"];
  return [
    ["read", ws.outside, out],
    ["read", "../granted/../outside/canary.txt", out],
    ["read", "../granted/link", out],
    ["read", "../granted-not/in.txt", out],
    ["list", "..", out],
    ["write", "../granted/made", out],
    ["run", "sh", no],
    ["run", "./printf", no],
    ["run", "printf; touch made", no],
    ["shell", "touch made", no],
    ["env", "PML_API_KEY", no],
    ["env", "HOME", no],
    ["deno_env", "GREEDY_KEY", no],
    ["connect", `127.0.0.1:${tcp.port}`, no],
    ["connect", at, no],
    ["global_fetch", `http://${at}/`, no],
    ...[
      other.url,
      `http://127.0.0.1:${tcp.port}/`,
      `http://localhost:${sink.port}/`,
      `http://[::1]:${sink.port}/`,
      `http://[::ffff:127.0.0.1]:${sink.port}/`,
      `http://127.0.0.2:${sink.port}/`,
      `http://0.0.0.0:${sink.port}/`,
      `http://${at}@127.0.0.1:${other.port}/`,
      `http://u:p@${at}/`,
      `https://example.com/`,
      "file:///etc/passwd",
      ...["/other", "/name", "/file", "/data", "/user"].map((path) => `http://${at}${path}`),
    ].map((url) => ["fetch", url, no] as const),
  ];
}

Deno.test("a granted variable appears in no log, journal, argument or error (L)", async () => {
  await using scene = await greedy({ env: ["GREEDY_KEY"], run: ["printf"] });
  const { ws, pml } = scene;
  for (const how of ["log", "parts", "console", "raw", "exec"]) {
    const summary = summaryOf(
      await pml.callTool("call", {
        tool: "greedy:leak",
        arguments: { name: "GREEDY_KEY", how },
      }),
    );
    assert.equal(summary.code, undefined, `${how}: ${summary.text}`);
  }
  assert.match(pml.stderr, /the key is/);
  for (const [how, code] of Object.entries(FAILING)) {
    const leak = { tool: "greedy:leak", arguments: { name: "GREEDY_KEY", how } };
    assert.equal(codeOf(await pml.callTool("call", leak)), code, how);
  }
  await endWell(ws, pml, { secrets: SECRETS });
});

const FAILING = {
  path: "PATH_OUTSIDE_WORKSPACE",
  program: "SANDBOX_DENIED",
  crash: "SANDBOX_CRASHED",
};

Deno.test("grants of an untrusted file have no effect (SE11, PM1)", async () => {
  const folder = { read: ["../granted"], write: ["../granted"] };
  const grants = Object.fromEntries(
    ["greedy", "filesystem", "sqlite", "git", "shell"].map((name) => [name, folder]),
  );
  await using scene = await makeScene({
    files: { "greedy.ts": await moduleText("greedy.ts") },
    pml: {
      version: 1,
      permissions: { allow: ["*", "greedy:*", "sqlite:*"] },
      private_mcps: { greedy: { type: "deno", path: "greedy.ts" } },
      grants,
    },
    env: ENV,
    trusted: false,
    capabilities: {},
    prepare: plantFolders,
  });
  const { ws, pml } = scene;
  assert.equal(await attempt(scene, "read", "../granted/in.txt"), "WORKSPACE_UNTRUSTED");
  const read = await pml.callTool("filesystem__read_file", { path: "../granted/in.txt" });
  assert.equal(codeOf(read), "PATH_OUTSIDE_WORKSPACE");
  const sql = { path: "../granted/a.db", sql: "SELECT 1" };
  assert.equal(codeOf(await pml.callTool("sqlite__query", sql)), "PATH_OUTSIDE_WORKSPACE");
  await assertNothingMade(ws);
  await endWell(ws, pml, { secrets: SECRETS });
});

Deno.test("PML asks again about a grant that changes (SE11, PM2)", async () => {
  const options = { era: "2026-07-28", trusted: false, capabilities: CAN_ASK } as const;
  await using scene = await greedy({ read: ["../granted"] }, options);
  const { ws, pml } = scene;
  const read = (target: string) => ({
    name: "call",
    arguments: { tool: "greedy:attempt", arguments: { what: "read", target } },
  });
  const first = await questionOf(pml, read("../granted/in.txt"));
  assert.match(first.text, /grants: .*greedy.*\.\.\/granted/);
  assert.equal(textOf(await first.answer(picked("Yes"))), "got inside");
  const config = JSON.parse(await readFile(ws.file(".pml.json"), "utf8"));
  config.grants.greedy.read = ["../outside"];
  await writeFile(ws.file(".pml.json"), JSON.stringify(config));
  // Until PML sees the change, the old grant applies, and no longer.
  const seen = async () => {
    const [{ permission }] = JSON.parse(textOf(await pml.callTool("schema", SCHEMA)));
    return permission !== "runs";
  };
  assert.ok(await waitUntil(seen), "the file is watched");
  const changed = await questionOf(pml, read("../outside/canary.txt"));
  assert.match(changed.text, /\.\.\/outside/);
  const answer = await changed.answer({ action: "cancel" });
  assert.ok(codeOf(answer) !== undefined, textOf(answer));
  assert.equal((await pml.close()).code, 0);
  await assertAftermath(ws, pml, { secrets: SECRETS });
});

const SCHEMA = { tools: ["greedy:attempt"] };

Deno.test("two tools share a child only where their permissions are equal (SE11)", async () => {
  await using scene = await greedy({ env: ["GREEDY_KEY"] });
  const { ws, pml } = scene;
  const counted = async (tool: string) =>
    textOf(await pml.callTool(`greedy__${tool}`, {})).split(" ");
  const [wide, wideToo] = [await counted("count"), await counted("again")];
  const [bare, bareToo] = [await counted("alone"), await counted("alone_too")];
  assert.deepEqual([wide[1], wideToo[1], bare[1], bareToo[1]], ["1", "2", "1", "2"]);
  assert.equal(wide[0], wideToo[0]);
  assert.equal(bare[0], bareToo[0]);
  assert.notEqual(wide[0], bare[0]);
  await endWell(ws, pml, { secrets: SECRETS });
});

async function plantFolders(ws: Workspace): Promise<void> {
  for (const name of ["granted", "granted-not"]) {
    await mkdir(join(ws.root, name));
    await writeFile(join(ws.root, name, "in.txt"), name === "granted" ? "inside" : "not");
  }
  await Deno.symlink(ws.outside, join(ws.root, "granted/link"));
}

async function assertNothingMade(ws: Workspace): Promise<void> {
  assert.ok(!(await readdir(ws.path)).includes("made"));
  assert.deepEqual((await readdir(join(ws.root, "granted"))).sort(), ["in.txt", "link"]);
  assert.deepEqual(await readdir(join(ws.root, "outside")), ["canary.txt"]);
}
