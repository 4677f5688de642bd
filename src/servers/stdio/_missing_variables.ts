/**
 * Finds the environment variables that a program lacks, in its output.
 *
 * @module
 */

import { isOwnVariable, isSteering, variableName } from "../../core/steering.ts";

/** The maximum number of names that an error contains. */
const NAMES_MAX = 4;
/** Matches the names of variables with an underscore. Other words are often not variables. */
const NAME = /(?<![\w$])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?!\w)/g;
/** Matches lines about a variable that is missing. */
const MISSING =
  /\b(?:environment variables?|env(?:ironment)?[ -]?vars?|required?|requires|missing|must be (?:set|provided|defined)|(?:is|are|was|been)(?: not|n't) (?:set|provided|defined|found|configured)|not (?:set|provided|defined|configured)|unset|undefined|KeyError|(?:set|export|provide) (?:the )?[A-Z])/i;
/** Matches lines about a variable that the program does not need. */
const OPTIONAL = /\b(?:optional|warn(?:ing)?|default(?:s|ing)?)\b/i;
/** Matches an item of a list that begins with a name. */
const ITEM = /^[-*•\s]*[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?!\w)/;
/** Matches codes of errors, which look like names of variables. */
const CODE = /^ERR_|_NOT_FOUND$|_ERROR$/;
/** The maximum length of a name, in characters. */
const LENGTH_MAX = 64;

/**
 * Returns the variables that the output of a program calls missing, and that its environment lacks.
 * Variables that change how programs run, and PML's own, are not among them.
 */
export function missingVariables(
  output: string,
  env: Readonly<Record<string, string>>,
): readonly string[] {
  const names = new Set<string>();
  let isList = false;
  for (const line of output.split(/\r?\n/)) {
    isList = !OPTIONAL.test(line) && (MISSING.test(line) || isList && ITEM.test(line));
    for (const [name] of isList ? line.matchAll(NAME) : []) {
      // guard: missing-variable-steering
      if (isSteering(name) || isOwnVariable(name)) continue;
      if (CODE.test(name) || name.length > LENGTH_MAX) continue;
      if (!Object.hasOwn(env, variableName(name))) names.add(name);
    }
  }
  return [...names].slice(0, NAMES_MAX);
}
