/**
 * Decides which environment variables PML uses. A client may start PML with variables from a file
 * in a folder that another person wrote. Such a file must not set the home of PML.
 *
 * @module
 */

import { dirname, resolve } from "node:path";
import { quoted } from "../core/json.ts";
import { isInside, realPathOf } from "../io/path_info.ts";
import { type ClientSetting, findClientSettings } from "./_client_files.ts";
import { type Environment, HOMES, withoutVariables } from "./env.ts";
import { CONTAINER_NAMES, NETWORK_NAMES, TRACE_NAMES } from "./network_names.ts";
import { findProject, foldersAbove } from "./workspace.ts";

const NAMES = [
  ...["PML_HOME", "PML_TRUST", "PML_REGISTRIES", "PML_WORKSPACE"],
  ...NETWORK_NAMES,
  ...CONTAINER_NAMES,
  ...TRACE_NAMES,
];

/**
 * The folders that another person may have written: the current folder, the workspace, and the
 * folders above them, without the folders of the user.
 */
interface UntrustedFolders {
  readonly places: readonly string[];
  /**
   * Returns whether a folder belongs to the user, because it contains a home folder of the user.
   */
  readonly isOfUser: (folder: string) => boolean;
}

/** Returns the environment that PML uses in a process that was started in `cwd`. */
export function usedEnvironment(environment: Environment, cwd: string): Environment {
  const here = realPathOf(cwd);
  const { workspace } = environment;
  const root = workspace === undefined ? here : realPathOf(resolve(here, workspace));
  const places = [root, here];
  const { homeProblem: accountProblem, ...own } = withOwnHome(environment, places);
  const { home, userHome, account = userHome } = own;
  const homes = accountProblem === undefined ? [userHome, account].map(realPathOf) : [];
  const untrusted = {
    places,
    isOfUser: (folder: string) => homes.some((home) => isInside(folder, home)),
  };
  const setNames = NAMES.filter((name) => environment.get(name));
  const settings = findClientSettings(setNames, [
    root,
    ...foldersOf([...places, home], untrusted),
  ]);
  const reasons = new Map([...settings].map(([name, setting]) => [name, settingText(setting)]));
  // A client's file may name the workspace. If the workspace is outside of the file's folder, the
  // user is asked before a tool reads in it.
  reasons.delete("PML_WORKSPACE");
  const whyHomeUntrusted = environment.get("PML_HOME") ? whyUntrusted(home, untrusted) : undefined;
  // guard: home-outside
  if (whyHomeUntrusted !== undefined) reasons.set("PML_HOME", whyHomeUntrusted);
  const used = withoutVariables(own, reasons);
  const workspaceSetting = settings.get("PML_WORKSPACE");
  // An attacker who set a home that PML ignores may also have chosen the workspace so that it
  // contains the home that PML uses instead.
  const isHomeReplaced = own.namedHome !== undefined || whyHomeUntrusted !== undefined;
  const placeAroundHome = isHomeReplaced &&
    places.find((place) => isInside(place, realPathOf(used.home)));
  // If PML_HOME names the PML home, the user's home folder is not needed.
  const isHomeNamed = environment.get("PML_HOME") && !reasons.has("PML_HOME");
  const homeProblem = (isHomeNamed ? undefined : accountProblem) ??
    (placeAroundHome ? insideText(used.home, placeAroundHome) : whyUntrusted(used.home, untrusted));
  return Object.freeze({
    ...used,
    ...workspaceSetting !== undefined && !isInside(workspaceSetting.folder, root) &&
      { workspaceSetting: workspaceSetting.statement },
    ...homeProblem !== undefined && { homeProblem },
  });
}

/**
 * Returns the environment with the account's home folder, if the home that is set may not be used.
 */
function withOwnHome(environment: Environment, places: readonly string[]): Environment {
  const { account, userHome } = environment;
  const accountHome = account && realPathOf(account);
  if (accountHome === realPathOf(userHome)) return environment;
  // Other users cannot have written the top folder.
  const isOfUser = (folder: string) =>
    dirname(folder) === folder ||
    accountHome !== undefined && !places.includes(folder) && isInside(folder, accountHome);
  const untrusted = { places, isOfUser };
  const [file] = findClientSettings(HOMES, foldersOf([...places, userHome], untrusted)).values();
  const why = whyUntrusted(userHome, untrusted) ?? (file && settingText(file));
  if (why === undefined) return environment;
  const instead = accountHome === undefined ? "" : `. PML uses the home of your account, ` +
    `${quoted(accountHome, 200)}; start it in another folder to use this HOME`;
  const used = withoutVariables(environment, new Map([["HOME", `${why}${instead}`]]));
  const homeProblem = `one that does not count (${why}), and the system knows no other`;
  return accountHome === undefined ? { ...used, homeProblem } : used;
}

function foldersOf(
  paths: readonly string[],
  { isOfUser }: UntrustedFolders,
): readonly string[] {
  return paths.flatMap(withFoldersAbove).filter((folder) => !isOfUser(folder));
}

/**
 * Returns why a path cannot be trusted: a project that another person may have written, or the
 * folder where PML was started, contains it. Undefined if there is no such folder.
 */
function whyUntrusted(path: string, untrusted: UntrustedFolders): string | undefined {
  const folder = untrusted.places.map((place) => foldersOf([place], untrusted))
    .map((folders) => findProject(folders) ?? folders[0])
    .find((each) => each !== undefined && isInside(each, realPathOf(path)));
  return folder === undefined ? undefined : insideText(path, folder);
}

function insideText(path: string, folder: string): string {
  const place = path === folder
    ? "the folder in which PML was started, or the workspace"
    : `in ${quoted(folder, 200)}`;
  return `${quoted(path, 200)} is ${place}, whose files may have set it`;
}

function settingText({ statement: problem }: ClientSetting): string {
  return `${problem}, and a workspace cannot decide for the user`;
}

function withFoldersAbove(folder: string): readonly string[] {
  const real = realPathOf(folder);
  return [real, ...foldersAbove(real)];
}
