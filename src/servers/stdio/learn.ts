/**
 * Tries a server: the server runs confined to certain grants. For each access that it requested
 * beyond the grants, finds a small grant that would allow the access, or a reason against a grant.
 *
 * @module
 */

import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { isLiteral } from "../../core/address.ts";
import { visible } from "../../core/json.ts";
import { isSteering } from "../../core/steering.ts";
import { writeFileWhole } from "../../io/cache_files.ts";
import { infoAt, isInside, namesInFolder, realPathIfAny } from "../../io/path_info.ts";
import { readRegularText } from "../../io/regular_file.ts";
import type { ServerGrants } from "../../policy/grants.ts";
import { NO_COMMA } from "../../sandbox/net_flags.ts";
import { readRequestedAccess, type RequestedAccess } from "./_requested_access.ts";
import {
  confinedAccess,
  type Confinement,
  findInnerPath,
  starPattern,
} from "./_confined_access.ts";
import { canRunAnything } from "./_folder_code.ts";
import { DATA_FOLDER, dataFolder } from "./data_folder.ts";

/** The options of a trial, which also serve to explain a denied access outside a trial. */
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
  /** Variables that the server read and that are not set for it. */
  readonly variables: readonly string[];
  /**
   * Variables, with values, that make the server write its data into its data folder instead of its
   * package.
   */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Like `env`, but for a server that wrote nothing and only searched for data in its package. Its
   * tools that write cannot work without these variables.
   */
  readonly dataEnv: Readonly<Record<string, string>>;
  /** The server's existing data, which it would no longer find with the variables of `env` or `dataEnv`. */
  readonly data: readonly PresentData[];
  /**
   * Existing files and folders in the user's home folder that the server tried to read, and that
   * `missing` would let it read. Without them, the server may begin with empty data.
   */
  readonly unseen: readonly string[];
}

/** An existing file with data of a server (`from`), and its new path in the data folder (`to`). */
export interface PresentData {
  readonly from: string;
  readonly to: string;
  readonly bytes: number;
  /** The time of the last change, in milliseconds since 1970. */
  readonly changed: number;
}

type PathKind = "read" | "write";
type MutableGrants = { -readonly [K in keyof ServerGrants]: string[] };

/**
 * The maximum number of files to grant in a folder. If more are needed, the folder is granted, unless
 * it is too wide or contains a protected name.
 */
const FILES_OF_FOLDER_MAX = 3;
/** Matches the name of a program that can be granted. */
const PROGRAM = /^[\w.+-]+$/;
/** Matches a host with a port. */
const HOST = /^(?:[\w.-]+|\[[\da-f:]+\]):\d+$/i;
/** Variables that Node, Deno and common libraries read by themselves. */
const RUNTIME_VARIABLES =
  /^(?:NODE_|DENO_|__|(?:PATH|PML_RUN|NO_COLOR|FORCE_COLOR|CI|DEBUG|TERM|COLORTERM)$)/;
/** The maximum length of the server's output that is kept, in characters: the end is kept. */
const OUTPUT_MAX = 200_000;
/** The maximum number of folders in npx's cache that are searched for data. */
const NPX_FOLDERS_MAX = 200;
/** Matches names of variables that usually contain the path of a file or folder. */
const PATH_VARIABLE = /(?:PATH|FILE|FILENAME|DIR|DIRECTORY|FOLDER|DB|DATABASE|STORAGE|STORE)$/i;
/** Matches names of files that stay the same in the data folder. */
const SIMPLE_NAME = /^[\w.-]+$/;
/** Matches names of files in a package that are not data. */
const PACKAGE_FILE =
  /\.(?:[cm]?[jt]sx?|node|wasm|map|md)$|^(?:package|tsconfig|deno)(?:-lock)?\.jsonc?$|^\./;
/** Matches names of variables that usually contain the path of a folder. */
const FOLDER_VARIABLE = /(?:DIR|DIRECTORY|FOLDER)$/i;

/** One trial of a server. */
export class Trial implements Disposable {
  /** The name of the server. */
  readonly name: string;
  /** The grants with which the server runs. */
  readonly grants: ServerGrants;
  /** Additional variables of the server. */
  readonly env: Readonly<Record<string, string>>;
  /** The file where Deno records the accesses of the server. */
  readonly file: string;
  readonly #options: TrialOptions;
  #texts = "";

