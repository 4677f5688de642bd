/**
 * The server kind "stdio": programs that a command starts, and that use MCP on their pipes.
 *
 * @module
 */

import { quoted, visible } from "../../core/json.ts";
import type { Manifest } from "../manifest.ts";
import { plainCommand, runsContainers } from "../../core/plain_command.ts";
import { object, record, setting, withKeywords } from "../../core/value_schema.ts";
import type {
  DefinitionTexts,
  DescriptionParts,
  MemberKind,
  ProgramDefinition,
  ServerKind,
  Texts,
} from "../kind.ts";

/** The manifest of a program, as a registry describes it. */
export interface StdioManifest extends Manifest {
  readonly command: string;
  readonly args: readonly string[];
  /** The environment of the program. `${NAME}` is replaced when it starts. */
  readonly env: Texts;
}

/** Matches the name of a program without a path. */
const PROGRAM = /^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}$/;
/**
 * Matches files that Windows runs through its shell, and shells, which would run arguments as
 * commands.
 */
const SHELL =
  /(?:\.(?:bat|cmd|com|ps1|vbs|vbe|js|jse|wsf|msc|lnk|scr|sh)|^(?:(?:ba|z|da|fi|k|c|tc|a)?sh|cmd|powershell|pwsh|env|sudo|doas|su|xargs|eval|exec)(?:\.exe)?)$/i;

const COMMAND: MemberKind<string> = {
  wanted: "the name of a program that is not a shell, without a path",
  is: (value) => typeof value === "string" && isProgram(value),
};

/** An entry of a file: as clients write it, or with `install`, as registries write it. */
interface ProgramEntry extends Partial<ProgramDefinition> {
  readonly command: string;
  readonly install?: {
    readonly command: string;
    readonly args?: readonly string[];
    readonly env?: Texts;
    readonly env_required?: readonly string[];
  };
  readonly env_required?: readonly string[];
}

/** The text for a confined server whose grants need a layer of the system that is missing. */
const UNHELD =
  "with grants that Deno alone bounds, which counts as unconfined: this machine has neither Landlock nor bubblewrap";
