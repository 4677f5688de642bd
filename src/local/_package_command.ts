/**
 * Reads commands that install before they run, such as `npx -y NAME`: such a program would obey the
 * workspace that it runs in, so PML installs in its place.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";

/** What a command such as `npx -y some-package --flag` names. */
export interface PackageCommand {
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
}

/** A server's command, as it was written. */
export interface Written {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
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
  npm: ["-y", "--yes", "-q", "--quiet", "-s", "--silent", "--verbose", "--bun"],
  uv: ["-q", "--quiet", "-v", "--verbose", "--isolated", "--no-progress", "--no-config"],
};
/** Options that a word follows, and what they name. */
const NAMING: Readonly<Record<Form["tool"], Readonly<Record<string, keyof Named>>>> = {
  npm: { "-p": "from", "--package": "from" },
  uv: {
    "--from": "from",
    "-w": "beside",
    "--with": "beside",
    "-p": "python",
    "--python": "python",
  },
};

interface Named {
  readonly from: string[];
  readonly beside: string[];
  readonly python: string[];
}

/** Gives what a command installs and runs, or nothing where it installs nothing; throws what PML does not take over. */
export function packageCommand(written: Written): PackageCommand | undefined {
  const found = formOf(written);
  if (found === undefined) return undefined;
  const { form, before, rest } = found;
  if (form === undefined) throw refused(written, "PML does not install with it");
  const option = before[0] ?? "";
  if (option !== "") throw refused(written, `PML does not take over its option ${quoted(option)}`);
  const named: Named = { from: [], beside: [], python: [] };
  takeOptions(rest, { form, named, written });
  const first = rest.shift();
  const [spec = first, ...others] = named.from;
  if (others.length > 0) throw refused(written, "it names several");
  const bin = named.from.length === 0 ? undefined : first;
  // What follows the package is npm's own up to two dashes, where it was called by that name.
  if (found.words === "npm exec" || found.words === "npm x") {
    const dashes = rest.indexOf("--");
    const own = (dashes < 0 ? rest : rest.slice(0, dashes)).find((arg) => arg.startsWith("-"));
    if (own !== undefined) throw refused(written, `write \`--\` before ${quoted(own)}`);
    if (dashes >= 0) rest.splice(dashes, 1);
  }
  const odd = [bin, named.python[0]].find((one) => one !== undefined && !BIN.test(one));
  if (odd !== undefined) throw refused(written, `${quoted(odd)} is no program`);
  const { tool, runtime } = form;
  const { beside, python: [python] } = named;
  const which = tool === "npm" ? npmPackage(spec) : pythonPackage(spec);
  if (which === undefined) throw refused(written, `${quoted(spec ?? "")} is none of a registry`);
  const wrong = beside.find((one) => pythonPackage(one) === undefined);
  if (wrong !== undefined) throw refused(written, `${quoted(wrong)} is none of a registry`);
  const needs = beside.map((one) => pythonPackage(one)?.spec ?? "");
  return { tool, runtime, ...which, bin, args: rest, beside: needs, python };
}

function formOf({ command, args }: Written) {
  // Windows starts what is no program itself through its shell.
  const isShell = /^cmd(\.exe)?$/i.test(command) && args[0]?.toLowerCase() === "/c";
  const [program = "", ...given] = isShell ? args.slice(1) : [command, ...args];
  const own = program.split(/[\\/]/).at(-1)?.replace(/\.(?:exe|cmd|bat|ps1)$/i, "") ?? "";
  for (const [words, form] of Object.entries(FORMS)) {
    const [name, ...more] = words.split(" ");
    if (name !== own) continue;
    const at = more.length === 0 ? 0 : given.indexOf(more[0] ?? "");
    const before = given.slice(0, Math.max(at, 0));
    const isIt = at >= 0 && more.every((word, index) => given[at + index] === word) &&
      (at === 0 || before[0]?.startsWith("-"));
    if (isIt) return { words, form, before, rest: given.slice(at + more.length) };
  }
  return undefined;
}

/** Takes the options off the front of `rest`. */
function takeOptions(
  rest: string[],
  { form: { tool }, named, written }: {
    readonly form: Form;
    readonly named: Named;
    readonly written: Written;
  },
): void {
  while (rest[0]?.startsWith("-")) {
    const arg = rest.shift() ?? "";
    if (arg === "--") return;
    const [option = "", value] = arg.startsWith("--") ? arg.split(/=(.*)/s) : [arg];
    const kind = NAMING[tool][option];
    if (kind !== undefined) {
      const said = value ?? rest.shift() ?? "";
      // A comma may also stand between extras, or between bounds of a version.
      const several = kind === "beside" ? said.split(/,(?=[a-z])(?![^[]*\])/i) : [said];
      named[kind].push(...several);
    }
    if (kind === undefined && !IDLE[tool].includes(arg)) {
      throw refused(written, `PML does not take over its option ${quoted(arg)}`);
    }
  }
}

function npmPackage(spec = ""): Pick<PackageCommand, "spec" | "name"> | undefined {
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
