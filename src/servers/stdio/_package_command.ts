/**
 * Reads commands that install a package before they run it, such as `npx -y NAME`. The installer
 * would use settings of the workspace, so PML installs the package itself.
 *
 * @module
 */

import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import { type PlainCommand, plainCommand } from "../../core/plain_command.ts";

/** The parts of a command such as `npx -y some-package --flag`. */
export interface PackageCommand {
  /** The command as it was written, such as `/opt/node/bin/npx`. */
  readonly command: string;
  /** The tool that installs the package. */
  readonly tool: "npm" | "uv";
  /** The runtime of the package's program; undefined for a program of uv, which needs none. */
  readonly runtime: "node" | "bun" | undefined;
  /** `name`, `name@version` or `name@tag`; for uv a requirement. */
  readonly spec: string;
  readonly name: string;
  /** The program of the package, if the command names it. */
  readonly bin: string | undefined;
  /** The arguments of the program itself. */
  readonly args: readonly string[];
  /** The specs of further packages that are installed in the same folder. */
  readonly beside: readonly string[];
  /** The requested Python version. */
  readonly python: string | undefined;
  /** The options of npm's installation: its registries, and how it handles peer dependencies. */
  readonly settings: readonly string[];
  /** The variables with npm's tokens for registries, from the definition's environment. */
  readonly tokens: Readonly<Record<string, string>>;
  /** Variables that the command itself sets for the program. */
  readonly env: Readonly<Record<string, string>>;
  /** Whether the command forbids an installation, so that the package must be installed already. */
  readonly isOffline: boolean;
  /** Whether the command itself turns scripts of packages off. */
  readonly isScriptless: boolean;
}

