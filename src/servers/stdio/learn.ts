/**
 * Tries a server: it runs confined to certain grants. Each access that it requested beyond them
 * becomes a part of the smallest grants that cover it, or a reason against a grant.
 *
 * @module
 */

import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { isLiteral } from "../../core/address.ts";
import { visible } from "../../core/json.ts";
import { isSteering } from "../../core/steering.ts";
import { keepFile } from "../../io/kept.ts";
import { infoAt, isInside, namesInFolder, realPathIfAny } from "../../io/place.ts";
import { readRegularText } from "../../io/regular_file.ts";
import type { ServerGrants } from "../../policy/grants.ts";
import { NO_COMMA } from "../../sandbox/net_flags.ts";
import { type AskedFor, askedFor } from "./_asked_for.ts";
import { confinedAccess, type Confinement, containedIn, starred } from "./_confined.ts";
import { canRunAnything } from "./_folder_code.ts";
import { DATA_FOLDER, dataFolder } from "./data_folder.ts";

/** The options of a trial. */
export interface TrialOptions extends Omit<Confinement, "folder" | "grants"> {
  readonly grants: ServerGrants;
  /** Additional variables of the server. They may name its data folder. */
  readonly env: Readonly<Record<string, string>>;
  readonly userHome: string;
  readonly cwd: string;
  /** The names of the variables that are set for the server. */
  readonly variableNames: readonly string[];
}

/** The result of a trial. */
export interface Lesson {
  /** The grants that would cover the denied accesses. */
  readonly missing: ServerGrants;
  /** Denied accesses that should not be granted, with the reason. */
  readonly left: readonly string[];
  /** Variables that it read and that are not set for it. */
  readonly variables: readonly string[];
  /**
   * Variables that move the data that it writes into its package to its data folder, with values.
   */
  readonly env: Readonly<Record<string, string>>;
  /** Data that the server has now, and that it would not see with these variables. */
  readonly data: readonly PresentData[];
  /**
   * Files and folders of the user's home that it tried to read and that exist. A server that works
   * without them may begin with empty data.
   */
  readonly unseen: readonly string[];
}

/** A file or folder with data of a server, and its place in the data folder. */
export interface PresentData {
  readonly from: string;
  readonly to: string;
  readonly bytes: number;
  /** When it was changed last, in milliseconds. */
  readonly changed: number;
}

type PathKind = "read" | "write";
type MutableGrants = { -readonly [K in keyof ServerGrants]: string[] };

/** If more files of one folder are needed, the folder is granted. */
const FOLDED = 3;
const PROGRAM = /^[\w.+-]+$/;
const HOST = /^(?:[\w.-]+|\[[\da-f:]+\]):\d+$/i;
/** Variables that node reads when it starts. */
const NOISE = /^(?:NODE_|DENO_|__|(?:PATH|PML_RUN|NO_COLOR|FORCE_COLOR|CI|DEBUG|TERM|COLORTERM)$)/;
const TEXTS = 200_000;
/** How many folders of the cache of npx are searched for data. */
const MOST_FOLDERS = 200;
/** Names of variables that contain a path for data, and of those that contain a folder. */
const PLACE = /(?:PATH|FILE|FILENAME|DIR|DIRECTORY|FOLDER|DB|DATABASE|STORAGE|STORE)$/i;
const SIMPLE = /^[\w.-]+$/;
const FOLDER = /(?:DIR|DIRECTORY|FOLDER)$/i;

/** One trial of a server. */
export class Trial implements Disposable {
  /** The name of the server. */
  readonly name: string;
  /** The grants that it runs with. */
  readonly grants: ServerGrants;
  /** Additional variables of the server. */
  readonly env: Readonly<Record<string, string>>;
  /** The file where Deno records the accesses of the server. */
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

  /** Adds output or an answer of the server. */
  hear(text: string): void {
    this.#texts = (this.#texts + text).slice(-TEXTS);
  }

