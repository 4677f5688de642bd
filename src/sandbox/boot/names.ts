/**
 * Names of files: which spellings mean the same file somewhere, and which are protected.
 *
 * @module
 */

const DEVICE = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(\.|$)/i;

/** Folds a name to what any file system may take it for. */
export function fold(name: string): string {
  if (/^[a-z0-9_-]+$/.test(name)) return name;
  return name.normalize("NFKC").replace(/[\p{DI}\p{Cf}]/gu, "").toUpperCase().toLowerCase()
    .replace(/[.\s]+$/u, "");
}

/** Tells whether a name means another file, or a device, on Windows. */
export function isWindowsTrick(name: string): boolean {
  return /[. ]$/.test(name) || name.includes(":") || /~\d/.test(name) || DEVICE.test(name);
}

/** Splits a path into its names. */
export function namesOf(path: string): string[] {
  return path.split("/").filter((name) => name !== "");
}

/** Tells whether a path is a folder or lies below it, by whole names. */
export function within(folder: string, path: string): boolean {
  return path === folder || folder === "/" || path.startsWith(`${folder}/`);
}

/** Resolves a path against a folder by its text alone. */
export function resolvePath(folder: string, path: string): string {
  const names = path.startsWith("/") ? [] : namesOf(folder);
  for (const name of namesOf(path)) {
    if (name === "..") names.pop();
    else if (name !== ".") names.push(name);
  }
  return `/${names.join("/")}`;
}

/** Joins a folder and a name. */
export function joinPath(folder: string, name: string): string {
  return folder === "/" ? `/${name}` : `${folder}/${name}`;
}

/** Gives the folder that a path lies in. */
export function folderOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf("/"), 1));
}

/** A list of protected names; one may be several names deep (`.git/config`) or end in `*`. */
export class NameList {
  readonly #plain: ReadonlySet<string>;
  readonly #patterns: readonly (readonly RegExp[])[];

  /** Takes the names as they are written. */
  constructor(names: readonly string[]) {
    const isPlain = (name: string) => !/[*/]/.test(name);
    this.#plain = new Set(names.filter(isPlain).map(fold));
    this.#patterns = names.filter((name) => !isPlain(name))
      .map((name) => namesOf(name).map(nameExpression));
  }

  /** Gives, for each protected name in a path, how many names reach to its end. */
  ends(names: readonly string[]): number[] {
    const folded = names.map(fold);
    return folded.flatMap((name, at) => [
      ...this.#plain.has(name) ? [at + 1] : [],
      ...this.#patterns
        .filter((pattern) => pattern.every((one, index) => one.test(folded[at + index] ?? "/")))
        .map((pattern) => at + pattern.length),
    ]);
  }

  /** Tells whether a protected name may begin with this one. */
  begins(name: string): boolean {
    const folded = fold(name);
    return this.#plain.has(folded) || this.#patterns.some((pattern) => pattern[0]?.test(folded));
  }
}

function nameExpression(name: string): RegExp {
  const parts = name.split("*").map((part) => fold(part).replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "su");
}