/** A server's command as it was written. */
export interface WrittenCommand {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** How a command installs and runs a package. */
interface CommandForm {
  readonly tool: "npm" | "uv";
  readonly runtime?: "node" | "bun";
}

const NODE: CommandForm = { tool: "npm", runtime: "node" };
const BUN: CommandForm = { tool: "npm", runtime: "bun" };
const UV: CommandForm = { tool: "uv" };
/**
 * The words that a command begins with. Undefined marks a command that installs a package in a way
 * that PML does not support: PML refuses it.
 */
const FORMS: Readonly<Record<string, CommandForm | undefined>> = {
  "npx": NODE,
  "npm exec": NODE,
  "npm x": NODE,
  "pnpx": NODE,
  "pnx": NODE,
  "pnpm dlx": NODE,
  "pn dlx": NODE,
  "yarn dlx": NODE,
  "bunx": BUN,
  "bun x": BUN,
  "uvx": UV,
  "uv tool run": UV,
  "pipx run": undefined,
};
const NPM_NAME = /^(?:@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*$/i;
const NPM_VERSION = /^[\w.^~<>=*+-]+$/;
const PYPI =
  /^([a-z0-9](?:[\w.-]*[a-z0-9])?)(\[[\w.,-]+\])?(@[\w.+!-]+|(?:[=<>!~]=|[<>])[\w.,*+!<>=~-]+)?$/i;
/** Matches the name of a program in a package, and the version of Python. */
const BIN = /^[\w.@][\w.@+-]*$/;
/** Matches options that do not change which program runs. */
const IGNORED = {
  npm: /^(?:-[yqsd]+|--(?:quiet|silent|verbose|bun))$/,
  uv: /^(?:-q|--quiet|-v|--verbose|--isolated|--no-progress|--no-config)$/,
};
/** Matches the supported switches of npm. Most of them have no effect here. */
const SWITCH =
  /^--(no-)?(yes|install|audit|fund|update-notifier|prefer-offline|prefer-online|progress|ignore-scripts|legacy-peer-deps)(?:=(true|false))?$/;
/** Matches options for which npx would read the word after them, the package, as their value. */
const TAKES_NEXT = /^(?:-[yqsd]{2,}|--no-(?!install$).*)$/;
const SCOPE = /^--@[\w.-]+:registry$/;
/** Options with a value, and the field of `NamedOptions` that collects the values. */
const VALUE_OPTIONS: Readonly<
  Record<CommandForm["tool"], Readonly<Record<string, keyof NamedOptions>>>
> = {
  npm: {
    "-p": "from",
    "--package": "from",
    "--registry": "registry",
    "--node-options": "nodeOptions",
    "--loglevel": "idle",
  },
  uv: {
    "--from": "from",
    "-w": "beside",
    "--with": "beside",
    "-p": "python",
    "--python": "python",
  },
};

/** The values of a command's options, in order. `idle` has values that PML does not use. */
class NamedOptions {
  readonly from: string[] = [];
  readonly beside: string[] = [];
  readonly python: string[] = [];
  readonly registry: string[] = [];
  readonly nodeOptions: string[] = [];
  readonly idle: string[] = [];
  /** Switches, by their names. */
  readonly switches = new Map<string, boolean>();
}

/** Like `packageCommand()`, but returns undefined if PML does not support the command. */
export function packageIfAny(written: WrittenCommand): PackageCommand | undefined {
  try {
    return packageCommand(written);
  } catch {
    return undefined; // starting the server reports the error
  }
}

/**
 * Returns the package that a command installs and runs; undefined if the command installs nothing.
 * Throws if PML does not support the command or one of its options.
 */
export function packageCommand(written: WrittenCommand): PackageCommand | undefined {
  const plain = plainCommand(written);
  const parts = formOf(plain);
  if (parts === undefined) return undefined;
  const { form, before, rest, words } = parts;
  if (form === undefined) throw unsupportedError(written, "PML does not support it");
  const named = new NamedOptions();
  const reading = { form, named, written };
  const env = { ...written.env, ...plain.env };
  if (form.tool === "npm") takeOptions(optionsIn(env), reading);
  takeOptions(before, reading);
  // The options precede another command of npm, such as `npm --quiet run x`.
  if (before.length > 0) return undefined;
  const last = takeOptions(rest, reading);
  const first = rest.shift();
  const bin = named.from.length === 0 ? undefined : first;
  if (last !== "--") removeDashes(rest, { words, last, written });
  const invalidName = [bin, named.python[0]].find((one) => one !== undefined && !BIN.test(one));
  if (invalidName !== undefined) {
    throw unsupportedError(written, `${quoted(invalidName)} is not the name of a program`);
  }
  const read = form.tool === "npm" ? npmPackage : pythonPackage;
  const [spec = first, ...others] = named.from;
  const [which, ...beside] = [spec, ...others, ...named.beside].map((one) => {
    const packageSpec = read(one);
    if (packageSpec === undefined) {
      throw unsupportedError(written, `${quoted(one ?? "")} is not a package of a registry`);
    }
    return packageSpec;
  });
  if (form.tool === "uv" && others.length > 0) {
    throw unsupportedError(written, "it names several packages");
  }
  const { tool, runtime } = form;
  const options = named.nodeOptions.at(-1);
  return {
    tool,
    runtime,
    command: plain.command,
    ...{ spec: "", name: "", ...which, bin, args: rest, beside: beside.map((one) => one.spec) },
    python: named.python[0],
    settings: settingsOf(named),
    tokens: tokensIn(env),
    env: options === undefined ? plain.env : { ...plain.env, NODE_OPTIONS: options },
    isOffline: [named.switches.get("yes"), named.switches.get("install")].includes(false),
    isScriptless: named.switches.get("ignore-scripts") === true,
  };
}

function formOf({ command, args }: PlainCommand) {
  const own = programName(command);
  for (const [words, form] of Object.entries(FORMS)) {
    const [name, ...more] = words.split(" ");
    if (name !== own) continue;
    const at = more.length === 0 ? 0 : args.indexOf(more[0] ?? "");
    const before = args.slice(0, Math.max(at, 0));
    const hasForm = at >= 0 && more.every((word, index) => args[at + index] === word) &&
      (at === 0 || before[0]?.startsWith("-"));
    if (hasForm) return { words, form, before, rest: args.slice(at + more.length) };
  }
  return undefined;
}

/** Returns the name of a program, without its folder and without the ending of Windows. */
export function programName(command: string): string {
  return command.replace(/^.*[\\/]|\.(?:exe|cmd|bat|ps1)$/gis, "");
}

/**
 * The form of the command, the object that collects the values of options, and the whole command.
 */
interface OptionReading {
  readonly form: CommandForm;
  readonly named: NamedOptions;
  readonly written: WrittenCommand;
}

/** Removes the options from the front of `rest`. Returns the last option. */
function takeOptions(rest: string[], { form: { tool }, named, written }: OptionReading): string {
  let arg = "";
  while (rest[0]?.startsWith("-")) {
    arg = rest.shift() ?? "";
    if (arg === "--") return arg;
    const [option = "", value] = arg.startsWith("--") ? arg.split(/=(.*)/s) : [arg];
    const isScope = tool === "npm" && SCOPE.test(option);
    const kind = isScope ? "registry" : VALUE_OPTIONS[tool][option];
    const [, no, name, flag] = (tool === "npm" ? SWITCH.exec(arg) : null) ?? [];
    if (name !== undefined) named.switches.set(name, (no === undefined) === (flag !== "false"));
    else if (kind !== undefined && kind !== "switches") {
      const word = value ?? rest.shift() ?? "";
      if (kind === "registry" && !isRegistry(word)) {
        throw unsupportedError(
          written,
          `${quoted(option)} is not followed by the address of a registry`,
        );
      }
      // Splits at commas, but not at those between extras or version limits.
      if (kind === "beside") named.beside.push(...word.split(/,(?=[a-z])(?![^[]*\])/i));
      else named[kind].push(kind === "registry" ? `${option}=${word}` : word);
    } else if (!IGNORED[tool].test(arg)) {
      // The value after `=` may be a secret, so it is not shown.
      throw unsupportedError(written, `PML does not support its option ${quoted(option)}`);
    }
  }
  return arg;
}

/**
 * Removes `--` from the arguments in the same cases as npm does. npm reads the options before `--`
 * as its own, so such options throw.
 */
function removeDashes(
  rest: string[],
  { words, last, written }: {
    readonly words: string;
    readonly last: string;
    readonly written: WrittenCommand;
  },
): void {
  const isNpm = words === "npm exec" || words === "npm x";
  if (!isNpm && !(words === "npx" && TAKES_NEXT.test(last))) return;
  const dashes = rest.indexOf("--");
  const until = dashes < 0 ? rest.length : dashes;
  const own = rest.slice(0, isNpm ? until : Math.min(1, until)).find((arg) => arg.startsWith("-"));
  if (own !== undefined) throw unsupportedError(written, `write \`--\` before ${quoted(own)}`);
  if (isNpm ? dashes >= 0 : dashes === 0) rest.splice(dashes, 1);
}

/**
 * Returns the options that variables such as `npm_config_registry` set for npm. Skips options that
 * have no effect on the program.
 */
function optionsIn(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).flatMap(([variable, value]) => {
    const [, key = ""] = /^npm_config_(.+)/i.exec(variable) ?? [];
    const option = `--${key.replaceAll("_", "-").toLowerCase()}`;
    const isSupported = SCOPE.test(option) ||
      ["--registry", "--node-options", "--legacy-peer-deps"].includes(option);
    return isSupported && value !== "" ? [`${option}=${value}`] : [];
  });
}

function tokensIn(env: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => /^npm_config_\/\//i.test(name)));
}

/** Returns the options of npm's installation. If an option is repeated, the last one is used. */
function settingsOf({ registry, switches }: NamedOptions): readonly string[] {
  const last = new Map(registry.map((option) => [option.replace(/=.*/s, ""), option]));
  const peers = switches.get("legacy-peer-deps") === true ? ["--legacy-peer-deps"] : [];
  return [...last.values()].sort().concat(peers);
}

function isRegistry(word: string): boolean {
  const url = URL.parse(word);
  return url !== null && /^https?:$/.test(url.protocol) && url.username + url.password === "";
}

/** Reads the spec of a package in an npm registry; undefined if the spec names another source. */
export function npmPackage(spec = ""): Pick<PackageCommand, "spec" | "name"> | undefined {
  const at = spec.indexOf("@", 1);
  const name = at < 0 ? spec : spec.slice(0, at);
  const version = at < 0 ? "latest" : spec.slice(at + 1);
  return NPM_NAME.test(name) && NPM_VERSION.test(version) ? { spec, name } : undefined;
}

/** Reads the spec of a Python package, and converts `name@1.2`, which only `uvx` accepts. */
function pythonPackage(spec = ""): Pick<PackageCommand, "spec" | "name"> | undefined {
  const [, name, extras = "", version = ""] = PYPI.exec(spec) ?? [];
  if (name === undefined) return undefined;
  const which = version === "@latest" ? "" : version.replace(/^@/, "==");
  return { spec: `${name}${extras}${which}`, name };
}

function unsupportedError({ name, command }: WrittenCommand, why: string): PmlError {
  const message = `Cannot start ${quoted(name)}: ${
    quoted(command, 300)
  } names no package to install: ${why}`;
  return new PmlError("UPSTREAM_DOWN", message, {
    hint: "Write `npx -y NAME@VERSION` or `uvx NAME@VERSION`, or give the path of an installed one",
  });
}
