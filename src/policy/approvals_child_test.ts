/**
 * The code that tests run in other processes, with the arguments COMMAND HOME FILE NAME COUNT. The
 * commands are in `run()`. This file contains no test itself and is not published.
 *
 * @module
 */

import { parseToolId } from "../core/tool_id.ts";
import { type RuleLists, WorkspaceRules } from "./rule_writer.ts";
import { Approvals } from "./approvals.ts";
import { TrustStore } from "./trust.ts";

/** The defaults that tests write into files without `permissions`. */
export const DEFAULTS: RuleLists = { allow: ["filesystem:read_file"], ask: ["*"], deny: [] };

/** A process that runs one command of `run()`. */
export interface Child {
  readonly process: Deno.ChildProcess;
  readonly output: Promise<string>;
}

/** Starts this file in another process. */
export function startChild(...args: readonly string[]): Child {
  const process = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-lock", "--no-check", "--quiet", import.meta.filename ?? "", ...args],
    cwd: import.meta.dirname ?? ".",
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  return { process, output: new Response(process.stdout).text() };
}

/** Runs several processes at the same time, and returns their output. */
export async function race(each: readonly (readonly string[])[]): Promise<string[]> {
  const children = each.map((args) => startChild(...args));
  for (const { process } of children) await process.stdin.close();
  const outputs = await Promise.all(children.map(({ output }) => output));
  await Promise.all(children.map(({ process }) => process.status));
  return outputs;
}

/** Kills this process just before one of its steps on the file system. */
function dieAt(step: number): void {
  let steps = 0;
  wrap(Deno, ["open", "openSync", "rename", "link", "remove", "mkdir", "lstat", "lstatSync"]);
  wrap(Deno, ["chmod", "realPath"]);
  wrap(Deno.FsFile.prototype, ["write", "sync", "lock", "statSync", "readSync"]);

  function wrap(owner: object, methods: readonly string[]): void {
    for (const name of methods) {
      const real: unknown = Reflect.get(owner, name);
      if (typeof real !== "function") throw new TypeError(`${name} is no function`);
      Reflect.set(owner, name, function (this: unknown, ...args: unknown[]) {
        steps += 1;
        if (steps === step) Deno.kill(Deno.pid, "SIGKILL");
        return real.apply(this, args);
      });
    }
  }
}

async function run(word: string, ...args: readonly string[]): Promise<string> {
  const [home = "", file = "", name = "", count = "0"] = args;
  const trusted = new TrustStore(home, { warn: complain });
  const allow = async (text: string) => {
    const tool = parseToolId(text);
    if (tool === undefined) throw new TypeError(`No tool: ${text}`);
    await new WorkspaceRules(trusted, DEFAULTS).add(file, { rules: [tool] });
  };
  switch (word) {
    case "pin":
      for (let at = 0; at < Number(count); at++) {
        const server = `${name}-${at}`;
        await trusted.approve(file, (before) => ({ ...before, [server]: `sha256-${at}` }));
      }
      return "done";
    case "allow":
      for (let at = 0; at < Number(count); at++) await allow(`${name}:t${at}`);
      return "done";
    case "die":
      // The parser is loaded first, so that only steps of the edit are counted.
      await import("jsonc-parser");
      dieAt(Number(count));
      await allow(name);
      return "lived";
    case "take":
      return String(
        await new Approvals(home, { warn: complain }, { ttl: 600_000 }).meaningOf(undefined, file),
      );
    default:
      throw new TypeError(`No such word: ${word}`);
  }
}

function complain(message: string): void {
  console.error(message);
}

if (import.meta.main && Deno.args.length > 0) {
  const [word = "", ...args] = Deno.args;
  // The end of stdin is the signal to begin, so that several processes begin together.
  await new Response(Deno.stdin.readable).text();
  console.log(await run(word, ...args));
}
