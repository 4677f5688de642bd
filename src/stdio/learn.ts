/**
 * Tries a server out: it runs confined to certain grants, and what it asked for beyond them becomes
 * the smallest grants that cover it, or a reason why it is to have none.
 *
 * @module
 */

import { basename, dirname, join, relative, sep } from "node:path";
import { isLiteral } from "../core/address.ts";
import { visible } from "../core/json.ts";
import { keepFile } from "../io/kept.ts";
import { isInside, realPathIfAny } from "../io/place.ts";
import { readRegularText } from "../io/regular_file.ts";
import type { Grants } from "../permissions/grants.ts";
import { type AskedFor, askedFor } from "./_asked_for.ts";
import { confinedAccess, type Confinement } from "./_confined.ts";
import { DATA_FOLDER } from "./data_folder.ts";

/** What a trial is held in. */
export interface TrialOptions extends Omit<Confinement, "folder" | "grants"> {
  readonly grants: Grants;
  /** Variables that it finds beside its own; they may name its data folder. */
  readonly env: Readonly<Record<string, string>>;
  readonly userHome: string;
  readonly cwd: string;
  /** The variables that the server finds. */
  readonly given: readonly string[];
}

/** What a trial taught. */
export interface Lesson {
  /** What would cover what it was denied. */
  readonly missing: Grants;
  /** What it was denied and is not to be granted, and why. */
  readonly left: readonly string[];
  /** Variables that it looked for and that it is not given. */
  readonly variables: readonly string[];
  /** Variables that give it its own folder for what it keeps in its package, and their values. */
  readonly env: Readonly<Record<string, string>>;
}

type Mutable = { -readonly [K in keyof Grants]: string[] };

/** So many files of a folder are granted as the folder. */
const FOLDED = 3;
/** What runs whatever it is told to. */
const ANYTHING =
  /^(?:\w*sh|cmd|powershell|pwsh|node|deno|bun|bunx|npm|npx|pnpm|yarn|python[\d.]*|uvx?|perl|ruby|env|sudo|doas)(?:\.exe)?$/i;
const PROGRAM = /^[\w.+-]+$/;
const HOST = /^(?:[\w.-]+|\[[\da-f:]+\]):\d+$/i;
/** What node's own ways of starting look at. */
const NOISE = /^(?:NODE_|DENO_|__|(?:PATH|PML_RUN|NO_COLOR|FORCE_COLOR|CI|DEBUG|TERM|COLORTERM)$)/;
const TEXTS = 200_000;
/** What a variable is called that says where something is kept, and where a folder is meant. */
const PLACE = /(?:PATH|FILE|FILENAME|DIR|DIRECTORY|FOLDER|DB|DATABASE|STORAGE|STORE)$/i;
const FOLDER = /(?:DIR|DIRECTORY|FOLDER)$/i;

/** One trial of a server. */
export class Trial implements Disposable {
  /** The name of the server. */
  readonly name: string;
  /** What it runs with. */
  readonly grants: Grants;
  /** The variables that it finds beside its own. */
  readonly env: Readonly<Record<string, string>>;
  /** Where Deno writes what it asks for. */
  readonly file: string;
  readonly #options: TrialOptions;
  #texts = "";

  /** Makes an empty record. */
  constructor(options: TrialOptions) {
    this.#options = options;
    this.name = options.name;
    this.grants = options.grants;
    this.env = options.env;
    this.file = join(options.home, "servers", `trial-${crypto.randomUUID()}.jsonl`);
    keepFile(this.file, "");
  }

  /** Takes what it wrote and answered. */
  hear(text: string): void {
    this.#texts = (this.#texts + text).slice(-TEXTS);
  }

