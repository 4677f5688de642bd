/**
 * Finds guards in the code: statements below a comment `// guard: NAME`.
 *
 * @module
 */

/** A guard, and the file without it. */
export interface Guard {
  readonly name: string;
  /** The file of the guard, from the project's root. */
  readonly path: string;
  /** The number of the comment's line, from 1. */
  readonly line: number;
  /** The text of the file without the guard. */
  readonly without: string;
}

/** The file and the title of the test that fails without a guard. */
export interface GuardTest {
  readonly test: string;
  readonly title: string;
}

const MARK = /^( *)\/\/ guard: (.*)$/;
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const RETURN = /^( *return )(.*);$/s;

/**
 * Returns the guards of a file. Assumes the format of `deno fmt`: the lines of a statement are indented
 * more than its first line, except for closing brackets. Throws if a marked statement is not an `if`
 * without `else`, a `return` or an expression.
 */
export function guardsIn(path: string, text: string): readonly Guard[] {
  const lines = text.split("\n");
  return lines.flatMap((line, at) => {
    const [, indent = "", name = ""] = MARK.exec(line) ?? [];
    if (name === "") return [];
    const length = statementLength(lines.slice(at + 1), indent);
    if (!NAME.test(name) || length === undefined) {
      throw new Error(`${path}:${at + 1}: cannot remove a guard here: ${line.trim()}`);
    }
    const statement = lines.slice(at + 1, at + 1 + length).join("\n");
    const rest = lines.with(at, replacementFor(statement)).toSpliced(at + 1, length);
    return { name, path, line: at + 1, without: rest.join("\n") };
  });
}

/** Returns the number of lines of the first statement; undefined if it cannot be removed. */
function statementLength(lines: readonly string[], indent: string): number | undefined {
  const [first = "", ...more] = lines;
  if (!first.startsWith(indent) || /^ *(?:\/\/|const |let |for |while |try |switch )/.test(first)) {
    return undefined;
  }
  if (first.endsWith(";")) return 1;
  for (const [at, line] of more.entries()) {
    const rest = line.startsWith(indent) ? line.slice(indent.length) : "";
    if (line === "" || rest.startsWith(" ")) continue;
    // The statement ended before this line.
    if (!/^[)}\]]/.test(rest)) return more[at - 1]?.endsWith(";") ? at + 1 : undefined;
    if (rest.startsWith("} else")) return undefined;
    if (/[;}]$/.test(rest)) return at + 2;
  }
  return undefined;
}

/** Returns the replacement of a guard: empty, or a `return` of the negated value. */
function replacementFor(statement: string): string {
  const [, head, value] = RETURN.exec(statement) ?? [];
  return value === undefined ? "" : `${head}!(${value});`;
}
