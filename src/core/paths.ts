/**
 * Handles the texts of paths, by the rules of POSIX or of Windows. PML's internal form ("plain")
 * has `/` between names on both systems. On Windows it begins with a drive in upper case
 * (`C:/src/a.ts`). The system accepts this form.
 *
 * @module
 */

/** The rules for paths of one operating system. */
export interface PathRules {
  /**
   * Returns a path of the system in the plain form. Returns undefined on Windows for paths of a
   * network or a device, and for paths relative to the current folder of a drive.
   */
  plain(path: string): string | undefined;
  /** Returns why a path cannot be in a folder of this machine; undefined if it can. */
  whyNotLocal(path: string): string | undefined;
  /** Returns why a system could take a name for another file; undefined if no system does. */
  whyUnsafeName(name: string): string | undefined;
  /**
   * Returns whether a plain path starts at a root: on Windows of a drive, or of the current drive.
   */
  isRooted(path: string): boolean;
  /** Returns whether a plain path is absolute. On Windows, an absolute path has a drive. */
  isAbsolute(path: string): boolean;
  /** Splits a path into its names. On Windows the first name is the drive. */
  namesOf(path: string): string[];
  /** Returns the absolute path with these names. */
  joined(names: readonly string[]): string;
  /** Resolves a plain path against a folder, without reading the file system. */
  resolve(folder: string, path: string): string;
  /** Returns a glob from a rule with `/` between its names. */
  glob(text: string): string;
  /** Returns the same text for all spellings of a name that are the same file on the disk. */
  fold(name: string): string;
  /**
   * Returns a path with the beginning spelled as `folder`, if the path is in this folder. On
   * Windows the case of letters does not matter, but a real path has the case of the disk.
   */
  respell(folder: string, path: string): string;
  /** Returns the module of Node for paths of this system. The first call loads it. */
  node(): PathModule;
}

/** The functions of `node:path`. */
type PathModule = typeof import("node:path");

/** The rules of Linux and macOS. */
export const POSIX: PathRules = {
  plain: (path) => path,
  // Two backslashes begin a path of a network or a device on Windows.
  whyNotLocal: (path) => path.startsWith("\\\\") ? "it is not a path on this machine" : undefined,
  whyUnsafeName: whyTrick,
  isRooted: (path) => path.startsWith("/"),
  isAbsolute: (path) => path.startsWith("/"),
  namesOf: (path) => path.split("/").filter(Boolean),
  joined: (names) => `/${names.join("/")}`,
  resolve: (folder, path) =>
    POSIX.joined(walked(path.startsWith("/") ? [] : POSIX.namesOf(folder), POSIX.namesOf(path))),
  glob: (text) => text,
  fold: (name) => name,
  respell: (_folder, path) => path,
  node: () => nodePath().posix,
};

/** A path that begins with a drive. */
const DRIVE = /^[A-Za-z]:(?=\/|$)/;

/** The rules of Windows. */
export const WINDOWS: PathRules = {
  plain: (path) => {
    // `file:///C:/src` has the path `/C:/src`.
    const text = slashed(path).replace(/^\/\/\?\/(?=[A-Za-z]:)/, "")
      .replace(/^\/(?=[A-Za-z]:(?:\/|$))/, "");
    const isNotLocal = text.startsWith("//") || /^[A-Za-z]:(?!\/|$)/.test(text);
    return isNotLocal ? undefined : text.replace(DRIVE, (drive) => drive.toUpperCase());
  },
  whyNotLocal: (path) => {
    const text = slashed(path);
    // Windows does not apply its rules for names after `//?/`, `//./` and `/??/`.
    if (/^\/(?:\/[?.]|\?\?)(?:\/|$)/.test(text)) return "it is a path of a device";
    if (text.startsWith("//")) return "it is a path of a network";
    return /^[A-Za-z]:(?!\/)/.test(text)
      ? "it is relative to the current folder of a drive"
      : undefined;
  },
  whyUnsafeName: (name) => {
    const [sign] = /[<>"|?*\p{Cc}]/u.exec(name) ?? [];
    return sign === undefined
      ? whyTrick(name)
      : `Windows allows no ${JSON.stringify(sign)} in the name of a file`;
  },
  isRooted: (path) => path.startsWith("/") || DRIVE.test(path),
  isAbsolute: (path) => DRIVE.test(path),
  namesOf: (path) => path.split("/").filter(Boolean),
  joined: ([drive = "", ...names]) => `${drive}/${names.join("/")}`,
  resolve: (folder, path) => {
    const [drive = "", ...names] = WINDOWS.namesOf(DRIVE.test(path) ? path : folder);
    const isWhole = DRIVE.test(path);
    const from = isWhole || path.startsWith("/") ? [] : names;
    const steps = WINDOWS.namesOf(path).slice(isWhole ? 1 : 0);
    return WINDOWS.joined([drive, ...walked(from, steps)]);
  },
  // A backslash is a separator, except before a sign that the grammar of rules escapes with it.
  // File names on Windows contain neither a backslash nor a star.
  glob: (text) => text.replace(/\\(?:\\|(?![,() ]))/g, "/"),
  fold: (name) => name.replace(/[A-Z\u00c0-\u0556]/g, lower),
  respell: (folder, path) => {
    const [folderNames, names] = [WINDOWS.namesOf(folder), WINDOWS.namesOf(path)];
    const isInFolder = folderNames.every((name, index) =>
      WINDOWS.fold(name) === WINDOWS.fold(names[index] ?? "")
    );
    return isInFolder ? WINDOWS.joined([...folderNames, ...names.slice(folderNames.length)]) : path;
  },
  node: () => nodePath().win32,
};

/** The rules of this system. */
export const PATHS: PathRules = Deno.build.os === "windows" ? WINDOWS : POSIX;

/**
 * Returns `node:path`. Loading it takes as long as the start of an empty Deno, so the first call
 * loads it. Files that every start loads must not import modules of Node for the same reason.
 */
export function nodePath(): PathModule {
  // deno-lint-ignore no-process-global
  return process.getBuiltinModule("node:path");
}

const DEVICE = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$|clock\$) *(?:\.|$)/i;

/**
 * Returns why Windows could take a name for another file. Linux and macOS refuse these names, too,
 * because checkouts are shared between systems.
 */
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
 * Returns the lower case of a letter, only if the letter is also the upper case of the result: the
 * Kelvin sign becomes "k" in lower case, but is another letter on the disk.
 */
function lower(letter: string): string {
  const small = letter.toLowerCase();
  return small.toUpperCase() === letter ? small : letter;
}