  /** Creates an empty record. */
  constructor(options: TrialOptions) {
    this.#options = options;
    this.name = options.name;
    this.grants = options.grants;
    this.env = options.env;
    this.file = join(options.home, "servers", `trial-${crypto.randomUUID()}.jsonl`);
    writeFileWhole(this.file, "");
  }

  /** Whether the system enforces the grants, or Deno alone can: none names a program or a path to write. */
  get isConfined(): boolean {
    const { write = [], run = [] } = this.grants;
    return this.#options.hasSystemLayer || write.length + run.length === 0;
  }

  /** Adds a text of the server, in which denied programs are found: its output, or an answer. */
  addOutput(text: string): void {
    this.#texts = (this.#texts + text).slice(-OUTPUT_MAX);
  }

  /** Returns the accesses that were denied until now. */
  readLesson(): Lesson {
    const record = readRegularText(this.file);
    const requests = readRequestedAccess(record, { texts: this.#texts, cwd: this.#options.cwd });
    return toLesson(requests, this.#options);
  }

  /** Returns the grants of the trial with `more` added. */
  withGrants(more: ServerGrants): ServerGrants {
    return mergeGrants(this.grants, more);
  }

  /** Removes the record. */
  [Symbol.dispose](): void {
    Deno.removeSync(this.file);
  }
}

/** Returns one set with the grants of both sets. */
export function mergeGrants(grants: ServerGrants, more: ServerGrants): ServerGrants {
  const all = [...Object.entries(grants), ...Object.entries(more)];
  const kinds = Map.groupBy(all, ([kind]) => kind);
  const lists = [...kinds].map(([kind, some]) => [kind, some.flatMap(([, list]) => list)]);
  return Object.fromEntries(lists);
}

/** Returns the grants that the server lacks for the requested accesses. */
export function toLesson(requests: RequestedAccess, options: TrialOptions): Lesson {
  const { workspace, variableNames } = options;
  const has = confinedAccess(options);
  const problems: string[] = requests.other.map((what) => `${what}: it cannot be granted`);
  const missing: MutableGrants = {};
  for (const kind of ["read", "write"] as const) {
    const roots = kind === "read" ? [...has.read, join(options.home, "servers")] : has.write;
    const beyond = requests[kind].map((path) => realPathIfAny(path) ?? path).filter((path) => {
      const isGranted = roots.some((root) => isInside(root, path));
      const why = kind === "read" && options.certificates.some((root) => isInside(root, path))
        ? undefined
        : protectedName(path, options) ??
          (isGranted
            ? undefined
            : refusal(path, options) ?? containedProtection(path, { kind, options }));
      if (why !== undefined) problems.push(`${kind} ${visible(path, 300)}: ${why}`);
      return !isGranted && why === undefined;
    });
    missing[kind] = [...foldPaths([...new Set(beyond)], { kind, options })];
  }
  fitWrites(missing, { has, options, problems });
  for (const kind of ["read", "write"] as const) {
    missing[kind] = missing[kind]?.map((path) => toWrittenPath(path, workspace)) ?? [];
  }
  const net = requests.net.filter((host) => !has.net.includes("*") && !has.net.includes(host));
  const hasNames = [...net, ...has.net].some((host) => !isLiteral(host));
  missing.net = net.filter((host) => {
    const why = whyNoHost(host, hasNames);
    if (why !== undefined) problems.push(`net ${visible(host, 300)}: ${why}`);
    return why === undefined;
  }).map((host) => host.replace(/:443$/, ""));
  missing.run = [...new Set(requests.run.map((program) => basename(program)))].filter((program) => {
    const why = whyNoProgram(program);
    if (why !== undefined) problems.push(`run ${visible(program)}: ${why}`);
    return why === undefined && !has.run.includes(program);
  });
  const lists = Object.entries(missing).filter(([, list]) => list.length > 0);
  const variables = requests.env.filter((name) =>
    !variableNames.includes(name) && !RUNTIME_VARIABLES.test(name)
  );
  const { env, dataEnv, data } = findDataSettings(requests, { variables, options });
  const unseen = (missing.read ?? []).map((path) => resolve(workspace, path))
    .filter((path) => isInside(options.userHome, path) && infoAt(path) !== undefined);
  return {
    missing: Object.fromEntries(lists),
    left: [...new Set(problems)],
    variables,
    env,
    dataEnv,
    data,
    unseen,
  };
}

/**
 * Returns why a host cannot be granted; undefined if it can be granted. `hasNames` says whether there
 * are grants of host names.
 */
function whyNoHost(host: string, hasNames: boolean): string | undefined {
  if (!HOST.test(host)) return "it is not a host with a port";
  if (/:0$/.test(host)) return "port 0 cannot be granted";
  return hasNames && isLiteral(host)
    ? "an IP address cannot be granted together with host names"
    : undefined;
}

/** Returns why a program should not be granted; undefined if it can be granted. */
function whyNoProgram(name: string): string | undefined {
  // A text of the server contained the name, so the name may be any text.
  if (!PROGRAM.test(name)) return "its name has a character that no grant can have";
  return canRunAnything(name) ? "it can run any code with your rights" : undefined;
}

/**
 * Makes the missing grants valid: a path to write must not contain another grant. If it contains a
 * grant that the server already has, the path to write is left out. If it contains a path that the
 * server lacks for reading, the grant to read is widened to the path to write.
 */
function fitWrites(
  missing: MutableGrants,
  { has, options, problems }: {
    readonly has: Pick<ServerGrants, "read" | "write">;
    readonly options: TrialOptions;
    readonly problems: string[];
  },
): void {
  const { workspace } = options;
  const others = [...has.read ?? [], ...has.write ?? []];
  missing.write = (missing.write ?? []).filter((path) => {
    const inner = findInnerPath(path, { workspace, others });
    if (inner !== undefined) {
      problems.push(`write ${visible(path, 300)}: it contains the grant ${inner}`);
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
 * A server may try to write or read data in its package. Finds the variables that set the path of
 * this data, and the data that already exists.
 */
function findDataSettings(
  { read, write }: RequestedAccess,
  { variables, options }: {
    readonly variables: readonly string[];
    readonly options: TrialOptions;
  },
): Pick<Lesson, "env" | "dataEnv" | "data"> {
  const isInPackage = (path: string) => isInside(join(options.home, "servers"), path);
  const pathVariables = variables.filter((name) => PATH_VARIABLE.test(name) && !isSteering(name));
  const writtenPath = write.find(isInPackage);
  const file = writtenPath === undefined
    ? read.filter((one) => isInPackage(one) && isData(one, pathVariables)).sort().at(-1)
    // The server may write a temporary file, and later rename it to a file that it also reads.
    : read.filter((one) => writtenPath.startsWith(`${one}.`)).sort().at(-1) ??
      writtenPath.replace(/\.te?mp$/, "");
  if (file === undefined) return { env: {}, dataEnv: {}, data: [] };
  const fileName = SIMPLE_NAME.test(basename(file)) ? basename(file) : "data";
  const valueOf = (name: string) =>
    FOLDER_VARIABLE.test(name) ? DATA_FOLDER : `${DATA_FOLDER}/${fileName}`;
  const values = Object.fromEntries(pathVariables.map((name) => [name, valueOf(name)]));
  const [env, dataEnv] = writtenPath === undefined ? [{}, values] : [values, {}];
  if (pathVariables.length === 0) return { env, dataEnv, data: [] };
  const to = join(dataFolder(options), fileName);
  return { env, dataEnv, data: presentData(file, options).map((one) => ({ ...one, to })) };
}

/**
 * Returns whether a file in a package, which the server tried to read, may be the user's data: the
 * file does not exist yet, or a word of the name of a variable is its name without the ending. Other
 * files belong to the package, and so do files of code and files without an ending.
 */
function isData(path: string, pathVariables: readonly string[]): boolean {
  const name = basename(path).toLowerCase();
  if (PACKAGE_FILE.test(name) || !name.includes(".")) return false;
  const [stem = ""] = name.split(".");
  return infoAt(path) === undefined ||
    pathVariables.some((name) => name.toLowerCase().split("_").includes(stem));
}

/**
 * Finds a data file of a package: in the package as PML installed it, and in the copies that npx
 * installed, which a client may have used before. Returns the newest file first.
 */
function presentData(
  file: string,
  { userHome }: Pick<TrialOptions, "userHome">,
): readonly Omit<PresentData, "to">[] {
  const [, inPackage] = /[\\/]node_modules[\\/](.+)$/.exec(file) ?? [];
  const cache = join(userHome, ".npm", "_npx");
  const folders = infoAt(cache)?.isDirectory ? namesInFolder(cache).slice(0, NPX_FOLDERS_MAX) : [];
  const others = inPackage === undefined
    ? []
    : folders.map((name) => join(cache, name, "node_modules", inPackage));
  return [file, ...others].flatMap((from) => {
    const info = infoAt(from);
    if (info === undefined || !info.isFile || info.size === 0) return [];
    return [{ from, bytes: info.size, changed: info.mtime?.getTime() ?? 0 }];
  }).sort((one, other) => other.changed - one.changed);
}

/** Returns why a path should not be granted; undefined if it can be granted. */
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
 * Returns a reason against a grant if a part of a path has a protected name. Names that are
 * protected in the workspace are protected everywhere, because such files contain keys, or settings
 * that run code.
 */
function protectedName(path: string, { protection, home }: TrialOptions): string | undefined {
  if (isInside(home, path)) return undefined;
  const parts = path.split(sep);
  const names = [...protection.readProtected, ...protection.writeProtected];
  const match = names.find((name) => {
    const pattern = starPattern(name);
    const count = name.split("/").length;
    return parts.some((_, at) => pattern.test(parts.slice(at, at + count).join("/")));
  });
  return match && `${match} is protected`;
}

/**
 * Returns a reason against a grant of a folder: the folder has an entry with a protected name, or
 * the folder is the first part of a name such as `.git/config`, even if its last part does not
 * exist yet. Deeper folders are not searched.
 */
function containedProtection(
  path: string,
  { kind, options }: { readonly kind: PathKind; readonly options: TrialOptions },
): string | undefined {
  const { readProtected, writeProtected } = options.protection;
  const names = kind === "read" ? readProtected : [...readProtected, ...writeProtected];
  const parts = path.split(sep);
  const entries = entriesOf(path);
  const match = names.find((name) => {
    const nameParts = name.split("/");
    const isAbove = nameParts.slice(1).some((_, at) =>
      starPattern(nameParts.slice(0, at + 1).join("/")).test(parts.slice(-at - 1).join("/"))
    );
    return isAbove ||
      nameParts.length === 1 && entries.some((entry) => starPattern(name).test(entry));
  });
  return match && `it contains ${match}, which is protected`;
}

/** Returns the names in a folder; none if the path is not a folder, or cannot be read. */
function entriesOf(path: string): readonly string[] {
  try {
    return infoAt(path)?.isDirectory ? namesInFolder(path) : [];
  } catch {
    return [];
  }
}

/**
 * Returns whether a grant of a path would be too wide: the path is a top folder of the system, or
 * it is or contains the user's home folder, the PML home or the workspace.
 */
function isTooWide(path: string, { home, userHome, workspace }: TrialOptions): boolean {
  const isTop = dirname(dirname(path)) === dirname(path);
  return isTop || [home, userHome, workspace].some((folder) => isInside(path, folder));
}

/**
 * If a folder has more than `FILES_OF_FOLDER_MAX` of the paths, replaces them by the folder, unless
 * the folder is too wide or contains a protected name.
 */
function foldPaths(
  paths: readonly string[],
  { kind, options }: { readonly kind: PathKind; readonly options: TrialOptions },
): readonly string[] {
  const counts = Map.groupBy(paths, (path) => dirname(path));
  const foldedPaths = paths.map((path) => {
    const folder = dirname(path);
    const isMany = (counts.get(folder)?.length ?? 0) > FILES_OF_FOLDER_MAX;
    const isFolded = isMany && !isTooWide(folder, options) &&
      containedProtection(folder, { kind, options }) === undefined;
    return isFolded ? folder : path;
  });
  const all = [...new Set(foldedPaths)];
  return all.filter((path) => !all.some((other) => other !== path && isInside(other, path))).sort();
}

/** Returns a path as a user would write it: relative, unless it is far from the workspace. */
function toWrittenPath(path: string, workspace: string): string {
  const near = relative(workspace, path);
  // `.pml.json` is shared between operating systems, so it has slashes.
  return /^(?:\.\.[\\/]){2}/.test(near) || isAbsolute(near) ? path : near.replaceAll(sep, "/");
}
