/**
 * A program with `confine: true` and the sockets by which `pml page` reaches running PMLs: neither it
 * nor a program that it may run reads a key, and without one it can neither follow a process nor
 * answer its questions.
 *
 * @module
 */

import assert from "node:assert/strict";
import { textOf } from "./attacks/oracles.ts";
import { makeScene } from "./attacks/stage.ts";
import { processFolder, readEntries, socketOf } from "../src/control/process_folder.ts";
import { FakeNpm } from "./kit/fake_npm.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { until } from "./kit/wait.ts";

const MS = 60_000;
/** Connects to a socket, sends a text, and prints everything that comes back. */
const CONNECT = `
use Socket;
$| = 1;
alarm(3);
socket(my $s, PF_UNIX, SOCK_STREAM, 0) or die;
connect($s, sockaddr_un($ARGV[0])) or do { print "not connected: $!"; exit };
syswrite($s, $ARGV[1]);
print "connected: ";
while (sysread($s, my $part, 65536)) { print $part; }
`;
/** Reads a folder or a file, opens a socket, or runs a program and returns its output. */
const PROBE = tinyServer(`(async ({ folder, file, socket, run }) => {
  const fs = require("node:fs");
  if (folder !== undefined) return fs.readdirSync(folder).join();
  if (file !== undefined) return fs.readFileSync(file, "utf8");
  if (run !== undefined) {
    const { stdout, stderr, error } = require("node:child_process").spawnSync(run[0], run.slice(1));
    return [stdout, stderr, error].filter(Boolean).join("\\\\n");
  }
  return await new Promise((resolve, reject) => {
    const connection = require("node:net").connect(socket);
    connection.on("error", reject);
    connection.on("connect", () => resolve("connected"));
  });
})(params.arguments)`);

/** Returns the first requests of a page. */
function requestsWith(key: string): string {
  return ["open", "follow", "state", "metrics"]
    .map((method, id) => `${JSON.stringify({ jsonrpc: "2.0", id, method, params: { key } })}\n`)
    .join("");
}

for (const confine of [true, false]) {
  Deno.test({
    name: confine
      ? "a confined program reads no key of a running PML, and cannot attach to it"
      : "a program with the key of a running PML can attach to it, so that the test above shows it",
    ignore: Deno.build.os !== "linux",
    fn: async () => {
      await using npm = new FakeNpm({
        tiny: { "1.0.0": { "package.json": '{"bin":"m.js"}', "m.js": PROBE } },
      });
      await using scene = await makeScene({
        pml: {
          version: 1,
          permissions: { allow: ["tiny:*"] },
          mcpServers: { tiny: { command: "npx", args: ["-y", "tiny"], confine } },
          ...confine && { grants: { tiny: { run: ["cat", "ls", "perl"] } } },
        },
        limits: { start_ms: MS, call_ms: MS },
        env: { NPM_CONFIG_USERCONFIG: npm.settings },
      });
      const { pml, ws } = scene;
      const probe = async (args: object) =>
        textOf(await pml.callTool("call", { tool: "tiny:tell", arguments: args }, { ms: MS }));
      assert.match(await probe({ run: ["cat", "/etc/hostname"] }), /\w/);
      await until(async () => (await readEntries(ws.home))[0]?.key !== undefined);
      const [{ id = "", key = "" } = {}] = await readEntries(ws.home);
      const [folder, socket] = [processFolder(ws.home), socketOf(ws.home, id)];
      const file = `${socket}.json`;
      const connected = async (own: string) =>
        await probe({ run: ["perl", "-e", CONNECT, socket, requestsWith(own)] });
      if (!confine) {
        assert.ok((await probe({ file })).includes(key));
        const opened = await connected(key);
        for (const text of ["result", ws.path]) assert.ok(opened.includes(text), opened);
        return;
      }
      for (const text of [await probe({ folder }), await probe({ run: ["ls", folder] })]) {
        assert.match(text, /denied/);
        assert.ok(!text.includes(id), text);
      }
      for (const text of [await probe({ file }), await probe({ run: ["cat", file] })]) {
        assert.match(text, /denied/);
        assert.ok(!text.includes(key), text);
      }
      assert.match(await probe({ socket }), /denied/);
      // Landlock does not close sockets: the key does.
      const answer = await connected("0".repeat(64));
      assert.match(answer, /connected: /);
      assert.ok(!answer.includes("result") && !answer.includes(ws.path), answer);
    },
  });
}
