/**
 * Makes a workspace for one test, and runs the tools of the built-in `git` in it with the real git.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { ExecOptions, ExecResult, Host } from "../../src/sandbox/host.ts";
import * as tools from "./git.ts";

export type Name = keyof typeof tools;
export interface Answer {
  readonly content: readonly { readonly type: string; readonly text: string }[];
  // Whatever the tool says; the tests look at it.
  // deno-lint-ignore no-explicit-any
  readonly structuredContent: any;
}

const GIT = ["/usr/bin/git", "/usr/local/bin/git", "/opt/homebrew/bin/git"].find((file) => {
  try {
    return Deno.statSync(file).isFile;
  } catch {
    return false; // not there
  }
}) ?? "git";
const DATE = "2026-01-02T03:04:05Z";

/** A folder with a workspace `ws`, a home `home` and a place outside. */
export class Yard implements Disposable {
  readonly path = Deno.realPathSync(Deno.makeTempDirSync());
  readonly ws = `${this.path}/ws`;
  readonly home = `${this.path}/home`;
  readonly runs: (readonly string[])[] = [];
  /** The maximum number of bytes that are kept of an output, instead of the caller's limit. */
  maxBytes: number | undefined;
  /** The variables of the last run. */
  environment: Readonly<Record<string, string>> = {};
  /** Called before each run. */
  onRun: (args: readonly string[]) => void = () => {};

  /** Makes an empty yard, or a copy of another. */
  constructor(like?: Yard) {
    if (like !== undefined) {
      new Deno.Command("cp", { args: ["-a", `${like.path}/.`, this.path] }).outputSync();
      return;
    }
    for (const name of ["ws", "home", "outside"]) Deno.mkdirSync(`${this.path}/${name}`);
    this.put("../home/.gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.com\n");
  }

  /** Makes a repository with a first commit of these files. */
  repository(files: Readonly<Record<string, string | Uint8Array>> = {}, at = "."): this {
    Deno.mkdirSync(`${this.ws}/${at}`, { recursive: true });
    this.git(["init", "-q", "-b", "main"], at);
    for (const [name, content] of Object.entries(files)) this.put(`${at}/${name}`, content);
    if (Object.keys(files).length === 0) return this;
    this.git(["add", "-A"], at);
    this.git(["commit", "-q", "-m", "first"], at);
    return this;
  }

  put(name: string, content: string | Uint8Array): void {
    const path = `${this.ws}/${name}`;
    Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true });
    if (typeof content === "string") Deno.writeTextFileSync(path, content);
    else Deno.writeFileSync(path, content);
  }

  get(name: string): string {
    return Deno.readTextFileSync(`${this.ws}/${name}`);
  }

  /** Runs git as a user would. */
  git(args: readonly string[], at = ".", { fails = false } = {}): string {
    const { code, stdout, stderr } = new Deno.Command(GIT, {
      args: [...args],
      cwd: `${this.ws}/${at}`,
      clearEnv: true,
      env: {
        ...{ HOME: this.home, PATH: "/usr/bin:/bin", GIT_CONFIG_NOSYSTEM: "1" },
        ...{ GIT_AUTHOR_DATE: DATE, GIT_COMMITTER_DATE: DATE },
      },
    }).outputSync();
    const text = new TextDecoder();
    if (!fails) assert.equal(code, 0, `git ${args.join(" ")}: ${text.decode(stderr)}`);
    return text.decode(stdout);
  }

  /** Returns a setting as git reads it with the variables of the last run. */
  settingInLastRun(key: string): string {
    const { stdout } = new Deno.Command(GIT, {
      args: ["config", "--get", key],
      cwd: this.ws,
      clearEnv: true,
      env: { ...this.environment, HOME: this.home, PATH: "/usr/bin:/bin" },
    }).outputSync();
    return new TextDecoder().decode(stdout).replace(/\n$/, "");
  }

  async run(name: Name, args: object = {}): Promise<Answer> {
    const host: Host = {
      workspace: this.ws,
      signal: new AbortController().signal,
      log: () => {},
      progress: () => {},
      exec: (program, given = [], options = {}) => this.#exec(program, given, options),
      sqlite: () => Promise.reject(new Error("no SQLite here")),
      fetch: () => Promise.reject(new Error("no network here")),
      sample: () => Promise.reject(new Error("no model here")),
      env: () => undefined,
    };
    return await tools[name](args as never, host) as Answer;
  }

  async text(name: Name, args: object = {}): Promise<string> {
    return (await this.run(name, args)).content[0]?.text ?? "";
  }

  async fails(name: Name, args: object, message: RegExp): Promise<void> {
    await assert.rejects(this.run(name, args), (error: Error) => {
      assert.match(error.message, message);
      assert.match(error.message, /^Cannot /);
      return true;
    });
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.path, { recursive: true });
  }

  /**
   * Does what the sandbox does: it uses an absolute file, a clean environment and a folder of the
   * workspace.
   */
  async #exec(
    program: string,
    args: readonly string[],
    { cwd = ".", stdin = "", env = {}, maxBytes = 1 << 20 }: ExecOptions,
  ): Promise<ExecResult> {
    assert.equal(program, "git");
    assert.ok(`${cwd}/`.startsWith(`${this.ws}/`), `runs in ${cwd}`);
    this.runs.push(args);
    this.environment = env;
    this.onRun(args);
    const child = new Deno.Command(GIT, {
      args: [...args],
      cwd,
      clearEnv: true,
      env: { ...env, LANG: "C.UTF-8", HOME: this.home, PATH: "/usr/bin:/bin" },
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const feed = new Blob([stdin as string]).stream().pipeTo(child.stdin).catch(() => {});
    const { code, signal, stdout, stderr } = await child.output();
    await feed;
    const [out, err] = [stdout, stderr].map((bytes) => kept(bytes, this.maxBytes ?? maxBytes));
    return {
      code,
      signal,
      stdout: out?.text ?? "",
      stderr: err?.text ?? "",
      omitted: { stdout: out?.omitted ?? 0, stderr: err?.omitted ?? 0 },
      timedOut: false,
    };
  }
}

function kept(bytes: Uint8Array, max: number) {
  const decode = (part: Uint8Array) => new TextDecoder().decode(part);
  const omitted = Math.max(bytes.length - max, 0);
  if (omitted === 0) return { text: decode(bytes), omitted };
  const half = Math.ceil(max / 2);
  const text = `${decode(bytes.subarray(0, half))}\n[${omitted} bytes left out]\n` +
    decode(bytes.subarray(half + omitted));
  return { text, omitted };
}