/** Matches programs that start npm packages. Such a package may be able to run confined. */
const NPM_RUNNER = /(?:^|[\\/])(?:npx|bunx|pnpx|pnx)(?:\.cmd)?$/i;
/** Matches arguments that run an installer, whose packages PML cannot pin. */
const INSTALLS =
  /(?:^|[\s"'`\\/;&|(=])(?:npx|pnpx|pnx|bunx|uvx|(?:npm|pnpm|pn|yarn|bun|pipx|uv tool) (?:exec|x|dlx|run))(?=[\s"']|$)/;

/** The kind of programs. */
export const STDIO: ServerKind<StdioManifest, ProgramDefinition> = {
  name: "stdio",
  pinnedAs: "stdio",
  isSandboxed: false,
  isOnline: false,
  notifies: true,
  checksItself: true,
  definition: {
    types: ["stdio"],
    forms: (parts) => {
      const { type, nonEmpty: filled, texts, text, variable, path, folder, flag } = parts;
      const program = { command: setting(filled, "The program.") };
      const settings = {
        args: setting(texts, "Its arguments.", []),
        env: setting(
          record(variable, text),
          "Variables of the program. ${NAME} and ${NAME:-default} are replaced when it starts.",
          {},
        ),
      };
      const running = {
        cwd: setting(folder, "Its working folder; by default that of the workspace."),
        envFile: setting(
          path,
          "A file of NAME=value lines, at most 64 KB, which is read at each start; none by default.",
        ),
        tools: parts.listedTools,
        confine: setting(
          flag,
          "Whether it runs confined to the workspace and its grants. Only npm packages can.",
          false,
        ),
      };
      const install = setting(
        object(program, { ...settings, ...parts.required }),
        "The program, as a registry writes it.",
      );
      const own = object({ ...type("stdio"), install }, { ...running, ...parts.pasted });
      const client = { ...settings, ...running, ...parts.ignored };
      return {
        own: { stdio: own },
        clients: {
          stdio: withKeywords(object({ ...type("stdio"), ...program }, client), {
            name: "clientProgram",
          }),
        },
      };
    },
    read: ({ json, names, tools, limits, settings, pathOf }) => {
      const entry = json as ProgramEntry;
      const { command, args = [], env: written = {} } = entry.install ?? entry;
      const env = { ...requiredEnvironment(entry), ...written };
      const { cwd, envFile, confine } = entry;
      const absolute = (path: string) => path.startsWith("${") ? path : pathOf(path);
      const paths = { cwd: cwd && absolute(cwd), ...(envFile && { envFile: absolute(envFile) }) };
      const program = { command, args, env, ...paths, tools, confine };
      return { ...names, ...program, ...limits, ...settings };
    },
    describe: describeProgram,
    identity: ({ command, args, env }) => ({ command: [command, ...args], env }),
    texts: textsOfProgram,
    policyWords: ({ command = "", args = [], confine, countsAsUnconfined }) => [
      ...(confine !== true || countsAsUnconfined ? ["unconfined"] : []),
      ...(runsContainers(plainCommand({ command, args })) ? ["container"] : []),
    ],
    program: (definition) => definition,
  },
  manifest: {
    text: {
      title: "program",
      summary: "It is a program: PML starts it with your rights, outside the sandbox, unless you " +
        "confine it.",
      official: "package",
    },
    read: (reader) => {
      const install = reader.object("install", reader.entry.install);
      const more = reader.variables("install.env_required", install.env_required);
      return {
        envRequired: [...reader.envRequired, ...more],
        command: reader.read("install.command", install.command, COMMAND),
        args: reader.plainTexts("install.args", install.args),
        env: reader.environment("install.env", install.env),
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
    lines: (manifest, { describe, networkLines: foundLines, unpinned }) => [
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

/** Returns the environment of a program, with the variables that its manifest requires. */
function environmentOf({ env, envRequired }: StdioManifest): Texts {
  const needed = envRequired.filter((name) => !Object.hasOwn(env, name));
  return { ...Object.fromEntries(needed.map((name) => [name, `\${${name}}`])), ...env };
}

/**
 * Returns the variables that an entry of a registry requires, each with the value of the same name.
 */
function requiredEnvironment({ install, env_required: needed = [] }: ProgramEntry): Texts {
  if (install === undefined) return {};
  const names = [...needed, ...install.env_required ?? []];
  return Object.fromEntries(names.map((name) => [name, `\${${name}}`]));
}

function describeProgram(
  program: ProgramDefinition,
  { describeValues, fileNames, trial }: DescriptionParts,
): string {
  const { name, confine, countsAsUnconfined, cwd, env, envFile } = program;
  const command = JSON.stringify([program.command, ...program.args]);
  const { command: own, args } = plainCommand(program);
  const tries = NPM_RUNNER.test(own) && trial === undefined
    ? ` (\`pml learn ${name}\` tries whether it can be confined)`
    : "";
  const later = confine ? "" : ", outside of the trial with your rights";
  const how = trial?.isConfined
    ? `confined to the workspace and the grants of this trial${later}`
    : confine
    ? countsAsUnconfined ? UNHELD : "confined to the workspace and its grants"
    : `with your rights${tries}`;
  const where = cwd ? `in the folder ${quoted(cwd, Infinity)} ` : "";
  const steers = command.includes("--node-options") ? ", steered by `--node-options`" : "";
  const installs = INSTALLS.test(args.join(" ")) ? ", runs an installer itself, unpinned" : "";
  return `runs the command ${command} ${where}${how}${steers}${installs}${
    describeValues("variables", env)
  }${envFileText(envFile, fileNames)}`;
}

function envFileText(envFile: string | undefined, names: readonly string[] | undefined): string {
  if (envFile === undefined) return "";
  const all = names === undefined ? "" : `: ${names.join(", ") || "none"}`;
  return `, receives the variables of the file ${quoted(envFile, Infinity)}${all}`;
}

/** Returns the texts of a program's definition in which PML replaces variables. */
export function textsOfProgram(
  { command, args, env, cwd }: ProgramDefinition,
): DefinitionTexts & Required<Pick<DefinitionTexts, "args" | "env">> {
  return {
    env,
    args: Object.fromEntries(args.entries()),
    // Only a path may contain variables. A bare name stays as it is: policies and approval requests
    // depend on it.
    ...(/[\\/][^\\/$]+$/.test(command) && { command: { "": command } }),
    ...(cwd !== undefined && { cwd: { "": cwd } }),
  };
}

/** Returns whether a text is the name of a program that is not a shell. */
function isProgram(name: string): boolean {
  return PROGRAM.test(name) && !SHELL.test(name);
}
