/**
 * Clients that cannot ask: PML records them, shows a notification of a call that waits, and
 * `pml approve --watch` shows each.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { assertError } from "./cli_greeter.ts";
import { connect } from "./kit/client.ts";
import { servePml } from "./kit/pml_serve.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace, type Workspace, writeFiles } from "./kit/workspace.ts";

const ON_LINUX = Deno.build.os === "linux";
/** Writes each of its arguments as a line that ends in a NUL, and its environment. */
const NOTIFY_SEND = `#!/bin/sh
for each in "$@"; do printf '%s\\0' "$each"; done > "$HOME/one.$$"
printf '%s' "$DBUS_SESSION_BUS_ADDRESS" > "$HOME/bus"
mv "$HOME/one.$$" "$HOME/shown.$$"
`;

/** Creates a workspace with a `notify-send`, and the environment that finds it. */
async function desktop(config = "", files: Record<string, string> = {}) {
  const ws = await makeWorkspace({ files });
  const bin = join(ws.root, "bin");
  await writeFiles(bin, { "notify-send": NOTIFY_SEND });
  await Deno.chmod(join(bin, "notify-send"), 0o755);
  if (config !== "") await writeFiles(ws.home, { "config.yaml": config });
  const env = {
    PATH: `${bin}:${Deno.env.get("PATH")}`,
    DBUS_SESSION_BUS_ADDRESS: "unix:path=/nowhere",
  };
  return { ws, env };
}

/** Returns the arguments of each notification. */
async function shownIn({ env: { HOME = "" } }: Workspace): Promise<readonly string[][]> {
  const names = (await Array.fromAsync(Deno.readDir(HOME))).map(({ name }) => name);
  const shown = names.filter((name) => name.startsWith("shown."));
  const texts = await Promise.all(shown.map((name) => Deno.readTextFile(join(HOME, name))));
  return texts.map((text) => text.split("\0").slice(0, -1));
}

function write(path: string, content = "s3cret"): readonly string[] {
  return ["call", "filesystem:write_file", `path=${path}`, `content=${content}`];
}

Deno.test({
  name: "a call that waits shows one notification in ten seconds, without its arguments",
  ignore: !ON_LINUX,
  async fn() {
    const { ws, env } = await desktop();
    await using _ = ws;
    assertError(await runPml(ws, write("a.txt"), { env }), { code: "APPROVAL_REQUIRED", exit: 1 });
    await until(async () => (await shownIn(ws)).length === 1);
    const [args = []] = await shownIn(ws);
    assert.deepEqual([args[0], args.length], ["--", 3]);
    const texts = args.slice(1).join("\n");
    for (const part of ["filesystem:write_file", ws.path, "pml approve"]) {
      assert.ok(texts.includes(part), texts);
    }
    for (const part of ["s3cret", "a.txt"]) assert.ok(!texts.includes(part), texts);
    // Two processes at once, in the same pause.
    await Promise.all(["b.txt", "c.txt"].map((path) => runPml(ws, write(path), { env })));
    const stamp = join(ws.home, "notified.json");
    const at = Number(await Deno.readTextFile(stamp));
    assert.equal((await shownIn(ws)).length, 1);
    await Deno.writeTextFile(stamp, String(at - 11_000));
    await runPml(ws, write("d.txt"), { env });
    await until(async () => (await shownIn(ws)).length === 2);
  },
});

Deno.test({
  name: "a call that is repeated while it waits shows no second notification, and one later does",
  ignore: !ON_LINUX,
  async fn() {
    const { ws, env } = await desktop();
    await using _ = ws;
    await using pml = await connect(ws, { env });
    const stamp = join(ws.home, "notified.json");
    const call = async () => {
      const args = { tool: "filesystem:write_file", arguments: { path: "a.txt", content: "b" } };
      await pml.client.callTool({ name: "call", arguments: args });
    };
    await call();
    await until(async () => (await shownIn(ws)).length === 1);
    await Deno.writeTextFile(stamp, "0");
    await call();
    await pml.client.ping();
    assert.equal(await Deno.readTextFile(stamp), "0");
    // The user answered.
    await Deno.remove(join(ws.home, "pending"), { recursive: true });
    await call();
    await until(async () => (await shownIn(ws)).length === 2);
  },
});

