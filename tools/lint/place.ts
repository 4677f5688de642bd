/**
 * Finds the module that a file belongs to.
 *
 * @module
 */

/** The folder of the package of the hub. */
const HUB = "hub/";
/** The halves of server kinds that read no file and start nothing: a separate layer. */
const KIND = /^src\/servers\/(?:kinds?|manifest|[a-z_]+\/kind)\.ts$/;
/** The layer of those halves. */
export const KINDS = "kinds";
const ROOT = decodeURIComponent(new URL("../../", import.meta.url).pathname);

/**
 * The place of a file: its path from the root of the project, its module, and whether it is a test.
 */
export interface Place {
  readonly path: string;
  /** The package of the file. */
  readonly project: "pml" | "hub";
  /** A folder in `src/` of the package, else `mod.ts`, or the folder at its top level. */
  readonly module: string;
  /** The folder to which a private file belongs: the module, or in `servers` a folder of it. */
  readonly folder: string;
  readonly inSource: boolean;
  readonly isTest: boolean;
}

/** Returns the place of a file, whose name is absolute or begins at the root of the project. */
export function placeOf(filename: string): Place {
  const path = filename.startsWith(ROOT) ? filename.slice(ROOT.length) : filename;
  const project = path.startsWith(HUB) ? "hub" : "pml";
  const own = project === "hub" ? path.slice(HUB.length) : path;
  const [top = "", second = "", third = "", ...deeper] = own.split("/");
  const inSource = top === "src";
  const module = KIND.test(path) ? KINDS : inSource ? second : top;
  return {
    path,
    project,
    module,
    folder: module === "servers" && deeper.length > 0 ? `${module}/${third}` : module,
    inSource,
    isTest: path.endsWith("_test.ts") || top === "tests",
  };
}

/** Returns the path that a relative import leads to, or undefined for a package. */
export function targetOf(from: Place, specifier: string): string | undefined {
  if (!specifier.startsWith("./") && !specifier.startsWith("../")) return undefined;
  return decodeURIComponent(new URL(specifier, `file:///${from.path}`).pathname).slice(1);
}
