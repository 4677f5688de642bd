/**
 * Finds the module that a file belongs to.
 *
 * @module
 */

/** The folder of the package of the hub. */
const HUB = "hub/";
/** The parts of server kinds that read no file and start nothing. They are a separate layer. */
const KIND = /^src\/servers\/(?:kinds?|manifest|[a-z_]+\/kind)\.ts$/;
/** The entry modules of the package, which programs import. */
export const ENTRIES: readonly string[] = ["mod.ts", "registry.ts"];
/** The module of the parts that match `KIND`. */
export const KINDS = "kinds";
const ROOT = decodeURIComponent(new URL("../../", import.meta.url).pathname);

/**
 * The position of a file in the project.
 */
export interface Place {
  /** The path from the root of the project. */
  readonly path: string;
  /** The package of the file. */
  readonly project: "pml" | "hub";
  /** The folder in `src/`; for other files, the first part of the path in the package. */
  readonly module: string;
  /** The folder in which a private file may be imported: the module, or a folder in `servers`. */
  readonly folder: string;
  readonly inSource: boolean;
  readonly isTest: boolean;
}

/** Returns the place of a file. `filename` is absolute or relative to the root of the project. */
export function placeOf(filename: string): Place {
  const path = filename.startsWith(ROOT) ? filename.slice(ROOT.length) : filename;
  const project = path.startsWith(HUB) ? "hub" : "pml";
  const pathInPackage = project === "hub" ? path.slice(HUB.length) : path;
  const [top = "", second = "", third = "", ...deeper] = pathInPackage.split("/");
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

/** Returns the path of a relative import; undefined for a package. */
export function targetOf(from: Place, specifier: string): string | undefined {
  if (!specifier.startsWith("./") && !specifier.startsWith("../")) return undefined;
  return decodeURIComponent(new URL(specifier, `file:///${from.path}`).pathname).slice(1);
}