  /** Tells what it was denied till now. */
  lesson(): Lesson {
    const record = readRegularText(this.file);
    const asked = askedFor(record, { texts: this.#texts, cwd: this.#options.cwd });
    return lessonOf(asked, this.#options);
  }

  /** Gives what it runs with and more, as one. */
  with(more: Grants): Grants {
    return merged(this.grants, more);
  }

  /** Removes the record. */
  [Symbol.dispose](): void {
    Deno.removeSync(this.file);
  }
}

/** Gives some grants and more, as one. */
export function merged(grants: Grants, more: Grants): Grants {
  const all = [...Object.entries(grants), ...Object.entries(more)];
  const kinds = Map.groupBy(all, ([kind]) => kind);
  const lists = [...kinds].map(([kind, some]) => [kind, some.flatMap(([, list]) => list)]);
  return Object.fromEntries(lists);
}

/** Says what grants would cover what was asked for, beyond those that were there. */
export function lessonOf(asked: AskedFor, options: TrialOptions): Lesson {
  const { workspace, given } = options;
  const has = confinedAccess(options);
  const left: string[] = asked.other.map((what) => `${what}: it cannot be granted`);
  const missing: Mutable = {};
  for (const kind of ["read", "write"] as const) {
    const own = kind === "read" ? [...has.read, join(options.home, "servers")] : has.write;
    const beyond = asked[kind].map((path) => realPathIfAny(path) ?? path).filter((path) => {
      const isGranted = own.some((root) => isInside(root, path));
      const why = kind === "read" && options.certificates.some((root) => isInside(root, path))
        ? undefined
        : protectedName(path, options) ?? (isGranted ? undefined : refusal(path, options));
      if (why !== undefined) left.push(`${kind} ${visible(path, 300)}: ${why}`);
      return !isGranted && why === undefined;
    });
    const paths = folded([...new Set(beyond)], options);
    if (paths.length > 0) missing[kind] = paths.map((path) => written(path, workspace));
  }
  const net = asked.net.filter((host) => !has.net.includes("*") && !has.net.includes(host));
  const named = [...net, ...has.net].some((host) => !isLiteral(host));
  missing.net = net.filter((host) => {
    const why = !HOST.test(host)
      ? "it is no host"
      : /:0$/.test(host)
      ? "a port of the system's choice cannot be granted"
      : named && isLiteral(host)
      ? "an address cannot be granted beside names"
      : undefined;
    if (why !== undefined) left.push(`net ${visible(host, 300)}: ${why}`);
    return why === undefined;
  }).map((host) => host.replace(/:443$/, ""));
  missing.run = [...new Set(asked.run.map((program) => basename(program)))].filter((program) => {
    // The server chose the words that it was taken from.
    const isOpen = ANYTHING.test(program) || !PROGRAM.test(program);
    if (isOpen) left.push(`run ${visible(program)}: it runs anything, with your rights`);
    return !isOpen && !has.run.includes(program);
  });
  const lists = Object.entries(missing).filter(([, list]) => list.length > 0);
  const variables = asked.env.filter((name) => !given.includes(name) && !NOISE.test(name));
  const env = dataIn(asked, { variables, home: options.home });
  return { missing: Object.fromEntries(lists), left: [...new Set(left)], variables, env };
}

/** Finds the variables that say where a server keeps what it wanted to write into its package. */
function dataIn(
  { read, write }: AskedFor,
  { variables, home }: { readonly variables: readonly string[]; readonly home: string },
): Lesson["env"] {
  const path = write.find((one) => isInside(join(home, "servers"), one));
  if (path === undefined) return {};
  // What is written beside a file takes its place at last.
  const file = read.filter((one) => path.startsWith(`${one}.`)).sort().at(-1) ??
    path.replace(/\.te?mp$/, "");
  const places = variables.filter((name) => PLACE.test(name));
  return Object.fromEntries(
    places.map((
      name,
    ) => [name, FOLDER.test(name) ? DATA_FOLDER : `${DATA_FOLDER}/${basename(file)}`]),
  );
}

/** Says why nobody is asked to grant a path. */
function refusal(path: string, options: TrialOptions): string | undefined {
  const { home } = options;
  if (isInside(join(home, "servers"), path)) {
    return `its package stays as it was installed: give it ${DATA_FOLDER} by a variable or option`;
  }
  if (isInside(home, path)) return "it belongs to PML";
  if (path.includes(",")) return "Deno cannot grant a path with a comma";
  return isTooWide(path, options) ? "it is too much: grant it by hand if you mean it" : undefined;
}

/** What is protected in the workspace is so beyond it, too: there lie the keys. */
function protectedName(path: string, { protection, home }: TrialOptions): string | undefined {
  if (isInside(home, path)) return undefined;
  const parts = path.split(sep);
  const names = [...protection.readProtected, ...protection.writeProtected];
  const found = names.find((name) => {
    const like = new RegExp(`^${name.split("*").map(RegExp.escape).join(".*")}$`, "i");
    const wide = name.split("/").length;
    return parts.some((_, at) => like.test(parts.slice(at, at + wide).join("/")));
  });
  return found && `${found} is protected`;
}

/** The home folder, what holds it or the workspace, and the top of the system. */
function isTooWide(path: string, { home, userHome, workspace }: TrialOptions): boolean {
  const isTop = dirname(dirname(path)) === dirname(path);
  return isTop || [home, userHome, workspace].some((folder) => isInside(path, folder));
}

/** Gives a folder in the place of several files in it. */
function folded(paths: readonly string[], options: TrialOptions): readonly string[] {
  const counts = Map.groupBy(paths, (path) => dirname(path));
  const some = paths.map((path) => {
    const folder = dirname(path);
    const isMany = (counts.get(folder)?.length ?? 0) > FOLDED;
    return isMany && !isTooWide(folder, options) ? folder : path;
  });
  const all = [...new Set(some)];
  return all.filter((path) => !all.some((other) => other !== path && isInside(other, path))).sort();
}

/** Writes a path as a person would: from the workspace, where that is near. */
function written(path: string, workspace: string): string {
  const near = relative(workspace, path);
  return /^(?:\.\.[\\/]){2}/.test(near) ? path : near;
}