Deno.test({
  name:
    "no notification is shown with notifications: false, for an identity, or from the workspace",
  ignore: !ON_LINUX,
  async fn() {
    const off = await desktop("notifications: false\n");
    await using _ = off.ws;
    await runPml(off.ws, write("a.txt"), { env: off.env });
    // A program of the workspace is not started.
    const planted = await desktop("", { "bin/notify-send": NOTIFY_SEND });
    await using __ = planted.ws;
    await Deno.chmod(planted.ws.file("bin/notify-send"), 0o755);
    await Deno.remove(join(planted.ws.root, "bin", "notify-send"));
    const PATH = `${planted.ws.file("bin")}:${planted.env.PATH}`;
    await runPml(planted.ws, write("a.txt"), { env: { ...planted.env, PATH } });
    const token = "t".repeat(32);
    const hash = await sha256(token);
    const others = await desktop(`identities: { ci: { token: ${hash} } }\n`);
    await using ___ = others.ws;
    await using served = await servePml(others.ws, ["--port", "0", "--json"], { env: others.env });
    const answer = await fetch(served.url, {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "call",
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: {
          name: "call",
          arguments: { tool: "filesystem:write_file", arguments: { path: "x", content: "y" } },
          _meta: {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { name: "of-an-identity", version: "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
          },
        },
      }),
    });
    const text = await answer.text();
    assert.match(text, /APPROVAL_REQUIRED/);
    for (const { ws } of [off, planted, others]) {
      await assert.rejects(Deno.stat(join(ws.home, "notified.json")), Deno.errors.NotFound);
      assert.deepEqual(await shownIn(ws), []);
    }
    // Nor is the client of an identity recorded.
    await assert.rejects(Deno.stat(join(others.ws.home, "clients.json")), Deno.errors.NotFound);
  },
});

