/**
 * Installs the npm packages that servers are, apart from the workspace: the exact version that was
 * there first, no script of theirs, and only the tree of files that it was then.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { isObject, quoted, visible } from "../core/json.ts";
import { type RunOptions, runProgram } from "../sandbox/process.ts";
import { treeHash, treeStamp } from "./_tree.ts";

/** What a command such as `npx -y some-package --flag` names. */
export interface PackageCommand {
  /** `name`, `name@version` or `name@tag`. */
  readonly spec: string;
  readonly name: string;
  /** The program of the package, where it has several. */
  readonly bin: string | undefined;
  /** What the program itself is given. */
  readonly args: readonly string[];
}

/** What installing needs from outside. */
export interface InstallsOptions {
  readonly home: string;
  /** What npm finds in its environment. */
  readonly environment: () => Readonly<Record<string, string>>;
  /** Finds a program by its name, or throws. */
  readonly find: (program: string) => string;
  /** Gives up what is being installed. */
  readonly closing: AbortSignal;
  readonly groups: RunOptions["groups"];
  readonly onLog: (text: string) => void;
}

/** A package that is there. */
export interface Present {
  readonly folder: string;
  readonly file: string;
}

/** What was installed, as it stands beside it. */
interface Installed {
  readonly spec: string;
  readonly version: string;
  /** Relative to the folder. */
  readonly file: string;
  /** The hash over all files, and what tells soon that none has changed. */
  readonly tree: string;
  readonly stamp: string;
}

