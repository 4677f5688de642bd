/**
 * Decides which environment variables PML uses. The author of a folder may also have written the
 * client's file in it, and so the environment of PML. Such a file must not set the home of PML.
 *
 * @module
 */

import { dirname, resolve } from "node:path";
import { quoted } from "../core/json.ts";
import { isInside } from "../io/place.ts";
import { type ClientSetting, setByClients } from "./_client_files.ts";
import { type Environment, HOMES, ignoring } from "./env.ts";
import { CONTAINER_NAMES, NETWORK_NAMES } from "./network_names.ts";
import { foldersAbove, markedProject, realPathOf } from "./workspace.ts";

const NAMES = [
  ...["PML_HOME", "PML_TRUST", "PML_REGISTRIES", "PML_WORKSPACE"],
  ...NETWORK_NAMES,
  ...CONTAINER_NAMES,
];

/**
 * The folders that others may have written: the current folder, the workspace, and those above
 * them.
 */
interface OthersFolders {
  readonly places: readonly string[];
  /**
   * Returns whether a folder belongs to the user, because it contains a home folder of theirs.
   */
  readonly isPersons: (folder: string) => boolean;
}

/** Returns the environment that PML uses in a process that was started in `cwd`. */
export function countingEnvironment(environment: Environment, cwd: string): Environment {
  const here = realPathOf(cwd);
  const { workspace } = environment;
  const root = workspace === undefined ? here : realPathOf(resolve(here, workspace));
  const places = [root, here];
  const { homeless: unknown, ...own } = withOwnHome(environment, places);
  const { home, userHome, account = userHome } = own;
  const homes = unknown === undefined ? [userHome, account].map(realPathOf) : [];
  const theirs = { places, isPersons: (each: string) => homes.some((one) => isInside(each, one)) };
  const set = NAMES.filter((name) => environment.get(name));
  const setBy = setByClients(set, [root, ...foldersOf([...places, home], theirs)]);
  const why = new Map([...setBy].map(([name, by]) => [name, setIn(by)]));
  // A client's file may name the workspace. If the workspace is outside of the file's folder, reading
  // asks first.
  why.delete("PML_WORKSPACE");
  const inside = environment.get("PML_HOME") ? whereInside(home, theirs) : undefined;
  // guard: home-outside
  if (inside !== undefined) why.set("PML_HOME", inside);
  const counting = ignoring(own, why);
  const by = setBy.get("PML_WORKSPACE");
  // An attacker who replaced the home may have chosen the workspace so that it contains the other
  // home.
  const isMoved = own.namedHome !== undefined || inside !== undefined;
  const around = isMoved && places.find((place) => isInside(place, realPathOf(counting.home)));
  // If the PML home is named, no other home is needed.
  const isSaid = environment.get("PML_HOME") && !why.has("PML_HOME");
  const homeless = (isSaid ? undefined : unknown) ??
    (around ? liesIn(counting.home, around) : whereInside(counting.home, theirs));
  return Object.freeze({
    ...counting,
    ...by !== undefined && !isInside(by.folder, root) && { sentBy: by.said },
    ...homeless !== undefined && { homeless },
  });
}

/**
 * Returns the environment with the account's home folder, if the home that is set may not be used.
 */
function withOwnHome(environment: Environment, places: readonly string[]): Environment {
  const { account, userHome } = environment;
  const own = account && realPathOf(account);
  if (own === realPathOf(userHome)) return environment;
  // Other users cannot have written the top folder.
  const isPersons = (folder: string) =>
    dirname(folder) === folder ||
    own !== undefined && !places.includes(folder) && isInside(folder, own);
  const theirs = { places, isPersons };
  const [file] = setByClients(HOMES, foldersOf([...places, userHome], theirs)).values();
  const why = whereInside(userHome, theirs) ?? (file && setIn(file));
  if (why === undefined) return environment;
  const counting = ignoring(environment, new Map([["HOME", why]]));
  const homeless = `one that does not count (${why}), and the system knows no other`;
  return own === undefined ? { ...counting, homeless } : counting;
}

function foldersOf(paths: readonly string[], { isPersons }: OthersFolders): readonly string[] {
  return paths.flatMap(upwards).filter((folder) => !isPersons(folder));
}

/**
 * Returns a text that names the folder of another owner that contains a path: a project, or the
 * folder where PML was started; undefined if no such folder contains it.
 */
function whereInside(path: string, theirs: OthersFolders): string | undefined {
  const folder = theirs.places.map((place) => foldersOf([place], theirs))
    .map((folders) => markedProject(folders) ?? folders[0])
    .find((each) => each !== undefined && isInside(each, realPathOf(path)));
  return folder === undefined ? undefined : liesIn(path, folder);
}

function liesIn(path: string, folder: string): string {
  if (path === folder) return `${quoted(path, 200)} is a folder that others may have written`;
  return `${quoted(path, 200)} lies in ${quoted(folder, 200)}, which others may have written`;
}

function setIn({ said: problem }: ClientSetting): string {
  return `${problem}, and a workspace cannot decide for the user`;
}

function upwards(folder: string): readonly string[] {
  const real = realPathOf(folder);
  return [real, ...foldersAbove(real)];
}
