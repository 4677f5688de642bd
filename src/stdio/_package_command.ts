/**
 * Reads commands that install before they run, such as `npx -y NAME`: such a program would obey the
 * workspace that it runs in, so PML installs in its place.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { type PlainCommand, plainCommand } from "../core/plain_command.ts";

/** What a command such as `npx -y some-package --flag` names. */
export interface PackageCommand {
  /** What was written in the place of npm, such as `/opt/node/bin/npx`. */
  readonly command: string;
  /** What installs it. */
  readonly tool: "npm" | "uv";
  /** What runs its program; a program of uv runs by itself. */
  readonly runtime: "node" | "bun" | undefined;
  /** `name`, `name@version` or `name@tag`; for uv what it takes for a requirement. */
  readonly spec: string;
  readonly name: string;
  /** The program of the package, where it has several. */
  readonly bin: string | undefined;
  /** What the program itself is given. */
  readonly args: readonly string[];
  /** Packages that are installed beside it. */
  readonly beside: readonly string[];
  /** The Python that is asked for. */
  readonly python: string | undefined;
  /** Options that npm installs with: its registries, how it takes peers. */
  readonly settings: readonly string[];
  /** How npm proves who it is to a registry, as the definition's environment says. */
  readonly tokens: Readonly<Record<string, string>>;
  /** What the program finds in its environment by the command itself. */
  readonly env: Readonly<Record<string, string>>;
  /** Whether only what is there already is to be run. */
  readonly isOffline: boolean;
  /** Whether the command itself wants no scripts of packages. */
  readonly isScriptless: boolean;
}