const NAME = /^(?:@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*$/i;
const VERSION = /^[\w.^~<>=*+-]+$/;
const ALONE = ["-y", "--yes", "-q", "--quiet", "--"];
const INSTALL_MS = 300_000;
const SAID_MAX = 4_000;

/** Reads the arguments of `npx` or `bunx`; undefined where they name no package of the registry. */
export function packageCommand(args: readonly string[]): PackageCommand | undefined {
  let spec: string | undefined;
  let bin: string | undefined;
  const rest = [...args];
  while (rest.length > 0) {
    const arg = rest.shift() ?? "";
    const named = /^(?:--package|-p)(?:=(.+))?$/.exec(arg);
    if (named) spec = named[1] ?? rest.shift();
    else if (ALONE.includes(arg)) continue;
    else if (arg.startsWith("-")) return undefined;
    else {
      if (spec === undefined) spec = arg;
      else bin = arg;
      break;
    }
  }
  const at = spec?.indexOf("@", 1) ?? -1;
  const name = at < 0 ? spec : spec?.slice(0, at);
  const version = at < 0 ? "latest" : spec?.slice(at + 1);
  if (!spec || !name || !NAME.test(name) || !VERSION.test(version ?? "")) return undefined;
  return { spec, name, bin, args: rest };
}

/** The packages in the PML home. */
export class Installs {
  readonly #options: InstallsOptions;
  readonly #under = new Map<string, Promise<Present>>();

  /** Takes where and how; nothing is installed before it is asked for. */
  constructor(options: InstallsOptions) {
    this.#options = options;
  }

  /** Gives a package's folder and the file of its program, installing the package where it is not there yet. */
  async fileOf(wanted: PackageCommand): Promise<Present> {
    const { spec, bin = "" } = wanted;
    const folder = join(
      this.#options.home,
      "servers",
      `npm-${sha256(`${spec} ${bin}`).slice(0, 32)}`,
    );
    const under = this.#under.get(folder) ?? this.#present(wanted, folder);
    this.#under.set(folder, under);
    try {
      return await under;
    } finally {
      this.#under.delete(folder);
    }
  }

  async #present(wanted: PackageCommand, folder: string): Promise<Present> {
    const known = recordOf(folder);
    if (known === undefined) await this.#install(wanted, folder);
    else if (treeStamp(folder) !== known.stamp) await this.#assertSame(known, folder);
    const { file, version } = recordOf(folder) ?? { file: "", version: "" };
    this.#options.onLog(`${wanted.spec} is version ${version} in ${folder}`);
    return { folder, file: join(folder, file) };
  }

  async #install(wanted: PackageCommand, folder: string): Promise<void> {
    const { spec, name } = wanted;
    const fresh = `${folder}.${crypto.randomUUID()}`;
    Deno.mkdirSync(fresh, { recursive: true, mode: 0o700 });
    try {
      Deno.writeTextFileSync(join(fresh, "package.json"), '{"private":true}');
      this.#options.onLog(`Installing ${spec}`);
      await this.#run(fresh, spec);
      const { version, file } = await programOf(fresh, wanted);
      const tree = await treeHash(fresh);
      const record: Installed = { spec, version, file, tree, stamp: treeStamp(fresh) };
      Deno.writeTextFileSync(join(fresh, RECORD), JSON.stringify(record), { mode: 0o600 });
      Deno.renameSync(fresh, folder);
    } catch (error) {
      Deno.removeSync(fresh, { recursive: true });
      // Another PML was faster: what it installed is as good.
      if (recordOf(folder) === undefined) throw error;
    }
    this.#options.onLog(`Installed ${name}`);
  }

  async #run(cwd: string, spec: string): Promise<void> {
    const { find, environment, closing, groups } = this.#options;
    const safe = [
      "--ignore-scripts",
      "--no-audit",
      "--no-fund",
      "--loglevel=error",
      "--save-exact",
    ];
    const { code, stderr } = await runProgram(
      { file: find("npm"), args: ["install", ...safe, "--", spec], cwd, env: environment() },
      {
        signal: AbortSignal.any([AbortSignal.timeout(INSTALL_MS), closing]),
        maxBytes: SAID_MAX,
        groups,
      },
    );
    if (code === 0) return;
    throw new PmlError("UPSTREAM_DOWN", `Cannot install ${quoted(spec)}: npm ended with ${code}`, {
      hint: "Look at its name and version, and whether the registry of npm can be reached",
      detail: { stderr: visible(stderr.trim(), SAID_MAX) },
    });
  }

  async #assertSame(known: Installed, folder: string): Promise<void> {
    const tree = await treeHash(folder);
    if (tree === known.tree) {
      const record = { ...known, stamp: treeStamp(folder) };
      return Deno.writeTextFileSync(join(folder, RECORD), JSON.stringify(record));
    }
    const message = `Cannot run ${quoted(known.spec)}: its files are not those that were installed`;
    throw new PmlError("INTEGRITY_MISMATCH", message, {
      hint: `Remove ${quoted(folder, 400)} to have it installed anew`,
    });
  }
}

const RECORD = "pml-installed.json";

function recordOf(folder: string): Installed | undefined {
  try {
    return JSON.parse(Deno.readTextFileSync(join(folder, RECORD)));
  } catch {
    return undefined; // not there: a folder appears with its record or not at all
  }
}

/** Finds the program of a package: the one that is named, the only one, or the one of its own name. */
async function programOf(
  folder: string,
  { name, bin }: PackageCommand,
): Promise<{ readonly version: string; readonly file: string }> {
  const at = join("node_modules", name);
  const said: unknown = JSON.parse(await Deno.readTextFile(join(folder, at, "package.json")));
  const { version, bin: bins } = isObject(said) ? said : {};
  const own = name.split("/").at(-1) ?? "";
  const programs: Record<string, unknown> = isObject(bins) ? bins : { [own]: bins };
  const only = Object.keys(programs).length === 1 ? Object.values(programs)[0] : undefined;
  const file = bin === undefined ? only ?? programs[own] : programs[bin];
  if (typeof file === "string" && !file.split(/[\\/]/).includes("..")) {
    return { version: String(version), file: join(at, file) };
  }
  throw new PmlError(
    "UPSTREAM_DOWN",
    `Cannot start ${quoted(name)}: it has no program ${quoted(bin ?? own)}`,
    {
      hint: "Name one of its programs: npx -y --package NAME PROGRAM",
    },
  );
}
