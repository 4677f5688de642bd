/**
 * Commands while a server is being installed: they end at a signal, and lists wait on a terminal.
 *
 * @module
 */

import assert from "node:assert/strict";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FakeNpm } from "./kit/fake_npm.ts";
import { npmServer } from "./kit/npm_server.ts";
import { ProcWatch } from "./kit/procwatch.ts";
import { pmlCommand } from "./kit/pml_command.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { until, within } from "./kit/wait.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

/**
 * Creates a workspace with an npx server whose npm never ends. That npm starts a program that never
 * ends, too.
 */
async function stuck(): Promise<Workspace> {
  const root = await Deno.makeTempDir({ prefix: "pml-npm-" });
  const bin = join(root, "bin");
  await mkdir(bin);
  const npm = '#!/bin/sh\necho "npm http fetch GET 200 x" >&2\nsleep 600 &\nsleep 600\n';
  await writeFile(join(bin, "npm"), npm);
  await chmod(join(bin, "npm"), 0o755);
  const ws = await makeWorkspace({
    env: { PATH: `${bin}:${Deno.env.get("PATH")}` },
    pml: {
      permissions: { allow: ["slow:*"] },
      mcpServers: { slow: { command: "npx", args: ["-y", "slow-pkg"] } },
    },
  });
  const dispose = async () => {
    await ws[Symbol.asyncDispose]();
    await Deno.remove(root, { recursive: true });
  };
  return { ...ws, [Symbol.asyncDispose]: dispose };
}

const COMMANDS: readonly (readonly string[])[] = [
  ["call", "slow:go", "a=1"],
  ["tools", "slow"],
  ["tools", "--refresh"],
  ["doctor"],
  ["install", "slow"],
  ["learn", "slow"],
];

Deno.test("a signal ends any command within a second while it installs, with all that it started", async () => {
  await using ws = await stuck();
  for (const args of COMMANDS) {
    const times: number[] = [];
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      const [program, ...own] = [...pmlCommand(), ...args];
      const child = new Deno.Command(program, {
        args: own,
        cwd: ws.path,
        env: ws.env,
        clearEnv: true,
        stdin: "null",
        stdout: "null",
        stderr: "piped",
      }).spawn();
      let text = "";
      const reading = (async () => {
        const decoder = new TextDecoder();
        for await (const piece of child.stderr) text += decoder.decode(piece);
      })();
      const watch = new ProcWatch(ws);
      await until(() => text.includes("Installing slow-pkg"));
      await watch.remember(child.pid);
      const since = performance.now();
      child.kill(signal);
      const { code } = await within(child.status, { ms: 30_000, what: () => args.join(" ") });
      const took = performance.now() - since;
      await reading;
      assert.equal(code, signal === "SIGINT" ? 130 : 143, `${args.join(" ")}: ${text}`);
      times.push(took);
      assert.equal(text.split("Installing slow-pkg").length, 2, `twice: ${text}`);
      await watch.assertNothingLeft();
    }
    // Another process on a busy machine may delay one of them.
    assert.ok(Math.min(...times) < 1_000, `${args.join(" ")} took ${times.join(" and ")} ms`);
  }
});

Deno.test("piped lists name the command that installs; on a terminal they wait for it", async () => {
  await using ws = await stuck();
  for (const args of [["tools"], ["search", "slow"]]) {
    const result = await runPml(ws, args);
    assert.equal(result.code, 0, result.stderr);
    assert.match(result.stderr, /Not ready yet: slow\. `pml tools --refresh` installs and waits/);
    const waits = await runPmlOnTerminal(ws, args, {
      typed: [[/Installing slow-pkg/, ""], [/^/, "\x03"]],
    });
    assert.equal(waits.code, 130, waits.stdout);
    assert.doesNotMatch(waits.stdout, /Not ready yet/);
  }
});

Deno.test("pml search --server names no other server that is not ready", async () => {
  await using ws = await stuck();
  const other = await runPml(ws, ["search", "--server", "filesystem", "read"]);
  assert.equal(other.code, 0, other.stderr);
  assert.match(other.stdout, /filesystem:read_file/);
  assert.doesNotMatch(other.stderr, /Not ready yet|Failed/);
});

const NPM_404 = `#!/bin/sh
echo "npm http fetch GET 404 http://127.0.0.1/nope 12ms" >&2
echo "npm error code E404" >&2
echo "npm error 404 Not Found - GET http://127.0.0.1/nope - Not found" >&2
echo "npm error 404  'nope@*' is not in this registry." >&2
echo "npm error A complete log of this run can be found in: /x.log" >&2
exit 1
`;

Deno.test("a command tries to install a missing package once, and reports npm's reason", async () => {
  await using ws = await stuck();
  const bin = ws.env.PATH?.split(":")[0] ?? "";
  await writeFile(join(bin, "npm"), NPM_404);
  for (const args of [["call", "slow:go", "a=1"], ["tools", "slow"], ["doctor"]]) {
    const result = await runPml(ws, args);
    assert.equal(result.code, 1);
    assert.match(
      result.stdout + result.stderr,
      /Cannot install "slow-pkg": `npm install` ended with 1: "404 Not Found/,
    );
    assert.equal(result.stderr.split("info  Installing").length, 2, result.stderr);
  }
  const { stdout } = await runPml(ws, ["tools", "--refresh"]);
  assert.match(stdout, /^slow .*failed: .*404 Not Found/m);
});

