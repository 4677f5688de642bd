/**
 * Creates a PML home and a workspace by running commands and calls of an earlier version of PML, and
 * writes them as a fixture for the upgrade test:
 *
 *     git worktree add --detach ../earlier 97268c9a
 *     deno task old-home ../earlier
 *
 * It creates them twice, in different folders and with servers at different ports. Hashes of texts
 * that contain a folder or port become placeholders, with the hashed text. If the two results then
 * differ in more than times and random values, a file depends on a folder or port in another way,
 * and nothing is written.
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
import {
  CALLS,
  DECIDED_TOOLS,
  FILES,
  ownFile,
  PACKAGED,
  workspaceFile,
} from "./old_home/contents.ts";
import { HASHES_VARIABLE } from "./old_home/record_hashes.ts";

const MS = 60_000;
/** The time before a question is answered, in milliseconds: PML ignores faster answers. */
const READING_MS = 400;
/** Excludes lock files, and the cache of Deno, which is not text. */
const EXCLUDED_FILES = /(?<!pml)\.lock$|\.edit$|\/servers\/deno\//;
/** Variables of this machine that the approval of a workspace file would show. */
const MACHINE_VARIABLES = [
  "SSL_CERT_DIR",
  "SSL_CERT_FILE",
  "NODE_EXTRA_CA_CERTS",
  "DENO_TLS_CA_STORE",
];

const TRUST: TerminalInput = [/Trust exactly this\?.*\[N\] no/s, "y"];
const WRITE: TerminalInput = ['Type "write"', "write"];

/** Runs commands of the earlier version in one workspace. */
class EarlierVersion {
  readonly #ws: Workspace;
  readonly #command: Command;

