/**
 * Asks npm which version of a package is the newest one.
 *
 * @module
 */

import { PmlError } from "../../../core/errors.ts";
import { isObject, quoted } from "../../../core/json.ts";
import { parseJson } from "../../../core/parse_json.ts";
import { type ProgramOptions, runProgram } from "../../../sandbox/process.ts";
import { causeIn } from "../../../core/program_output.ts";
import { EXACT } from "./installed.ts";
import type { PackageCommand } from "../_package_command.ts";
import { npm } from "./_npm.ts";

/** How long npm may take to answer, in milliseconds. */
const NPM_MS = 30_000;
/** The maximum length of npm's output in bytes. */
const OUTPUT_MAX = 100_000;

/** The version of a package that a command names, and the newest version of the package. */
export interface NewestVersion {
  /** The exact version that the command names, if it names one. */
  readonly namedVersion: string | undefined;
  readonly newestVersion: string;
  /** The changes that the newest version describes, if it describes any. */
  readonly changes?: string | undefined;
}

/**
 * Looks up the newest version of a command's package, with the settings and tokens of the command.
 * If the command names a range or a tag, returns the newest version that it allows.
 */
export async function lookUpNewest(
  { name, spec, settings, tokens }: PackageCommand,
  { file, cwd, env, signal, groups }: Pick<ProgramOptions, "signal" | "groups"> & {
    /** The program npm. */
    readonly file: string;
    readonly cwd: string;
    readonly env: Readonly<Record<string, string>>;
  },
): Promise<NewestVersion> {
  const range = spec.slice(name.length + 1);
  const namedVersion = EXACT.test(range) ? range : undefined;
  const packageSpec = namedVersion === undefined ? spec : name;
  const args = ["view", ...settings, "--json", "--", packageSpec, "version", "changes"];
  let stderr = "";
  const { code, stdout } = await runProgram(
    { file, args, cwd, env: { ...env, ...tokens, ...npm.environment }, hasKeeper: true },
    {
      signal,
      ms: NPM_MS,
      maxBytes: OUTPUT_MAX,
      groups,
      onStderr: (text) => stderr += text,
    },
  );
  const newest = code === 0 ? lastOf(stdout) : undefined;
  if (newest !== undefined) return { namedVersion, ...newest };
  throw new PmlError("UPSTREAM_DOWN", `Cannot look up ${quoted(packageSpec)}${causeIn(stderr)}`, {
    hint: "Check its name and version, and that its registry can be reached",
  });
}

/**
 * Reads the output of npm: the metadata of one version, or for a range a list whose last item is
 * the newest version.
 */
function lastOf(stdout: string): Omit<NewestVersion, "namedVersion"> | undefined {
  try {
    const last: unknown = [parseJson(stdout)].flat().at(-1);
    const { version, changes } = isObject(last) ? last : { version: last };
    if (typeof version !== "string" || !EXACT.test(version)) return undefined;
    return { newestVersion: version, ...(typeof changes === "string" && { changes }) };
  } catch {
    return undefined; // the caller throws its own error
  }
}
