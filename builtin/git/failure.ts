/**
 * Makes errors that a model can act on.
 *
 * @module
 */

const REASONS: readonly (readonly [RegExp, string])[] = [
  [
    /transport '.*' not allowed|bad object|unable to read|could not fetch/,
    "a commit or file of it is not here; if it is a partial clone, fetch it with git in a terminal",
  ],
  [/bad revision 'HEAD'|does not have any commits/, "there is no commit yet"],
  [
    /unknown revision|bad revision|needed a single|not a valid object|invalid (object|ref)/i,
    "there is no such revision; branches and log show what there is",
  ],
  [/not a git repository/, "its .git is broken: git takes it for no repository"],
  [/\.lock': File exists/, "another git is at work in it; try again when it is done"],
];

/** Returns a text in quotes, cut after 200 characters. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text);
}

/** Returns an error. `what` is the attempted action, such as "Cannot commit"; `why` is the reason. */
export function fail(what: string, why: string): Error {
  return new Error(`${what}: ${why}`);
}

/** Returns the error for the output of a failed git. */
export function gitError(what: string, output: string): Error {
  const reason = REASONS.find(([pattern]) => pattern.test(output))?.[1];
  const lines = output.split("\n").filter((line) => !/^(hint|warning):|^\s*$/.test(line));
  const message = lines.slice(0, 5).join("\n").replace(/^(fatal|error): /gm, "").slice(0, 1_000);
  return fail(what, reason ?? (message || "git failed without a word"));
}

/** Returns undefined for a file that does not exist. Throws every other error. */
export function ignoreMissing(error: unknown): undefined {
  const { name, code } = Object(error);
  if (/^(NotFound|NotADirectory)$/.test(name) || /^(ENOENT|ENOTDIR)$/.test(code)) return;
  throw error;
}
