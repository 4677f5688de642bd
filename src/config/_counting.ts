/**
 * Decides what of the environment counts. Who wrote a folder may have written the client's file in
 * it, and so the environment that PML is started with: no home may come from there.
 *
 * @module
 */

import { dirname, resolve } from "node:path";
import { quoted } from "../core/json.ts";
import { isInside } from "../io/place.ts";
import { setByClients } from "./_client_files.ts";
import { type Environment, ignoring } from "./env.ts";
import { NETWORK_NAMES } from "./network_names.ts";
import { foldersAbove, markedProject, realPathOf } from "./workspace.ts";

const HOMES = ["HOME", "USERPROFILE"];
const NAMES = ["PML_HOME", "PML_TRUST", "PML_REGISTRIES", "PML_WORKSPACE", ...NETWORK_NAMES];

/** Where others may have written: the current folder and the workspace, and what is not theirs. */
interface Theirs {
  readonly places: readonly string[];
  /** Tells whether a folder is the person's, because it holds a home of theirs. */
  readonly isPersons: (folder: string) => boolean;
}

/** Gives the environment that counts for a process that was started in a folder. */
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
  const why = new Map([...setBy].map(([name, { path }]) => [name, setIn(path)]));
  // Where to work a client's file may say; where that is elsewhere, reading asks.
  why.delete("PML_WORKSPACE");
  const inside = environment.get("PML_HOME") ? whereInside(home, theirs) : undefined;
  if (inside !== undefined) why.set("PML_HOME", inside);
  const counting = ignoring(own, why);
  const by = setBy.get("PML_WORKSPACE");
  // Whoever moved a home may have moved the workspace round the other one.
  const isMoved = own.namedHome !== undefined || inside !== undefined;
  const around = isMoved && places.find((place) => isInside(place, realPathOf(counting.home)));
  // Who says where the PML home is needs no other home.
  const isSaid = environment.get("PML_HOME") && !why.has("PML_HOME");
  const homeless = (isSaid ? undefined : unknown) ??
    (around ? liesIn(counting.home, around) : whereInside(counting.home, theirs));
  return Object.freeze({
    ...counting,
    ...by !== undefined && !isInside(by.folder, root) && { sentBy: by.path },
    ...homeless !== undefined && { homeless },
  });
}

/** Gives the environment with the home of the account where the one that is set does not count. */
function withOwnHome(environment: Environment, places: readonly string[]): Environment {
  const { account, userHome } = environment;
  const own = account && realPathOf(account);
  if (own === realPathOf(userHome)) return environment;
  // Nobody clones into the top folder.
  const isPersons = (folder: string) =>
    dirname(folder) === folder ||
    own !== undefined && !places.includes(folder) && isInside(folder, own);
  const theirs = { places, isPersons };
  const [file] = setByClients(HOMES, foldersOf([...places, userHome], theirs)).values();
  const why = whereInside(userHome, theirs) ?? (file && setIn(file.path));
  if (why === undefined) return environment;
  const counting = ignoring(environment, new Map([["HOME", why]]));
  const homeless = `one that does not count (${why}), and the system knows no other`;
  return own === undefined ? { ...counting, homeless } : counting;
}

function foldersOf(paths: readonly string[], { isPersons }: Theirs): readonly string[] {
  return paths.flatMap(upwards).filter((folder) => !isPersons(folder));
}

/** Says in which folder of others a path lies, if in one: their project, or where they began. */
function whereInside(path: string, theirs: Theirs): string | undefined {
  const folder = theirs.places.map((place) => foldersOf([place], theirs))
    .map((folders) => markedProject(folders) ?? folders[0])
    .find((each) => each !== undefined && isInside(each, realPathOf(path)));
  return folder === undefined ? undefined : liesIn(path, folder);
}

function liesIn(path: string, folder: string): string {
  return `${quoted(path, 200)} lies in ${quoted(folder, 200)}, which others may have written`;
}

function setIn(file: string): string {
  return `${quoted(file, 200)} sets it, and a workspace cannot speak for the person`;
}

function upwards(folder: string): readonly string[] {
  const real = realPathOf(folder);
  return [real, ...foldersAbove(real)];
}
