/**
 * The kind of servers that are programs: a command starts one, and it speaks MCP on its pipes.
 *
 * @module
 */

import { isPlain, isProgram, isVariable, sorted } from "../../core/entry_words.ts";
import { visible } from "../../core/json.ts";
import type { Manifest } from "../../core/manifest.ts";
import type { MemberKind, ServerKind, Texts } from "../kind.ts";

/** The manifest of a program that is installed. */
export interface StdioManifest extends Manifest {
  readonly command: string;
  readonly args: readonly string[];
  /** The environment of the program. `${NAME}` is replaced when it starts. */
  readonly env: Texts;
}

const COMMAND: MemberKind<string> = {
  wanted: "the name of a program, without a path, that is no shell",
  is: (value) => typeof value === "string" && isProgram(value),
};
const ARGS = { what: "plain texts", is: isPlain };

/** Programs. */
export const STDIO: ServerKind<StdioManifest> = {
  name: "stdio",
  pinnedAs: "stdio",
  isSandboxed: false,
  isOnline: false,
  manifest: {
    read: (reader) => {
      const install = reader.object("install", reader.entry.install);
      const more = reader.variables("install.env_required", install.env_required);
      return {
        envRequired: sorted([...reader.envRequired, ...more]),
        command: reader.read("install.command", install.command, COMMAND),
        args: reader.texts("install.args", install.args, ARGS),
        env: reader.values("install.env", install.env, isVariable),
      };
    },
    templates: ({ args, env }) => [...args, ...Object.values(env)],
    facts: ({ command, args, env, envRequired }) => ({
      command: [command, ...args],
      env: [...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...envRequired],
    }),
    definition: (manifest) => {
      const { command, args } = manifest;
      return { command, args, env: environmentOf(manifest) };
    },
    lines: (manifest, { describe, foundLines, unpinned }) => [
      describe({ env: {} }),
      ...unpinned({ ...manifest, env: environmentOf(manifest) }).map((spec) =>
        `It installs the newest ${spec} there is, whatever version its registry says`
      ),
      ...Object.entries(environmentOf(manifest)).map(([name, value]) =>
        visible(`It is given ${name}=${value}`, Infinity)
      ),
      ...foundLines(),
    ],
  },
};

/** Returns the environment of a program: also the variables that its registry says it needs. */
function environmentOf({ env, envRequired }: StdioManifest): Texts {
  const needed = envRequired.filter((name) => !Object.hasOwn(env, name));
  return { ...Object.fromEntries(needed.map((name) => [name, `\${${name}}`])), ...env };
}
