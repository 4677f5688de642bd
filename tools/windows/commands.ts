/**
 * Commands of PML, with pipes and on a console.
 *
 * @module
 */

import { join } from "node:path";
import { journalOf, ofKind } from "../../tests/attacks/oracles.ts";
import { writeFiles } from "../../tests/kit/workspace.ts";
import type { Part } from "./part.ts";
import { makeScene } from "./scene.ts";

const READ = ["call", "filesystem:read_file", "path=a.txt"];
const FILES = { "a.txt": "AAA\n" };

/** Calls a tool and reads the journal. */
export const CALL: Part = {
  name: "pml call",
  run: async (wine, checks) => {
    await using scene = await makeScene(wine, { files: FILES });
    const { stdout, stderr } = await scene.pml(READ);
    checks.match("result", `${stdout}${stderr}`, /^AAA\n/);
    const { stdout: json } = await scene.pml([
      "call",
      "filesystem:read_file",
      "--json",
      "--args",
      "-",
    ], {
      input: '{"path":"..\\\\outside\\\\canary.txt"}',
    });
    checks.match("arguments from stdin", json, /PATH_OUTSIDE_WORKSPACE/);
    const ends = ofKind(await journalOf(scene.ws), "end");
    checks.match("journal", `${ends.length} calls`, /^2 calls$/);
    const { code, stdout: verdict } = await scene.pml(["audit", "verify"]);
    checks.match("pml audit verify", `${code} ${verdict}`, /^0 /);
  },
};

/** Makes a call that waits for approval, and approves it on a console. */
export const APPROVE: Part = {
  name: "pml approve",
  run: async (wine, checks) => {
    await using scene = await makeScene(wine);
    const write = ["call", "filesystem:write_file", "path=new.txt", "content=hi"];
    const unapproved = await scene.pml(write);
    checks.match("a call without a console waits", unapproved.stderr, /APPROVAL_REQUIRED/);
    const list = await scene.pml(["approve", "--json"]);
    checks.match("pml approve --json", list.stdout, /new\.txt/);
    const { stdout } = await scene.onConsole(["approve"], [[/\[y\] once/, "y"]]);
    checks.match("a key on the console", stdout, /Approved once/);
    const approved = await scene.pml(write);
    checks.match("the call runs", `${approved.stdout}${approved.stderr}`, /^Wrote 2 bytes/);
    const repeated = await scene.pml(write);
    checks.match("it runs once only", repeated.stderr, /APPROVAL_REQUIRED/);
  },
};

/** Asks for a key, a line and a word on a console. */
export const CONSOLE: Part = {
  name: "console",
  run: async (wine, checks) => {
    await using scene = await makeScene(wine, { files: FILES });
    const secret = "correct-horse-battery";
    const set = await scene.onConsole(["key", "set", "TRY_KEY"], [[/TRY_KEY:/, secret]]);
    checks.match(
      "pml key set hides the key",
      set.stdout.replaceAll(secret, "SHOWN"),
      /^(?![^]*SHOWN)/,
    );
    const keyList = await scene.pml(["key", "list"]);
    checks.match("pml key list", keyList.stdout, /TRY_KEY/);
    const write = ["call", "filesystem:write_file", "path=new.txt", "content=hi"];
    const declined = await scene.onConsole(write, [[/\[y\] once/, "n"]]);
    checks.match("no refuses the call", declined.stdout, /APPROVAL_DECLINED|it was declined/);
    const stopped = await scene.onConsole(write, [[/\[y\] once/, "\u0003"]]);
    checks.match("Ctrl-C ends the command", `${stopped.code} ${stopped.stdout}`, /^(?!0 )/);
  },
};

/** Finds the configuration file of a client, and adds PML to it. */
export const INIT: Part = {
  name: "pml init and import",
  run: async (wine, checks) => {
    await using scene = await makeScene(wine);
    // Wine sets %APPDATA% itself.
    const folder = join(wine.drive, "users/root/AppData/Roaming/Claude");
    const name = "claude_desktop_config.json";
    const mcpServers = { notes: { command: "cmd", args: ["/c", "npx", "-y", "notes-server"] } };
    await writeFiles(folder, { [name]: JSON.stringify({ mcpServers }) });
    await using _ = { [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }) };
    const list = await scene.pml(["import", "--json"]);
    checks.match("pml import reads cmd /c npx", list.stdout, /"command": ?"npx"/);
    const init = await scene.pml(["init", "--client", "claude-desktop,cursor", "--yes"]);
    checks.match("pml init", `${init.code} ${init.stderr}`, /^0 /);
    const text = await Deno.readTextFile(join(folder, name));
    checks.match(
      "its entry",
      JSON.stringify(JSON.parse(text)),
      /"pml":\{"command":"cmd","args":\["\/c","pml","stdio"\]/,
    );
    const doctor = await scene.pml(["doctor"]);
    checks.match("pml doctor", doctor.stdout, /claude-desktop.*notes/);
  },
};
