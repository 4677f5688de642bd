/**
 * Guards in the code: the lines below a comment `// guard: NAME`. Each can be taken out.
 *
 * @module
 */

/** A marked statement. */
export interface Guard {
  readonly name: string;
  /** The file of the guard, from the project's root. */
  readonly path: string;
  /** The number of the comment's line, from 1. */
  readonly line: number;
  /** The text of the file without the guard. */
  readonly without: string;
}

/** The test that fails without a guard. */
export interface GuardTest {
  readonly test: string;
  readonly title: string;
}

const MARK = /^( *)\/\/ guard: (.*)$/;
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const RETURN = /^( *return )(.*);$/s;

/**
 * Returns the guards of a file. A marked statement ends as `deno fmt` writes it: its lines are
 * indented more than the first one, except for closing brackets. Throws if a mark is above anything
 * but an `if` without `else`, a `return` or an expression.
 */
export function guardsIn(path: string, text: string): readonly Guard[] {
  const lines = text.split("\n");
  return lines.flatMap((line, at) => {
    const [, indent = "", name = ""] = MARK.exec(line) ?? [];
    if (name === "") return [];
    const length = lengthOf(lines.slice(at + 1), indent);
    if (!NAME.test(name) || length === undefined) {
      throw new Error(`${path}:${at + 1}: no guard can be taken out here: ${line.trim()}`);
    }
    const statement = lines.slice(at + 1, at + 1 + length).join("\n");
    const rest = lines.with(at, weakened(statement)).toSpliced(at + 1, length);
    return { name, path, line: at + 1, without: rest.join("\n") };
  });
}

/** Returns how many lines the first statement has; undefined if it cannot be taken out. */
function lengthOf(lines: readonly string[], indent: string): number | undefined {
  const [first = "", ...more] = lines;
  if (!first.startsWith(indent) || /^ *(?:\/\/|const |let |for |while |try |switch )/.test(first)) {
    return undefined;
  }
  if (first.endsWith(";")) return 1;
  for (const [at, line] of more.entries()) {
    const rest = line.startsWith(indent) ? line.slice(indent.length) : "";
    if (line === "" || rest.startsWith(" ")) continue;
    // The lines before were the whole statement.
    if (!/^[)}\]]/.test(rest)) return more[at - 1]?.endsWith(";") ? at + 1 : undefined;
    if (rest.startsWith("} else")) return undefined;
    if (/[;}]$/.test(rest)) return at + 2;
  }
  return undefined;
}

/** Returns the replacement of a guard: nothing, or a `return` of the opposite. */
function weakened(statement: string): string {
  const [, head, value] = RETURN.exec(statement) ?? [];
  return value === undefined ? "" : `${head}!(${value});`;
}