async function sha256(text: string): Promise<string> {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

for (const era of ["2025-11-25", "2026-07-28"] as const) {
  Deno.test(`pml doctor names a client that cannot ask, not one that can, on ${era}`, async () => {
    await using ws = await makeWorkspace();
    const name = `mute "$(id)"\u001b[2J`;
    for (const capabilities of [{}, { elicitation: { form: {} } }]) {
      const clientName = Object.keys(capabilities).length === 0 ? name : "asking";
      await using pml = await connect(ws, { era, clientName, capabilities });
      await pml.client.listTools();
    }
    const { stdout } = await runPml(ws, ["doctor"]);
    const lines = stdout.split("\n").filter((line) => line.startsWith("warn client "));
    assert.equal(lines.length, 1, stdout);
    assert.ok(lines[0]?.includes('mute "$(id)"\\u{1b}[2J'), lines[0]);
    const { clients } = JSON.parse(await Deno.readTextFile(join(ws.home, "clients.json")));
    assert.deepEqual(
      clients.map(({ asks }: { readonly asks: boolean }) => asks).sort(),
      [false, true],
    );
    assert.equal(((await Deno.stat(join(ws.home, "clients.json"))).mode ?? 0) & 0o777, 0o600);
  });
}

Deno.test("many client names over HTTP leave one small file", async () => {
  await using ws = await makeWorkspace();
  {
    await using served = await servePml(ws, ["--port", "0", "--json"]);
    const request = (name: string) =>
      served.fetch({
        method: "POST",
        headers: {
          authorization: `Bearer ${served.token}`,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": "tools/list",
        },
        body: JSON.stringify({
          jsonrpc: "2.0",
          id: 1,
          method: "tools/list",
          params: {
            _meta: {
              "io.modelcontextprotocol/protocolVersion": "2026-07-28",
              "io.modelcontextprotocol/clientInfo": { name, version: "1" },
              "io.modelcontextprotocol/clientCapabilities": {},
            },
          },
        }),
      }, "/mcp");
    for (const name of Array.from({ length: 200 }, (_, at) => `client ${at}`)) {
      const answer = await request(name);
      assert.equal(answer.status, 200);
      await answer.body?.cancel();
    }
    served.kill("SIGTERM");
    await served.ended;
  }
  const text = await Deno.readTextFile(join(ws.home, "clients.json"));
  assert.ok(text.length < 20_000, `${text.length} characters`);
  assert.ok(text.includes("client 199"));
});

Deno.test("pml approve --watch stays open, and asks about each call that comes", async () => {
  await using ws = await makeWorkspace();
  const question = /Approve exactly this call\?.*\[N\] no/s;
  const ran = await runPmlOnTerminal(ws, ["approve", "--watch"], {
    typed: [
      ["Ctrl-C", async () => await runPml(ws, write("a.txt"))],
      [question, "y"],
      ["Approved", async () => await runPml(ws, write("b.txt"))],
      [question, "n"],
      ["Refused", "\u0003"],
    ],
  });
  assert.equal(ran.code, 130, ran.stdout);
  assert.equal((await runPml(ws, write("a.txt"))).code, 0);
  assert.equal(await Deno.readTextFile(ws.file("a.txt")), "s3cret");
  assertError(await runPml(ws, write("b.txt")), { code: "APPROVAL_REQUIRED", exit: 1 });
});

Deno.test("pml approve --watch goes on if a call was answered elsewhere meanwhile", async () => {
  await using ws = await makeWorkspace();
  await runPml(ws, write("a.txt"));
  const pending = join(ws.home, "pending");
  const ran = await runPmlOnTerminal(ws, ["approve", "--watch"], {
    typed: [
      [/Approve exactly/, async () => await Deno.remove(pending, { recursive: true })],
      ["", "y"],
      [/no such approval/, async () => await runPml(ws, write("b.txt"))],
      [/b\.txt.*Approve exactly/s, "\u0003"],
      ["Still pending", "\u0003"],
    ],
  });
  assert.equal(ran.code, 130, ran.stdout);
});

Deno.test("pml approve --watch needs a terminal, or --json, which prints each call as a line", async () => {
  await using ws = await makeWorkspace();
  assertError(await runPml(ws, ["approve", "--watch"]), { code: "APPROVAL_REQUIRED", exit: 1 });
  assertError(await runPml(ws, ["approve", "abc", "--watch"]), { code: "USAGE", exit: 2 });
  await runPml(ws, write("a.txt"));
  const ran = await runPmlOnTerminal(ws, ["approve", "--watch", "--json"], {
    typed: [
      [/^\{"id":.*a\.txt.*\}$/m, async () => await runPml(ws, write("b.txt"))],
      [/^\{"id":.*b\.txt.*\}$/m, "\u0003"],
    ],
  });
  assert.equal(ran.code, 130, ran.stdout);
});

/** Creates another workspace with the same PML home. Returns its folder. */
async function otherWorkspace(ws: Workspace): Promise<string> {
  const other = join(ws.root, "other");
  await writeFiles(other, { "package.json": "{}", ".pml.json": '{ "version": 1 }' });
  return other;
}

Deno.test("pml approve in another workspace shows no call that the rules of the call's workspace settled", async () => {
  await using ws = await makeWorkspace();
  const cwd = await otherWorkspace(ws);
  const waiting = async () =>
    JSON.parse((await runPml(ws, ["approve", "--json"], { cwd })).stdout).calls;
  await runPml(ws, write("a.txt"));
  await runPml(ws, write("b.txt"));
  assert.equal((await waiting()).length, 2);
  const deny = ["deny", "filesystem:write_file(path=a.txt)", "--workspace"];
  const denied = await runPmlOnTerminal(ws, deny, { typed: [["exactly this", "write"]] });
  assert.equal(denied.code, 0, denied.stdout);
  const [left, ...more] = await waiting();
  assert.deepEqual([left.unchecked, more.length], [undefined, 0]);
  assert.match(left.text, /b\.txt/);
  assert.match((await runPml(ws, [], { cwd })).stdout, /waiting +1 call/);
});

Deno.test("pml approve says which calls it cannot check: those of a folder that is gone", async () => {
  await using ws = await makeWorkspace();
  const cwd = await otherWorkspace(ws);
  await runPml(ws, write("a.txt"), { cwd });
  await Deno.remove(cwd, { recursive: true });
  const { calls: [call] } = JSON.parse((await runPml(ws, ["approve", "--json"])).stdout);
  assert.ok(call.unchecked.includes(cwd), JSON.stringify(call));
  const question = /cannot check.*Approve exactly this call\?.*\[N\] no/s;
  const ran = await runPmlOnTerminal(ws, ["approve"], { typed: [[question, "n"]] });
  assert.match(ran.stdout, /Refused/);
});
