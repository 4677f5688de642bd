/**
 * Makes a PML home and a workspace with an earlier version of PML, by its commands and calls, and
 * writes them as a fixture for the test of upgrades:
 *
 *     git worktree add --detach ../earlier 97268c9a
 *     deno task old-home ../earlier
 *
 * It makes them twice, in different folders and with servers at different ports. Names that the
 * earlier version derived from these places become placeholders with the text that was hashed. If
 * the two results then differ in more than times and random values, a file depends on a place in
 * another way, and nothing is written.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { lstat, readdir, readFile, readlink, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import process from "node:process";
import { browse } from "../tests/kit/browser.ts";
import { FakeNpm } from "../tests/kit/fake_npm.ts";
import {
  MODE_EXECUTABLE,
  type OldCall,
  type OldHome,
  OldSite,
  type Places,
  WEB_KEY,
} from "../tests/kit/old_home.ts";
import { type Command, repoFile } from "../tests/kit/pml_command.ts";
import { RawStdio } from "../tests/kit/raw_stdio.ts";
import { runPml, runPmlOnTerminal, type TerminalInput } from "../tests/kit/run.ts";
import { beginLogin } from "../tests/kit/sign_in.ts";
import { makeWorkspace, type Workspace } from "../tests/kit/workspace.ts";
import { CALLS, DECIDED, FILES, ownFile, PACKAGED, workspaceFile } from "./old_home/contents.ts";
import { HASHES_VARIABLE } from "./old_home/record_hashes.ts";

const MS = 60_000;
/** How long a user reads a question, in milliseconds. */
const READING_MS = 400;
/** Files of locks, and the cache of Deno, which is not text. */
const LEFT_OUT = /(?<!pml)\.lock$|\.edit$|\/servers\/deno\//;
/** Variables of this machine that the question about a workspace file would show. */
const MACHINE = ["SSL_CERT_DIR", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "DENO_TLS_CA_STORE"];

const TRUST: TerminalInput = [/Trust exactly this\?.*\[N\] no/s, "y"];
const WRITE: TerminalInput = ['Type "write"', "write"];

/** Runs commands of the earlier version in one workspace. */
class Earlier {
  readonly #ws: Workspace;
  readonly #command: Command;