/** A server's command, as it was written. */
export interface Written {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

interface Form {
  readonly tool: "npm" | "uv";
  readonly runtime?: "node" | "bun";
}

const NODE: Form = { tool: "npm", runtime: "node" };
const BUN: Form = { tool: "npm", runtime: "bun" };
const UV: Form = { tool: "uv" };
/** The words that a command begins with; without a form it is known and refused. */
const FORMS: Readonly<Record<string, Form | undefined>> = {
  "npx": NODE,
  "npm exec": NODE,
  "npm x": NODE,
  "pnpx": NODE,
  "pnpm dlx": NODE,
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
const BIN = /^[\w.@][\w.@+-]*$/;
/** Options that say nothing of what is run. */
const IDLE = {
  npm: /^(?:-[yqsd]+|--(?:quiet|silent|verbose|bun))$/,
  uv: /^(?:-q|--quiet|-v|--verbose|--isolated|--no-progress|--no-config)$/,
};
/** What npm can be told to do and not to do; of most of it nothing is to be taken over. */
const SWITCH =
  /^--(no-)?(yes|install|audit|fund|update-notifier|prefer-offline|prefer-online|progress|ignore-scripts|legacy-peer-deps)(?:=(true|false))?$/;
/** Options before which npx would take the package for their value, and so take the next ones for its own. */
const EATS = /^(?:-[yqsd]{2,}|--no-(?!install$).*)$/;
const SCOPE = /^--@[\w.-]+:registry$/;
/** Options that a word follows, and what they name. */
const NAMING: Readonly<Record<Form["tool"], Readonly<Record<string, keyof Named>>>> = {
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

/** What the options said. */
class Named {
  readonly from: string[] = [];
  readonly beside: string[] = [];
  readonly python: string[] = [];
  readonly registry: string[] = [];
  readonly nodeOptions: string[] = [];
  readonly idle: string[] = [];
  /** Switches, by what they are called. */
  readonly switches = new Map<string, boolean>();
}

/** Gives what a command installs and runs, or nothing where it installs nothing; throws what PML does not take over. */
export function packageCommand(written: Written): PackageCommand | undefined {
  const plain = plainCommand(written);
  const found = formOf(plain);
  if (found === undefined) return undefined;
  const { form, before, rest, words } = found;
  if (form === undefined) throw refused(written, "PML does not install with it");
  const named = new Named();
  const reading = { form, named, written };
  const env = { ...written.env, ...plain.env };
  if (form.tool === "npm") takeOptions(optionsIn(env), reading);
  takeOptions(before, reading);
  // Then it is a command of npm that has a word of that name.
  if (before.length > 0) return undefined;
  const last = takeOptions(rest, reading);
  const first = rest.shift();
  const bin = named.from.length === 0 ? undefined : first;
  if (last !== "--") takeDashes(rest, { words, last, written });
  const odd = [bin, named.python[0]].find((one) => one !== undefined && !BIN.test(one));
  if (odd !== undefined) throw refused(written, `${quoted(odd)} is no program`);
  const read = form.tool === "npm" ? npmPackage : pythonPackage;
  const [spec = first, ...others] = named.from;
  const [which, ...beside] = [spec, ...others, ...named.beside].map((one) => {
    const known = read(one);
    if (known === undefined) throw refused(written, `${quoted(one ?? "")} is none of a registry`);
    return known;
  });
  if (form.tool === "uv" && others.length > 0) throw refused(written, "it names several");
  const { tool, runtime } = form;
  const options = named.nodeOptions.at(-1);
  return {
    ...{ tool, runtime, command: plain.command },
    ...{ spec: "", name: "", ...which, bin, args: rest, beside: beside.map((one) => one.spec) },
    ...{ python: named.python[0], settings: settingsOf(named), tokens: tokensIn(env) },
    env: options === undefined ? plain.env : { ...plain.env, NODE_OPTIONS: options },
    isOffline: [named.switches.get("yes"), named.switches.get("install")].includes(false),
    isScriptless: named.switches.get("ignore-scripts") === true,
  };
}

function formOf({ command, args }: PlainCommand) {
  const own = command.split(/[\\/]/).at(-1)?.replace(/\.(?:exe|cmd|bat|ps1)$/i, "") ?? "";
  for (const [words, form] of Object.entries(FORMS)) {
    const [name, ...more] = words.split(" ");
    if (name !== own) continue;
    const at = more.length === 0 ? 0 : args.indexOf(more[0] ?? "");
    const before = args.slice(0, Math.max(at, 0));
    const isIt = at >= 0 && more.every((word, index) => args[at + index] === word) &&
      (at === 0 || before[0]?.startsWith("-"));
    if (isIt) return { words, form, before, rest: args.slice(at + more.length) };
  }
  return undefined;
}

interface Reading {
  readonly form: Form;
  readonly named: Named;
  readonly written: Written;
}

/** Takes the options off the front of `rest`, and gives the last of them. */
function takeOptions(rest: string[], { form: { tool }, named, written }: Reading): string {
  let arg = "";
  while (rest[0]?.startsWith("-")) {
    arg = rest.shift() ?? "";
    if (arg === "--") return arg;
    const [option = "", value] = arg.startsWith("--") ? arg.split(/=(.*)/s) : [arg];
    const isScope = tool === "npm" && SCOPE.test(option);
    const kind = isScope ? "registry" : NAMING[tool][option];
    const [, no, name, said] = (tool === "npm" ? SWITCH.exec(arg) : null) ?? [];
    if (name !== undefined) named.switches.set(name, (no === undefined) === (said !== "false"));
    else if (kind !== undefined && kind !== "switches") {
      const word = value ?? rest.shift() ?? "";
      if (kind === "registry" && !isRegistry(word)) {
        throw refused(written, `${quoted(option)} names no address of a registry`);
      }
      // A comma may also stand between extras, or between bounds of a version.
      if (kind === "beside") named.beside.push(...word.split(/,(?=[a-z])(?![^[]*\])/i));
      else named[kind].push(kind === "registry" ? `${option}=${word}` : word);
    } else if (!IDLE[tool].test(arg)) {
      // What follows the sign may be a secret.
      throw refused(written, `PML does not take over its option ${quoted(option)}`);
    }
  }
  return arg;
}

/** Takes two dashes away where npm does: it takes the options before them for its own. */
function takeDashes(
  rest: string[],
  { words, last, written }: {
    readonly words: string;
    readonly last: string;
    readonly written: Written;
  },
): void {
  const isNpm = words === "npm exec" || words === "npm x";
  if (!isNpm && !(words === "npx" && EATS.test(last))) return;
  const dashes = rest.indexOf("--");
  const until = dashes < 0 ? rest.length : dashes;
  const own = rest.slice(0, isNpm ? until : Math.min(1, until)).find((arg) => arg.startsWith("-"));
  if (own !== undefined) throw refused(written, `write \`--\` before ${quoted(own)}`);
  if (isNpm ? dashes >= 0 : dashes === 0) rest.splice(dashes, 1);
}

/** Gives as options what npm is told by variables; each other one of npm's is none of the program's. */
function optionsIn(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).flatMap(([variable, value]) => {
    const [, key = ""] = /^npm_config_(.+)/i.exec(variable) ?? [];
    const option = `--${key.replaceAll("_", "-").toLowerCase()}`;
    const isOne = SCOPE.test(option) ||
      ["--registry", "--node-options", "--legacy-peer-deps"].includes(option);
    return isOne && value !== "" ? [`${option}=${value}`] : [];
  });
}

function tokensIn(env: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => /^npm_config_\/\//i.test(name)));
}

/** Says to npm what an installation stands on: of what is said twice the last counts. */
function settingsOf({ registry, switches }: Named): readonly string[] {
  const last = new Map(registry.map((one) => [one.replace(/=.*/s, ""), one]));
  const peers = switches.get("legacy-peer-deps") === true ? ["--legacy-peer-deps"] : [];
  return [...last.values()].sort().concat(peers);
}

function isRegistry(word: string): boolean {
  const url = URL.parse(word);
  return url !== null && /^https?:$/.test(url.protocol) && url.username + url.password === "";
}

/** Gives a package of a registry of npm. */
export function npmPackage(spec = ""): Pick<PackageCommand, "spec" | "name"> | undefined {
  const at = spec.indexOf("@", 1);
  const name = at < 0 ? spec : spec.slice(0, at);
  const version = at < 0 ? "latest" : spec.slice(at + 1);
  return NPM_NAME.test(name) && NPM_VERSION.test(version) ? { spec, name } : undefined;
}

/** Gives a package as uv takes it for a requirement: `name@1.2` is a word of `uvx` alone. */
function pythonPackage(spec = ""): Pick<PackageCommand, "spec" | "name"> | undefined {
  const [, name, extras = "", version = ""] = PYPI.exec(spec) ?? [];
  if (name === undefined) return undefined;
  const which = version === "@latest" ? "" : version.replace(/^@/, "==");
  return { spec: `${name}${extras}${which}`, name };
}

function refused({ name, command }: Written, why: string): PmlError {
  const message = `Cannot start ${quoted(name)}: ${
    quoted(command, 300)
  } names no package to install: ${why}`;
  return new PmlError("UPSTREAM_DOWN", message, {
    hint:
      "Write `npx -y NAME@VERSION` or `uvx NAME@VERSION`, or install it yourself and give the " +
      "path of its program",
  });
}
