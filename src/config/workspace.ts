/**
 * Finds the workspace: the folder that tools may touch, and the files that set its rules.
 *
 * @module
 */

import { dirname, join, resolve } from "node:path";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { PATHS } from "../core/paths.ts";
import { isGone, isInside, realPathOf } from "../io/path_info.ts";
import { invalidConfigError } from "./_problem.ts";
import type { Environment } from "./env.ts";

/** The name of the workspace file. */
export const FILE_NAME = ".pml.json";

/** The reason why a folder is the workspace: the file or variable that marks it. */
export type FoundBy =
  | "PML_WORKSPACE"
  | ".pml.json"
  | ".git"
  | "deno.json"
  | "package.json"
  | "cwd"
  | "default";

/** The folder that tools may touch. */
export interface Workspace {
  /** The real path of the folder. */
  readonly root: string;
  readonly found: FoundBy;
  /** The path of its `.pml.json`, if it exists. */
  readonly file: string | undefined;
  /** Other `.pml.json` files up to the root of the repository, the nearest first. */
  readonly parents: readonly string[];
  readonly warning: string | undefined;
}

type WorkspacePlace = Pick<Workspace, "root" | "found">;

/**
 * The groups of marks, in order. The first group with a match in any folder wins, and within it the
 * nearest folder.
 */
const MARKERS: readonly (readonly FoundBy[])[] = [[".pml.json"], [".git"], [
  "deno.json",
  "package.json",
]];

/**
 * Finds the workspace of a process that was started in `cwd`. Throws CONFIG_INVALID if there is
 * none.
 */
export function findWorkspace(
  environment: Environment,
  cwd: string,
): Workspace {
  const here = realFolder(cwd, "the current folder");
  const path = environment.workspace;
  const place = path === undefined
    ? detect(here, { homes: homesOf(environment), namedHome: namedHomeOf(environment) })
    : { root: realFolder(resolve(here, path), "PML_WORKSPACE"), found: "PML_WORKSPACE" } as const;
  const { root, found } = place;
  const warning = found === "cwd"
    ? `No workspace found above ${quoted(root, 200)}: the current folder is used. ` +
      "Run `pml init` there, or set PML_WORKSPACE to your project"
    : undefined;
  return { root, found, ...rulingFiles(environment, place), warning };
}

/** Finds the `.pml.json` of a workspace, and the files above it whose deny and ask rules apply. */
export function rulingFiles(
  environment: Environment,
  place: WorkspacePlace,
): Pick<Workspace, "file" | "parents"> {
  const [own, ...above] = rulingFolders(environment, place).map((each) => join(each, FILE_NAME));
  return { file: own && pathExists(own) ? own : undefined, parents: above.filter(pathExists) };
}

/**
 * Returns the folders in which a `.pml.json` with rules exists or may appear: the root first, then
 * folders above it.
 */
export function rulingFolders(
  environment: Environment,
  { root, found }: WorkspacePlace,
): readonly string[] {
  const homes = homesOf(environment);
  const above = foldersAbove(root);
  const repository = [root, ...above].find((folder) => pathExists(join(folder, ".git")));
  // A `.pml.json` above the user's home does not make a folder the workspace, but its deny and ask
  // rules still apply.
  const includesHomes = found !== ".pml.json" && found !== "PML_WORKSPACE";
  const canHaveRules = (folder: string) =>
    (repository !== undefined && isInside(repository, folder)) ||
    (includesHomes && homes.some((home) => isInside(folder, home)));
  return [root, ...above.filter(canHaveRules)];
}

/** Returns the folders above a folder, the nearest first. */
export function foldersAbove(folder: string): string[] {
  const above = dirname(folder);
  return above === folder ? [] : [above, ...foldersAbove(above)];
}

/** Returns the real paths of the user's home folders. */
export function homesOf({ userHome, account = userHome }: Environment): readonly string[] {
  return [userHome, account].map(realPathOf);
}

/** Returns the home folder that the variables name, even if PML does not use it. */
export function namedHomeOf({ userHome, namedHome = userHome }: Environment): string {
  return realPathOf(namedHome);
}

/**
 * Returns the nearest folder that contains a repository, or else the nearest with another mark of a
 * project; undefined if there is none. `folders` begins with the nearest.
 */
export function findProject(folders: readonly string[]): string | undefined {
  return findMarked([[".git"], ...MARKERS], folders)?.root;
}

function detect(
  here: string,
  { homes, namedHome }: { readonly homes: readonly string[]; readonly namedHome: string },
): WorkspacePlace {
  // A file in the home folder, such as a stray `package.json`, must not make the whole home the
  // workspace.
  const candidates = here === namedHome
    ? []
    : [here, ...foldersAbove(here)].filter((folder) =>
      folder !== namedHome && !homes.some((home) => isInside(folder, home))
    );
  const place = findMarked(MARKERS, candidates);
  if (place !== undefined) return place;
  if (candidates.length > 0) return { root: here, found: "cwd" };
  throw noWorkspace(here, { file: "the current folder", wanted: "one below the home folder" });
}

function findMarked(
  groups: readonly (readonly FoundBy[])[],
  folders: readonly string[],
): WorkspacePlace | undefined {
  for (const group of groups) {
    for (const root of folders) {
      const file = group.find((name) => pathExists(join(root, name)));
      if (file !== undefined) return { root, found: file };
    }
  }
  return undefined;
}

function realFolder(path: string, file: string): string {
  const wanted = "a folder that can be opened";
  try {
    const real = Deno.realPathSync(path);
    if (PATHS.plain(real) === undefined) {
      throw noWorkspace(real, { file, wanted: "a folder on a drive of this machine" });
    }
    if (Deno.statSync(real).isDirectory) return real;
  } catch (cause) {
    throw cause instanceof PmlError ? cause : noWorkspace(path, { file, wanted, cause });
  }
  throw noWorkspace(path, { file, wanted });
}

function noWorkspace(
  path: string,
  details: { readonly file: string; readonly wanted: string; readonly cause?: unknown },
): PmlError {
  const { file, wanted, cause } = details;
  return invalidConfigError([{ file, key: "", found: quoted(path, 200), wanted }], {
    cause,
    hint: "Start PML in a project, or set PML_WORKSPACE to your project",
  });
}

/** Returns whether there is anything at a path. */
export function pathExists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    // A path that cannot be checked may contain rules, so it counts as existing. Reading it will
    // report why.
    return !isGone(error);
  }
}