Deno.test("PML reports that npm wrote no lock file, and does not start an unknown version", async () => {
  await using ws = await stuck();
  await writeFile(join(ws.env.PATH?.split(":")[0] ?? "", "npm"), "#!/bin/sh\necho '{}'\n");
  const { stderr } = await runPml(ws, ["call", "slow:go", "a=1"]);
  assert.match(
    stderr,
    /"slow-pkg": .*lock file.*\(npm 7 .*\n/,
  );
});

Deno.test("settings that keep npm from writing a lock file do not keep PML from installing", async () => {
  await using npm = new FakeNpm({ tiny: { "1.0.0": npmServer('"it ran"') } });
  const settings = await readFile(npm.settings, "utf8");
  for (const one of ["package-lock=false", "save=false", "dry-run=true"]) {
    await writeFile(npm.settings, `${settings}\n${one}\n`);
    await using ws = await makeWorkspace({
      env: { NPM_CONFIG_USERCONFIG: npm.settings },
      pml: {
        permissions: { allow: ["tiny:*"] },
        mcpServers: { tiny: { command: "npx", args: ["-y", "tiny"] } },
      },
    });
    const { stdout } = await runPml(ws, ["tools", "--refresh"]);
    assert.match(stdout, /^tiny .*ready/m, one);
  }
});

Deno.test("the output of a server that ended is reported with the failure, and stored for pml logs", async () => {
  const secret = "a-secret-of-the-server-0123456789";
  const script = 'echo "token is $TOKEN" >&2; echo "docker: no daemon" >&2; exit 125';
  await using ws = await makeWorkspace({
    env: { THE_TOKEN: secret },
    pml: {
      mcpServers: {
        boom: { command: "sh", args: ["-c", script], env: { TOKEN: "${THE_TOKEN}" } },
        quiet: { command: "true" },
      },
    },
  });
  const result = await runPml(ws, ["tools", "boom"]);
  assert.match(result.stderr, /Cannot reach "boom": .*exit code 125: "docker: no daemon"\n/);
  assert.match(result.stderr, /\n {2}It printed:\n {4}\| token is .*\n {4}\| docker: no daemon\n/);
  await runPml(ws, ["tools", "boom"]);
  const { stdout } = await runPml(ws, ["logs", "boom"]);
  assert.equal(stdout.split("docker: no daemon").length, 3, "both runs are kept");
  assert.match(stdout, /^\d{4}-\d\d-\d\dT[\d:.]+Z docker: no daemon$/m, "each line has its time");
  assert.doesNotMatch(stdout, new RegExp(secret));
  const path = join(ws.home, "logs", "boom.log");
  assert.equal(((await Deno.stat(path)).mode ?? 0) & 0o777, 0o600);
  assert.equal(JSON.parse((await runPml(ws, ["logs", "boom", "--json"])).stdout).path, path);
  // The oldest lines are removed first.
  await writeFile(path, `oldest\n${"x".repeat(70_000)}\n`, { mode: 0o600 });
  await runPml(ws, ["tools", "boom"]);
  const text = await Deno.readTextFile(path);
  assert.ok(text.length <= 65_536 && !text.includes("oldest") && text.includes("no daemon"));
  const nothing = await runPml(ws, ["logs", "quiet"]);
  assert.match(nothing.stderr, /The log of "quiet" is empty/);
  const unknown = await runPml(ws, ["logs", "bom"]);
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /Did you mean "boom"\?/);
});

Deno.test("pml install --offline-ready installs the packages of all servers, and names each failure and each server over HTTP", async () => {
  await using npm = new FakeNpm({ tiny: { "1.0.0": npmServer('"it ran"') } });
  await using ws = await makeWorkspace({
    env: { NPM_CONFIG_USERCONFIG: npm.settings },
    pml: {
      permissions: { allow: ["tiny:*"] },
      mcpServers: {
        tiny: { command: "npx", args: ["-y", "tiny"] },
        nope: { command: "npx", args: ["-y", "nope"] },
        own: { command: "node", args: ["server.js"] },
        web: { url: "http://127.0.0.1:9/mcp" },
      },
    },
  });
  const { code, stdout } = await runPml(ws, ["install", "--offline-ready", "--json"]);
  const { ready, failed, online } = JSON.parse(stdout);
  const servers = (parts: readonly { readonly kind: string; readonly name: string }[]) =>
    parts.filter(({ kind }) => kind === "server").map(({ name }) => name);
  assert.deepEqual([code, servers(ready), servers(failed), online], [1, ["tiny"], ["nope"], [
    "web",
  ]]);
  assert.equal(failed[0].code, "UPSTREAM_DOWN");
  assert.match(failed[0].message, /Cannot install "nope": .*404/);
  const asked = npm.asked.length;
  const result = await runPml(ws, ["call", "tiny:tell"]);
  assert.match(result.stdout, /it ran/, result.stderr);
  assert.equal(npm.asked.length, asked, "installed again");
});

Deno.test("pml install requires either a server or --offline-ready", async () => {
  await using ws = await makeWorkspace();
  for (const words of [[], ["tiny", "--offline-ready"]]) {
    const { code, stderr } = await runPml(ws, ["install", ...words]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /USAGE: Cannot install: .*\n {2}Write `pml install SERVER` or/);
  }
});
