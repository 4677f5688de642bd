/**
 * Tells where in the house a file stands.
 *
 * @module
 */

/** The folder of the package of the hub. */
const HUB = "hub/";
/** The halves of server kinds that read no file and start nothing: a separate layer. */
const KIND = /^src\/servers\/(?:kinds?|[a-z_]+\/kind)\.ts$/;
/** The layer of those halves. */
export const KINDS_ROOM = "kinds";
const ROOT = decodeURIComponent(new URL("../../", import.meta.url).pathname);

/** Where a file stands: its path from the root of the project, its room, and whether it is a test. */
export interface Place {
  readonly path: string;
  /** The package of the file. */
  readonly house: "pml" | "hub";
  /** A folder in `src/` of the package, else `mod.ts`, or the folder at its top level. */
  readonly room: string;
  readonly inSource: boolean;
  readonly isTest: boolean;
}

/** Reads the place of a file from its name, absolute or from the root of the project. */
export function placeOf(filename: string): Place {
  const path = filename.startsWith(ROOT) ? filename.slice(ROOT.length) : filename;
  const house = path.startsWith(HUB) ? "hub" : "pml";
  const own = house === "hub" ? path.slice(HUB.length) : path;
  const [top = "", second = ""] = own.split("/");
  const inSource = top === "src";
  return {
    path,
    house,
    room: KIND.test(path) ? KINDS_ROOM : inSource ? second : top,
    inSource,
    isTest: path.endsWith("_test.ts") || top === "tests",
  };
}

/** Gives the path that a relative import leads to, or nothing for a package. */
export function targetOf(from: Place, specifier: string): string | undefined {
  if (!specifier.startsWith("./") && !specifier.startsWith("../")) return undefined;
  return decodeURIComponent(new URL(specifier, `file:///${from.path}`).pathname).slice(1);
}
