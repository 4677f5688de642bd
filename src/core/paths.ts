/**
 * The texts of paths, by the rules of POSIX or of Windows. On both systems, a path has `/` between its
 * names here. On Windows it begins with a drive in upper case (`C:/src/a.ts`), which the system takes
 * as it is.
 *
 * @module
 */

/** The rules for paths of one operating system. */
export interface PathRules {
  /**
   * Returns a path of the system in the form that is used here. On Windows undefined for a path that
   * is not on a drive: of a network, of a device, or relative to a drive.
   */
  plain(path: string): string | undefined;
  /** Returns why a path means no place in a folder; undefined if it may mean one. */
  whyOdd(path: string): string | undefined;
  /** Returns why a name does not mean the file of this name; undefined if it does. */
  whyTrick(name: string): string | undefined;
  /** Returns whether a plain path depends on no folder but, on Windows, on its drive. */
  isWhole(path: string): boolean;
  /** Returns whether a plain path is absolute. On Windows one without a drive is not. */
  isAbsolute(path: string): boolean;
  /** Splits a path into its names. On Windows the first one is the drive. */
  namesOf(path: string): string[];
  /** Returns the absolute path with these names. */
  joined(names: readonly string[]): string;
  /** Resolves a plain path against a folder, without reading the file system. */
  resolve(folder: string, path: string): string;
  /** Returns the glob of a rule with `/` between its names. */
  glob(text: string): string;
  /** Returns the same text for all spellings of a name that are equal on the disk. */
  fold(name: string): string;
  /**
   * Returns a path in the spelling of the folder that it is in. On Windows names are the same in any
   * case of their letters; real paths have the case of the disk.
   */
  respelled(folder: string, path: string): string;
  /** Returns the module of Node for such paths, which is loaded by the first use. */
  node(): PathModule;
}

/** The functions of `node:path`. */
type PathModule = typeof import("node:path");

/** The rules of Linux and macOS. */
export const POSIX: PathRules = {
  plain: (path) => path,
  // Two backslashes begin a path of a network or a device on Windows.
  whyOdd: (path) => path.startsWith("\\\\") ? "it is no path on this machine" : undefined,
  whyTrick,
  isWhole: (path) => path.startsWith("/"),
  isAbsolute: (path) => path.startsWith("/"),
  namesOf: (path) => path.split("/").filter(Boolean),
  joined: (names) => `/${names.join("/")}`,
  resolve: (folder, path) =>
    POSIX.joined(walked(path.startsWith("/") ? [] : POSIX.namesOf(folder), POSIX.namesOf(path))),
  glob: (text) => text,
  fold: (name) => name,
  respelled: (_folder, path) => path,
  node: () => nodePath().posix,
};

/** A path that begins with a drive. */
const ON_DRIVE = /^[A-Za-z]:(?=\/|$)/;

/** The rules of Windows. */
export const WINDOWS: PathRules = {
  plain: (path) => {
    // `file:///C:/src` has the path `/C:/src`.
    const text = slashed(path).replace(/^\/\/\?\/(?=[A-Za-z]:)/, "")
      .replace(/^\/(?=[A-Za-z]:(?:\/|$))/, "");
    const isOdd = text.startsWith("//") || /^[A-Za-z]:(?!\/|$)/.test(text);
    return isOdd ? undefined : text.replace(ON_DRIVE, (drive) => drive.toUpperCase());
  },
  whyOdd: (path) => {
    const text = slashed(path);
    // `//?/`, `//./` and `/??/` lead past the rules for names.
    if (/^\/(?:\/[?.]|\?\?)(?:\/|$)/.test(text)) return "it is a path of a device";
    if (text.startsWith("//")) return "it is a path of a network";
    return /^[A-Za-z]:(?!\/)/.test(text)
      ? "it is relative to the current folder of a drive"
      : undefined;
  },
  whyTrick: (name) => {
    const [sign] = /[<>"|?*\p{Cc}]/u.exec(name) ?? [];
    return sign === undefined
      ? whyTrick(name)
      : `Windows allows no ${JSON.stringify(sign)} in the name of a file`;
  },
  isWhole: (path) => path.startsWith("/") || ON_DRIVE.test(path),
  isAbsolute: (path) => ON_DRIVE.test(path),
  namesOf: (path) => path.split("/").filter(Boolean),
  joined: ([drive = "", ...names]) => `${drive}/${names.join("/")}`,
  resolve: (folder, path) => {
    const [drive = "", ...names] = WINDOWS.namesOf(ON_DRIVE.test(path) ? path : folder);
    const isWhole = ON_DRIVE.test(path);
    const from = isWhole || path.startsWith("/") ? [] : names;
    const steps = WINDOWS.namesOf(path).slice(isWhole ? 1 : 0);
    return WINDOWS.joined([drive, ...walked(from, steps)]);
  },
  // No name contains a backslash or a star there. The other signs are escaped for the grammar of
  // rules.
  glob: (text) => text.replace(/\\(?:\\|(?![,() ]))/g, "/"),
  fold: (name) => name.replace(/[A-Z\u00c0-\u0556]/g, lower),
  respelled: (folder, path) => {
    const [own, names] = [WINDOWS.namesOf(folder), WINDOWS.namesOf(path)];
    const isIn = own.every((name, at) => WINDOWS.fold(name) === WINDOWS.fold(names[at] ?? ""));
    return isIn ? WINDOWS.joined([...own, ...names.slice(own.length)]) : path;
  },
  node: () => nodePath().win32,
};

/** The rules of this system. */
export const PATHS: PathRules = Deno.build.os === "windows" ? WINDOWS : POSIX;

/**
 * Returns `node:path`. It takes as long to load as an empty Deno takes to start, so it is loaded by
 * the first use, and what every start loads names no module of Node in an import.
 */
export function nodePath(): PathModule {
  // deno-lint-ignore no-process-global
  return process.getBuiltinModule("node:path");
}

const DEVICE = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$|clock\$) *(?:\.|$)/i;

/** Checkouts are shared between systems, so Linux and macOS refuse these names, too. */
function whyTrick(name: string): string | undefined {
  const why = /[. ]$/.test(name)
    ? "dots and blanks at its end do not count"
    : name.includes(":")
    ? "a colon begins the name of a stream"
    : /~\d/.test(name)
    ? "it may be the short name of another file"
    : DEVICE.test(name)
    ? "it is the name of a device"
    : undefined;
  return why && `its name means another file on Windows: ${why}`;
}

function slashed(path: string): string {
  return path.replaceAll("\\", "/");
}

function walked(from: readonly string[], steps: readonly string[]): readonly string[] {
  const names = [...from];
  for (const name of steps) {
    if (name === "..") names.pop();
    else if (name !== ".") names.push(name);
  }
  return names;
}

/**
 * Only pairs of letters that are each other's upper and lower case are equal: the Kelvin sign becomes
 * "k" in lower case, but is another letter on the disk.
 */
function lower(letter: string): string {
  const small = letter.toLowerCase();
  return small.toUpperCase() === letter ? small : letter;
}