  /** Returns the accesses that were denied until now. */
  lesson(): Lesson {
    const record = readRegularText(this.file);
    const requests = askedFor(record, { texts: this.#texts, cwd: this.#options.cwd });
    return lessonOf(requests, this.#options);
  }

  /** Returns the grants of the trial with `more` added. */
  with(more: ServerGrants): ServerGrants {
    return merged(this.grants, more);
  }

  /** Removes the record. */
  [Symbol.dispose](): void {
    Deno.removeSync(this.file);
  }
}

/** Returns two sets of grants joined. */
export function merged(grants: ServerGrants, more: ServerGrants): ServerGrants {
  const all = [...Object.entries(grants), ...Object.entries(more)];
  const kinds = Map.groupBy(all, ([kind]) => kind);
  const lists = [...kinds].map(([kind, some]) => [kind, some.flatMap(([, list]) => list)]);
  return Object.fromEntries(lists);
}

/** Returns the grants that would cover the requested accesses, beyond those that the server has. */
export function lessonOf(requests: AskedFor, options: TrialOptions): Lesson {
  const { workspace, variableNames } = options;
  const has = confinedAccess(options);
  const problems: string[] = requests.other.map((what) => `${what}: it cannot be granted`);
  const missing: MutableGrants = {};
  for (const kind of ["read", "write"] as const) {
    const own = kind === "read" ? [...has.read, join(options.home, "servers")] : has.write;
    const beyond = requests[kind].map((path) => realPathIfAny(path) ?? path).filter((path) => {
      const isGranted = own.some((root) => isInside(root, path));
      const why = kind === "read" && options.certificates.some((root) => isInside(root, path))
        ? undefined
        : protectedName(path, options) ??
          (isGranted ? undefined : refusal(path, options) ?? contained(path, { kind, options }));
      if (why !== undefined) problems.push(`${kind} ${visible(path, 300)}: ${why}`);
      return !isGranted && why === undefined;
    });
    missing[kind] = [...folded([...new Set(beyond)], { kind, options })];
  }
  fitWrites(missing, { has, options, left: problems });
  for (const kind of ["read", "write"] as const) {
    missing[kind] = missing[kind]?.map((path) => written(path, workspace)) ?? [];
  }
  const net = requests.net.filter((host) => !has.net.includes("*") && !has.net.includes(host));
  const named = [...net, ...has.net].some((host) => !isLiteral(host));
  missing.net = net.filter((host) => {
    const why = !HOST.test(host)
      ? "it is not a host with a port"
      : /:0$/.test(host)
      ? "port 0 cannot be granted"
      : named && isLiteral(host)
      ? "an IP address cannot be granted together with host names"
      : undefined;
    if (why !== undefined) problems.push(`net ${visible(host, 300)}: ${why}`);
    return why === undefined;
  }).map((host) => host.replace(/:443$/, ""));
  missing.run = [...new Set(requests.run.map((program) => basename(program)))].filter((program) => {
    // The server wrote the text that this name was taken from.
    const isOpen = canRunAnything(program) || !PROGRAM.test(program);
    if (isOpen) problems.push(`run ${visible(program)}: it can run any code with your rights`);
    return !isOpen && !has.run.includes(program);
  });
  const lists = Object.entries(missing).filter(([, list]) => list.length > 0);
  const variables = requests.env.filter((name) =>
    !variableNames.includes(name) && !NOISE.test(name)
  );
  const { env, data } = dataIn(requests, { variables, options });
  const unseen = (missing.read ?? []).map((path) => resolve(workspace, path))
    .filter((path) => isInside(options.userHome, path) && infoAt(path) !== undefined);
  return {
    missing: Object.fromEntries(lists),
    left: [...new Set(problems)],
    variables,
    env,
    data,
    unseen,
  };
}

/**
 * A write grant may contain no other grant: a path to read in it becomes the grant's own path, and a
 * grant that is there already is a reason against it.
 */
function fitWrites(
  missing: MutableGrants,
  { has, options, left }: {
    readonly has: Pick<ServerGrants, "read" | "write">;
    readonly options: TrialOptions;
    readonly left: string[];
  },
): void {
  const { workspace } = options;
  const others = [...has.read ?? [], ...has.write ?? []];
  missing.write = (missing.write ?? []).filter((path) => {
    const inner = containedIn(path, { workspace, others });
    if (inner !== undefined) {
      left.push(`write ${visible(path, 300)}: it contains the grant ${inner}`);
    }
    return inner === undefined;
  });
  const roots = [...missing.write, ...has.write ?? []].filter((root) => !isInside(workspace, root));
  const read = (missing.read ?? []).map((path) =>
    roots.find((root) => isInside(root, path)) ?? path
  );
  missing.read = [...new Set(read)];
}

/**
 * Finds the variables that say where a server keeps the data that it wanted to write into its
 * package, and the data that is there.
 */
function dataIn(
  { read, write }: AskedFor,
  { variables, options }: {
    readonly variables: readonly string[];
    readonly options: TrialOptions;
  },
): Pick<Lesson, "env" | "data"> {
  const { home } = options;
  const path = write.find((one) => isInside(join(home, "servers"), one));
  if (path === undefined) return { env: {}, data: [] };
  // A temporary file next to a file replaces that file later.
  const file = read.filter((one) => path.startsWith(`${one}.`)).sort().at(-1) ??
    path.replace(/\.te?mp$/, "");
  const places = variables.filter((name) => PLACE.test(name) && !isSteering(name));
  const title = SIMPLE.test(basename(file)) ? basename(file) : "data";
  const env = Object.fromEntries(
    places.map((
      name,
    ) => [name, FOLDER.test(name) ? DATA_FOLDER : `${DATA_FOLDER}/${title}`]),
  );
  if (places.length === 0) return { env, data: [] };
  const to = join(dataFolder(options), title);
  return { env, data: presentData(file, options).map((one) => ({ ...one, to })) };
}

/**
 * Finds a data file of a package: where PML installed it, and where npx of a client did. The newest
 * is the first.
 */
function presentData(
  file: string,
  { userHome }: Pick<TrialOptions, "userHome">,
): readonly Omit<PresentData, "to">[] {
  const [, inPackage] = /[\\/]node_modules[\\/](.+)$/.exec(file) ?? [];
  const cache = join(userHome, ".npm", "_npx");
  const folders = infoAt(cache)?.isDirectory ? namesInFolder(cache).slice(0, MOST_FOLDERS) : [];
  const others = inPackage === undefined
    ? []
    : folders.map((name) => join(cache, name, "node_modules", inPackage));
  return [file, ...others].flatMap((from) => {
    const info = infoAt(from);
    if (info === undefined || !info.isFile || info.size === 0) return [];
    return [{ from, bytes: info.size, changed: info.mtime?.getTime() ?? 0 }];
  }).sort((one, other) => other.changed - one.changed);
}

/** Returns why a path should not be granted; undefined if it can be. */
function refusal(path: string, options: TrialOptions): string | undefined {
  const { home } = options;
  if (isInside(join(home, "servers"), path)) {
    return `its package must not change: set a variable or option to ${DATA_FOLDER}`;
  }
  if (isInside(home, path)) return "it belongs to PML";
  if (path.includes(",")) return NO_COMMA;
  if (visible(path, Infinity) !== path) return "its name contains hidden characters";
  const info = infoAt(path);
  const isPlain = info === undefined || info.isFile || info.isDirectory;
  if (!isPlain || isInside("/proc", path)) return "it is neither a file nor a folder of a disk";
  return isTooWide(path, options) ? "it is too wide: grant it by hand if you want that" : undefined;
}

/**
 * Names that are protected in the workspace are protected everywhere, because keys are in such
 * files.
 */
function protectedName(path: string, { protection, home }: TrialOptions): string | undefined {
  if (isInside(home, path)) return undefined;
  const parts = path.split(sep);
  const names = [...protection.readProtected, ...protection.writeProtected];
  const match = names.find((name) => {
    const like = starred(name);
    const wide = name.split("/").length;
    return parts.some((_, at) => like.test(parts.slice(at, at + wide).join("/")));
  });
  return match && `${match} is protected`;
}

/**
 * Returns the protected name that a folder contains, as a reason against a grant. Of a name with
 * several parts, the last ones need not exist yet.
 */
function contained(
  path: string,
  { kind, options }: { readonly kind: PathKind; readonly options: TrialOptions },
): string | undefined {
  const { readProtected, writeProtected } = options.protection;
  const names = kind === "read" ? readProtected : [...readProtected, ...writeProtected];
  const parts = path.split(sep);
  const entries = entriesOf(path);
  const match = names.find((name) => {
    const own = name.split("/");
    const isAbove = own.slice(1).some((_, at) =>
      starred(own.slice(0, at + 1).join("/")).test(parts.slice(-at - 1).join("/"))
    );
    return isAbove || own.length === 1 && entries.some((entry) => starred(name).test(entry));
  });
  return match && `it contains ${match}, which is protected`;
}

/** Returns the names in a folder; none if it is no folder, or cannot be read. */
function entriesOf(path: string): readonly string[] {
  try {
    return infoAt(path)?.isDirectory ? namesInFolder(path) : [];
  } catch {
    return [];
  }
}

/**
 * Returns whether a path is too wide: the home folder, a folder that contains it or the workspace,
 * or a top folder of the system.
 */
function isTooWide(path: string, { home, userHome, workspace }: TrialOptions): boolean {
  const isTop = dirname(dirname(path)) === dirname(path);
  return isTop || [home, userHome, workspace].some((folder) => isInside(path, folder));
}

/** Replaces several files of one folder by the folder. */
function folded(
  paths: readonly string[],
  { kind, options }: { readonly kind: PathKind; readonly options: TrialOptions },
): readonly string[] {
  const counts = Map.groupBy(paths, (path) => dirname(path));
  const some = paths.map((path) => {
    const folder = dirname(path);
    const isMany = (counts.get(folder)?.length ?? 0) > FOLDED;
    const isFolded = isMany && !isTooWide(folder, options) &&
      contained(folder, { kind, options }) === undefined;
    return isFolded ? folder : path;
  });
  const all = [...new Set(some)];
  return all.filter((path) => !all.some((other) => other !== path && isInside(other, path))).sort();
}

/** Returns a path as a user would write it: relative to the workspace if it is near. */
function written(path: string, workspace: string): string {
  const near = relative(workspace, path);
  // `.pml.json` is shared between systems.
  return /^(?:\.\.[\\/]){2}/.test(near) || isAbsolute(near) ? path : near.replaceAll(sep, "/");
}