  constructor(ws: Workspace, checkout: string) {
    this.#ws = ws;
    this.#command = [
      ...[process.execPath, "run", "-A", "--config", join(checkout, "deno.json")] as const,
      ...["--preload", repoFile("tools/old_home/record_hashes.ts"), join(checkout, "mod.ts")],
    ];
  }

  /** Runs a command; returns its stdout. Throws if it fails. */
  async run(args: readonly string[], stdin = ""): Promise<string> {
    const ran = await runPml(this.#ws, args, { command: this.#command, stdin, ms: MS });
    assert.equal(ran.code, 0, `pml ${args.join(" ")}: ${ran.stdout}${ran.stderr}`);
    return ran.stdout;
  }

  /** Runs a command on a terminal, and answers its questions. Throws if it fails. */
  async type(args: readonly string[], ...typed: readonly TerminalInput[]): Promise<string> {
    const ran = await runPmlOnTerminal(this.#ws, args, { command: this.#command, typed, ms: MS });
    assert.equal(ran.code, 0, `pml ${args.join(" ")}: ${ran.stdout}`);
    return ran.stdout;
  }

  /** Signs in as in a browser. */
  async signIn(server: string): Promise<void> {
    await using login = await beginLogin(this.#ws, server, { command: this.#command });
    await browse(login.address);
    const { code, stdout, stderr } = await login.ended();
    assert.equal(code, 0, stdout + stderr);
  }

  /** Makes calls as one client. Returns the answers, and how many questions there were. */
  async calls(calls: readonly OldCall[]): Promise<{ answers: OldCall[]; asked: number }> {
    let asked = 0;
    const answer = async (_method: string, params: Record<string, unknown>) => {
      asked += 1;
      await new Promise((resolve) => setTimeout(resolve, READING_MS));
      const isOffered = JSON.stringify(params.requestedSchema).includes('"Always"');
      return { action: "accept", content: { answer: isOffered ? "Always" : "Yes" } };
    };
    const command: Command = [...this.#command, "stdio"];
    await using pml = new RawStdio(this.#ws, { command, era: "2025-11-25", answer });
    await pml.open();
    await pml.request("tools/list");
    const answers: OldCall[] = [];
    for (const { name, args } of calls) {
      const { result } = await pml.callTool(name, args, { ms: MS });
      const [first] = result?.content as unknown as readonly { readonly text: string }[];
      answers.push({ name, args, text: (first?.text ?? "").split("\n")[0] ?? "" });
    }
    assert.equal((await pml.close()).code, 0);
    return { answers, asked };
  }
}

/** Makes a home and a workspace, and returns them with placeholders. */
async function make(checkout: string): Promise<OldHome> {
  await using site = await OldSite.open();
  await using npm = new FakeNpm({ packaged: { "1.0.0": PACKAGED } });
  const origin = site.oauth.origin;
  await using ws = await makeWorkspace({ files: { ...FILES, ".pml.json": workspaceFile(origin) } });
  const hashes = join(ws.root, "outside", "hashes");
  Object.assign(ws.env, {
    ...site.env,
    NPM_CONFIG_USERCONFIG: npm.settings,
    [HASHES_VARIABLE]: hashes,
  });
  const diary = join(ws.root, "home", "diary.mjs");
  await writeFile(diary, PACKAGED["main.mjs"]);
  await writeFile(join(ws.home, "config.yaml"), ownFile(origin));
  const pml = new Earlier(ws, checkout);
  await pml.run(["key", "set", "WEB_KEY", "--stdin"], `${WEB_KEY}\n`);
  await pml.run(["key", "set", "NOTES_KEY", "--stdin"], "notes-key-0123456789\n");
  // The other questions are about two servers of the registry.
  await pml.type(["trust"], TRUST, TRUST, TRUST);
  await pml.type(["config", "set", "limits.children", "6"], WRITE);
  await pml.type(["allow", "filesystem:list_directory"], WRITE);
  await pml.type(["add", "diary", "--", "node", diary], ["start it?", "yes"]);
  await pml.type(["allow", "diary"], WRITE);
  const shown = await pml.type(["token", "new", "ci"], WRITE);
  const [token = ""] = /[\w-]{43}(?![\w-])/.exec(shown.replace(/^\+.*$/gm, "")) ?? [];
  await pml.signIn("docs");
  const save = ["capability", "save", "my:weather", "--code", "paris.ts"];
  await pml.type([...save, "--parameter", "city=Paris"], [/Save exactly this\?/, "y"]);
  await pml.type(["capability", "save", "my:both", "--plan", "both.json"], [/Save exactly/, "y"]);
  await pml.type(["init", "--client", "cursor"], ["Add PML to", "y"]);
  // Each call has its own client: the version has a race between a change of the
  // configuration, which "always" is, and the first start of a server.
  let asked = 0;
  for (const call of CALLS) asked += (await pml.calls([call])).asked;
  assert.ok(asked > 0, "no question was asked");
  const again = await pml.calls(CALLS);
  assert.equal(again.asked, 0, "a question was asked twice");
  await pml.run(["tools"]);
  await pml.run(["lock", "--check"]);
  const decisions = await Promise.all(DECIDED.map(async (tool) => {
    const { verdict, rule, approved } = JSON.parse(await pml.run(["why", tool, "--json"]));
    return [tool, { verdict, rule, approved }] as const;
  }));
  const verified = await pml.run(["audit", "verify"]);
  const places = { ROOT: ws.root, ...site.places, NPM: new URL(npm.url).origin };
  return {
    ...await filesOf(ws, { places, hashes }),
    version: (await gitOf(checkout)).slice(0, 8),
    token,
    records: Number(/^(\d+) records/.exec(verified)?.[1]),
    calls: again.answers,
    decisions: Object.fromEntries(decisions),
  };
}

/** Reads the files of the home and the workspace, and puts placeholders in. */
async function filesOf(
  ws: Workspace,
  { places, hashes }: { readonly places: Places; readonly hashes: string },
): Promise<Pick<OldHome, "hashes" | "files" | "links" | "executables">> {
  const found = [];
  const links: Record<string, string> = {};
  for (const folder of ["home/.pml", "home/diary.mjs", "ws"]) {
    for (const path of await pathsIn(join(ws.root, folder))) {
      const name = relative(ws.root, path);
      const info = await lstat(path);
      if (info.isSymbolicLink()) links[name] = await readlink(path);
      if (!info.isFile() || LEFT_OUT.test(name)) continue;
      const isExecutable = (info.mode & MODE_EXECUTABLE) !== 0;
      found.push({ name, text: await readFile(path, "utf8"), isExecutable });
    }
  }
  const recorded = (await readFile(hashes, "utf8")).trimEnd().split("\n")
    .map((line) => JSON.parse(line) as [hash: string, text: string]);
  const whole = new Templates(places, recorded);
  // The records of the journal are covered by their hashes, and describe the past.
  const files = found.map(({ name, text }) =>
    [whole.of(name), (name.includes("/journal/") ? text : whole.of(text)).split("\n")] as const
  );
  return {
    hashes: whole.hashes,
    links,
    executables: found.flatMap(({ name, isExecutable }) => isExecutable ? [whole.of(name)] : []),
    files: Object.fromEntries(files.toSorted(([one], [other]) => one < other ? -1 : 1)),
  };
}

async function pathsIn(path: string): Promise<readonly string[]> {
  if (!(await lstat(path)).isDirectory()) return [path];
  const names = await readdir(path, { recursive: true });
  return names.sort().map((name) => join(path, name));
}

/** Replaces places, and hashes of texts with places, by placeholders. */
class Templates {
  readonly hashes: Record<string, readonly [text: string, length: number]> = {};
  readonly #places: readonly (readonly [name: string, value: string])[];
  /** The texts of the hashes by their first 32 digits. */
  readonly #texts: ReadonlyMap<string, string>;
  readonly #names = new Map<string, string>();

  constructor(places: Places, recorded: readonly (readonly [hash: string, text: string])[]) {
    this.#places = Object.entries(places);
    this.#texts = new Map(recorded.map(([hash, text]) => [hash.slice(0, 32), text]));
  }

  of(text: string): string {
    const placed = this.#places.reduce(
      (all, [name, value]) => all.replaceAll(value, `{{${name}}}`),
      text,
    );
    return placed.replace(
      /(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{32})(?![0-9a-f])/g,
      (hash) => this.#nameOf(hash) ?? hash,
    );
  }

  #nameOf(hash: string): string | undefined {
    const known = this.#names.get(hash);
    if (known !== undefined) return known;
    const text = this.#texts.get(hash.slice(0, 32));
    const template = text === undefined ? undefined : this.of(text);
    // Other hashes do not depend on a place.
    if (template === undefined || template === text) return undefined;
    const name = `HASH_${createHash("sha256").update(template).digest("hex").slice(0, 8)}`;
    this.hashes[name] = [template, hash.length];
    this.#names.set(hash, `{{${name}}}`);
    return `{{${name}}}`;
  }
}

/** Returns a fixture without its times and random values. */
function comparable({ files, ...home }: OldHome): unknown {
  const masked = Object.entries(files).flatMap(([name, lines]) => {
    const isRandom = /\/journal\/|memory\.json$/.test(name);
    const text = lines.join("\n")
      .replace(/^[0-9a-f]{64}(?=\{)|(?<="stamp":")[0-9a-f]{64}|(?<=token: )[0-9a-f]{64}/gm, "?")
      .replace(/[0-9a-f]{8}-[0-9a-f-]{27}|127\.0\.0\.1:\d+\/callback/g, "?")
      .replace(/\b(?:access|refresh|client)-[\w-]{16,32}|\b\d{13}\b/g, "?");
    return isRandom ? [] : [[name, text]];
  });
  return { ...home, token: "", records: 0, files: masked };
}

async function gitOf(checkout: string): Promise<string> {
  const args = ["-C", checkout, "rev-parse", "HEAD"];
  const { stdout } = await new Deno.Command("git", { args }).output();
  return new TextDecoder().decode(stdout).trim();
}

if (import.meta.main) {
  for (const name of MACHINE) Deno.env.delete(name);
  const checkout = resolve(Deno.args[0] ?? ".");
  const home = await make(checkout);
  assert.deepEqual(comparable(await make(checkout)), comparable(home));
  const path = repoFile(`tests/fixtures/home_${home.version}.json`);
  await writeFile(path, `${JSON.stringify(home, null, 1)}\n`);
  console.log(path);
}