  constructor(ws: Workspace, checkout: string) {
    this.#ws = ws;
    this.#command = [
      ...[process.execPath, "run", "-A", "--config", join(checkout, "deno.json")] as const,
      ...["--preload", repoFile("tools/old_home/record_hashes.ts"), join(checkout, "mod.ts")],
    ];
  }

  /** Runs a command and returns its stdout. Throws if it fails. */
  async run(args: readonly string[], stdin = ""): Promise<string> {
    const result = await runPml(this.#ws, args, { command: this.#command, stdin, ms: MS });
    assert.equal(result.code, 0, `pml ${args.join(" ")}: ${result.stdout}${result.stderr}`);
    return result.stdout;
  }

  /** Runs a command on a terminal, and answers its questions. Throws if it fails. */
  async runOnTerminal(
    args: readonly string[],
    ...typed: readonly TerminalInput[]
  ): Promise<string> {
    const result = await runPmlOnTerminal(this.#ws, args, {
      command: this.#command,
      typed,
      ms: MS,
    });
    assert.equal(result.code, 0, `pml ${args.join(" ")}: ${result.stdout}`);
    return result.stdout;
  }

  /** Signs in to a server as a user in a browser does. */
  async signIn(server: string): Promise<void> {
    await using login = await beginLogin(this.#ws, server, { command: this.#command });
    await browse(login.address);
    const { code, stdout, stderr } = await login.ended();
    assert.equal(code, 0, stdout + stderr);
  }

  /** Makes calls as one client. Returns the answers, and the number of questions. */
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

/** Creates a home and a workspace, and returns their files with placeholders. */
async function makeHome(checkout: string): Promise<OldHome> {
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
  const pml = new EarlierVersion(ws, checkout);
  await pml.run(["key", "set", "WEB_KEY", "--stdin"], `${WEB_KEY}\n`);
  await pml.run(["key", "set", "NOTES_KEY", "--stdin"], "notes-key-0123456789\n");
  // The second and third question are about two servers of the registry.
  await pml.runOnTerminal(["trust"], TRUST, TRUST, TRUST);
  await pml.runOnTerminal(["config", "set", "limits.children", "6"], WRITE);
  await pml.runOnTerminal(["allow", "filesystem:list_directory"], WRITE);
  await pml.runOnTerminal(["add", "diary", "--", "node", diary], ["start it?", "yes"]);
  await pml.runOnTerminal(["allow", "diary"], WRITE);
  const tokenOutput = await pml.runOnTerminal(["token", "new", "ci"], WRITE);
  const [token = ""] = /[\w-]{43}(?![\w-])/.exec(tokenOutput.replace(/^\+.*$/gm, "")) ?? [];
  await pml.signIn("docs");
  const save = ["capability", "save", "my:weather", "--code", "paris.ts"];
  await pml.runOnTerminal([...save, "--parameter", "city=Paris"], [/Save exactly this\?/, "y"]);
  await pml.runOnTerminal(["capability", "save", "my:both", "--plan", "both.json"], [
    /Save exactly/,
    "y",
  ]);
  await pml.runOnTerminal(["init", "--client", "cursor"], ["Add PML to", "y"]);
  // Each call has its own client, because this version has a race between a change of the
  // configuration (the answer "Always") and the first start of a server.
  let questionCount = 0;
  for (const call of CALLS) questionCount += (await pml.calls([call])).asked;
  assert.ok(questionCount > 0, "no question was asked");
  const repeated = await pml.calls(CALLS);
  assert.equal(repeated.asked, 0, "a question was asked twice");
  await pml.run(["tools"]);
  await pml.run(["lock", "--check"]);
  const decisions = await Promise.all(DECIDED_TOOLS.map(async (tool) => {
    const { verdict, rule, approved } = JSON.parse(await pml.run(["why", tool, "--json"]));
    return [tool, { verdict, rule, approved }] as const;
  }));
  const verified = await pml.run(["audit", "verify"]);
  const places = { ROOT: ws.root, ...site.places, NPM: new URL(npm.url).origin };
  return {
    ...await filesOf(ws, { places, hashes }),
    version: (await readCommit(checkout)).slice(0, 8),
    token,
    records: Number(/^(\d+) records/.exec(verified)?.[1]),
    calls: repeated.answers,
    decisions: Object.fromEntries(decisions),
  };
}

/** Reads the files of the home and the workspace, and inserts placeholders. */
async function filesOf(
  ws: Workspace,
  { places, hashes }: { readonly places: Places; readonly hashes: string },
): Promise<Pick<OldHome, "hashes" | "files" | "links" | "executables">> {
  const entries = [];
  const links: Record<string, string> = {};
  for (const folder of ["home/.pml", "home/diary.mjs", "ws"]) {
    for (const path of await pathsIn(join(ws.root, folder))) {
      const name = relative(ws.root, path);
      const info = await lstat(path);
      if (info.isSymbolicLink()) links[name] = await readlink(path);
      if (!info.isFile() || EXCLUDED_FILES.test(name)) continue;
      const isExecutable = (info.mode & MODE_EXECUTABLE) !== 0;
      entries.push({ name, text: await readFile(path, "utf8"), isExecutable });
    }
  }
  const recorded = (await readFile(hashes, "utf8")).trimEnd().split("\n")
    .map((line) => JSON.parse(line) as [hash: string, text: string]);
  const templates = new Templates(places, recorded);
  // Records of the journal stay as they are: they have hashes, and are never compared with new values.
  const files = entries.map(({ name, text }) =>
    [
      templates.templateOf(name),
      (name.includes("/journal/") ? text : templates.templateOf(text)).split("\n"),
    ] as const
  );
  return {
    hashes: templates.hashes,
    links,
    executables: entries.flatMap(({ name, isExecutable }) =>
      isExecutable ? [templates.templateOf(name)] : []
    ),
    files: Object.fromEntries(files.toSorted(([one], [other]) => one < other ? -1 : 1)),
  };
}

async function pathsIn(path: string): Promise<readonly string[]> {
  if (!(await lstat(path)).isDirectory()) return [path];
  const names = await readdir(path, { recursive: true });
  return names.sort().map((name) => join(path, name));
}

/** Replaces folders and addresses, and hashes of texts that contain them, by placeholders. */
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

  templateOf(text: string): string {
    const withPlaces = this.#places.reduce(
      (replaced, [name, value]) => replaced.replaceAll(value, `{{${name}}}`),
      text,
    );
    return withPlaces.replace(
      /(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{32})(?![0-9a-f])/g,
      (hash) => this.#nameOf(hash) ?? hash,
    );
  }

  #nameOf(hash: string): string | undefined {
    const placeholder = this.#names.get(hash);
    if (placeholder !== undefined) return placeholder;
    const text = this.#texts.get(hash.slice(0, 32));
    const template = text === undefined ? undefined : this.templateOf(text);
    // Other hashes do not depend on a folder or address.
    if (template === undefined || template === text) return undefined;
    const name = `HASH_${createHash("sha256").update(template).digest("hex").slice(0, 8)}`;
    this.hashes[name] = [template, hash.length];
    this.#names.set(hash, `{{${name}}}`);
    return `{{${name}}}`;
  }
}

/** Returns a fixture without times and random values, for comparison. */
function withoutRandomValues({ files, ...home }: OldHome): unknown {
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

async function readCommit(checkout: string): Promise<string> {
  const args = ["-C", checkout, "rev-parse", "HEAD"];
  const { stdout } = await new Deno.Command("git", { args }).output();
  return new TextDecoder().decode(stdout).trim();
}

if (import.meta.main) {
  for (const name of MACHINE_VARIABLES) Deno.env.delete(name);
  const checkout = resolve(Deno.args[0] ?? ".");
  const home = await makeHome(checkout);
  assert.deepEqual(withoutRandomValues(await makeHome(checkout)), withoutRandomValues(home));
  const path = repoFile(`tests/fixtures/home_${home.version}.json`);
  await writeFile(path, `${JSON.stringify(home, null, 1)}\n`);
  console.log(path);
}
