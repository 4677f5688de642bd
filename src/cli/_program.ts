/**
 * The commands, their options and their help.
 *
 * @module
 */

import { Command, CommanderError } from "commander";
import type { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { VERSION } from "../core/version.ts";
import { call } from "./_call.ts";
import { capability } from "./_capability.ts";
import { check } from "./_check.ts";
import { config } from "./_config.ts";
import { doctor } from "./_doctor.ts";
import { report, usage } from "./_failure.ts";
import { search, tools, why } from "./_find.ts";
import { inContext, type Typed } from "./_command_context.ts";
import { importServers } from "./_import.ts";
import { init } from "./_init.ts";
import { install } from "./_install.ts";
import { installModel } from "./_install_model.ts";
import { learn } from "./_learn.ts";
import { lock } from "./_lock.ts";
import { login, logout } from "./_login.ts";
import { memory } from "./_memory.ts";
import { approve, trust } from "./_approve.ts";
import { registry } from "./_registry.ts";
import { stdio } from "./_stdio.ts";
import { types } from "./_declare.ts";
import { print } from "./out.ts";

/** A command, its help and the function that runs it. */
interface CommandRow {
  /** The name of the command and its arguments. */
  readonly usage: string;
  /** The parent command, if this is a subcommand. */
  readonly under?: string;
  readonly does: string;
  readonly options?: Readonly<Record<string, string>>;
  readonly examples: readonly string[];
  readonly run: (typed: Typed) => Promise<number>;
}

const JSON_OPTION = { "--json": "print JSON" };

const COMMANDS: Readonly<Record<string, readonly CommandRow[]>> = {
  "Tools:": [
    {
      usage: "call <server:tool> [arguments...]",
      does: "run one tool; arguments are key=value by its schema, or key:=JSON",
      options: {
        ...JSON_OPTION,
        "--args <json>": "all arguments as a JSON object; - reads it from stdin",
      },
      examples: [
        "pml call filesystem:read_file path=README.md",
        "pml call filesystem:write_file --args - < arguments.json",
      ],
      run: inContext(call),
    },
    {
      usage: "tools [server]",
      does: "list servers and their tools, or show one server:tool in full",
      options: { ...JSON_OPTION, "--refresh": "ask the servers again instead of using the cache" },
      examples: ["pml tools", "pml tools --refresh github", "pml tools filesystem:read_file"],
      run: inContext(tools),
    },
    {
      usage: "search <query...>",
      does: "find tools by what they do",
      options: {
        ...JSON_OPTION,
        "--server <name>": "only tools of this server",
        "--limit <number>": "show at most this many, 1 to 100; 10 by default",
      },
      examples: ["pml search read a file", "pml search --limit 3 rename"],
      run: inContext(search),
    },
    {
      usage: "install-model [folder]",
      under: "search",
      does: "let search understand meaning, with a downloaded model or one in a folder",
      options: {
        "--json": "only show the sizes, as JSON; with --yes, install and show the result",
        "--yes": "install without asking",
        "--from <url>": "download from this hub, such as a mirror, instead of the default",
      },
      examples: [
        "pml search install-model",
        "pml search install-model ./models/my-encoder",
        "pml search -- install-model",
      ],
      run: inContext(installModel),
    },
    {
      usage: "why <server:tool> [arguments]",
      does:
        "say whether a tool, or a call with JSON arguments, runs, asks you or is denied, and why",
      options: JSON_OPTION,
      examples: [
        "pml why filesystem:write_file",
        `pml why filesystem:write_file '{"path": "a.txt"}'`,
        "pml why github:@resources",
      ],
      run: inContext(why),
    },
    {
      usage: "types [servers...]",
      does: "write the tools of servers, or of all, as TypeScript for your own programs",
      options: { "--json": "print the types of each tool as JSON" },
      examples: ["pml types filesystem git > mcp.d.ts", "pml types --json"],
      run: inContext(types),
    },
    {
      usage: "memory <what> [tool]",
      does: "show what is remembered of the use of tools, or clear it: show, clear",
      options: JSON_OPTION,
      examples: ["pml memory show", "pml memory show github:search_code", "pml memory clear"],
      run: inContext(memory),
    },
  ],
  "Capabilities (saved code and plans):": [
    {
      usage: "capability [what] [words...]",
      does: "list, show, save, rename, delete, export or import what is saved as namespace:action",
      options: {
        ...JSON_OPTION,
        "--code <file>": "save this TypeScript",
        "--plan <file>": "save this plan (JSON)",
        "--parameter <pairs...>": "make a literal a parameter: name=value, or name:=JSON",
        "--description <text>": "say what it does",
        "--yes": "delete without asking",
      },
      examples: [
        "pml capability list",
        "pml capability show my:weather",
        "pml capability save my:weather --code weather.ts --parameter city=Paris",
        "pml capability save my:report --plan report.json --description 'Write the report'",
        "pml capability rename my:weather my:forecast",
        "pml capability delete my:weather",
        "pml capability export my:weather > weather.json",
        "pml capability import weather.json",
      ],
      run: inContext(capability),
    },
  ],
  "Your approval (on a terminal):": [
    {
      usage: "trust",
      does: "show what the workspace file brings, and trust it",
      options: { "--json": "only show it, as JSON" },
      examples: ["pml trust"],
      run: inContext(trust),
    },
    {
      usage: "approve [id]",
      does: "show the calls that wait for your approval, and answer them",
      options: { "--json": "only list them, as JSON" },
      examples: ["pml approve", "pml approve 3fa9"],
      run: inContext(approve),
    },
    {
      usage: "install <server>",
      does: "install a server's package, and decide whether its install scripts run",
      options: { "--json": "run no script; show the packages that have scripts, as JSON" },
      examples: ["pml install sqlite"],
      run: inContext(install),
    },
    {
      usage: "login <server>",
      does: "sign in at a server over HTTP",
      options: {
        ...JSON_OPTION,
        "--no-browser": "only print the address to open",
        "--scope <scopes>": "ask for these scopes, too",
      },
      examples: ["pml login notion", "pml login --no-browser notion"],
      run: inContext(login),
    },
    {
      usage: "logout [server]",
      does: "sign out at a server, and revoke the token if possible",
      options: { ...JSON_OPTION, "--all": "at all servers" },
      examples: ["pml logout notion", "pml logout --all"],
      run: inContext(logout),
    },
    {
      usage: "lock [update] [server]",
      does: "show what pml.lock pins, check it, or pin the changes that you agree to",
      options: {
        ...JSON_OPTION,
        "--check": "show what differs from the lock, and exit 1 if anything does",
      },
      examples: ["pml lock", "pml lock --check", "pml lock update github"],
      run: inContext(lock),
    },
  ],
  "Setting up:": [
    {
      usage: "init",
      does: "write .mcp.json and .pml.json into the workspace",
      options: { ...JSON_OPTION, "--yes": "take the defaults and ask nothing" },
      examples: ["pml init", "pml init --yes"],
      run: inContext(init),
    },
    {
      usage: "import [client-or-file]",
      does: "list the MCP servers of your clients, or import those of one into PML",
      options: {
        "--json": "only show it, as JSON",
        "--dry-run": "only show it",
        "--workspace": "write into the workspace's .pml.json instead of your config.yaml",
        "--undo": "restore the file as it was before the last import",
      },
      examples: ["pml import", "pml import cursor", "pml import --workspace .mcp.json"],
      run: inContext(importServers),
    },
    {
      usage: "learn <server> [calls...]",
      does: "run an npm server confined, and propose the smallest grants that it works with",
      options: { "--json": "only run it, and show the result as JSON" },
      examples: ["pml learn memory", `pml learn github github:search_code '{"q": "x"}'`],
      run: inContext(learn),
    },
    {
      usage: "config [what] [words...]",
      does: "show the settings and their cost in tokens, or change them: show, intent [text]",
      options: {
        "--json": "only show it, as JSON",
        "--preset <name>": "use a preset: meta_only, semantic, hybrid_balanced, ...",
        "--wizard": "ask a few questions, measure your servers, and recommend a preset",
        "--workspace": "write into the workspace's .pml.json instead of your config.yaml",
      },
      examples: [
        "pml config",
        "pml config --preset balanced",
        `pml config intent "TypeScript web app with PostgreSQL"`,
      ],
      run: inContext(config),
    },
    {
      usage: "doctor",
      does: "check whether everything works, and say what to do if not",
      options: JSON_OPTION,
      examples: ["pml doctor"],
      run: inContext(doctor, { broken: true }),
    },
    {
      usage: "check <file>",
      does: "check a module for its author; it runs only inside the sandbox",
      options: {
        ...JSON_OPTION,
        "--types": "check its types, too (the default)",
        "--no-types": "do not check its types",
      },
      examples: ["pml check weather.ts", "pml check --no-types --json weather.ts"],
      run: inContext(check, { broken: true }),
    },
    {
      usage: "registry <serve> <folder>",
      does: "serve a folder of modules and manifests as a registry, read-only, until it is stopped",
      options: {
        "--json": "print the address as JSON",
        "--port <number>": "the port; 3004 by default, 0 for any free port",
        "--host <address>":
          "the address; 127.0.0.1 by default; others can read the folder at any other",
        "--key <file>": "sign what is served with this Ed25519 key (PEM)",
        "--url <address>": "the address that clients use, if it is another one; it is signed, too",
      },
      examples: ["pml registry serve ./servers", "pml registry serve --port 0 --json ./servers"],
      run: registry,
    },
    {
      usage: "stdio",
      does: "serve MCP on stdin and stdout until the client hangs up, as clients start it",
      examples: ["claude mcp add pml -- pml stdio"],
      run: stdio,
    },
  ],
};

const MORE = `${examples(["pml init", "pml call filesystem:read_file path=README.md"])}

Exit codes: 0 success, 1 failure, 2 wrong usage or configuration.`;

/** Runs the command that the arguments name, and returns the exit code. */
export async function run(args: readonly string[]): Promise<number> {
  let code = 0;
  const program = makeProgram(async (work) => {
    code = await work();
  });
  try {
    if (args.length === 0) program.outputHelp();
    else await program.parseAsync(searched(args), { from: "user" });
    return code;
  } catch (error) {
    if (!(error instanceof CommanderError)) return report(error, args);
    if (error.exitCode === 0) return 0;
    return report(asUsage(error, args), args);
  }
}

/**
 * Returns the arguments with a space before the first word after `--`. Without it, commander would
 * read `install-model` there as a subcommand instead of a word to search for.
 */
function searched(args: readonly string[]): readonly string[] {
  const [command, ...rest] = args;
  const at = rest.indexOf("--") + 1;
  if (command !== "search" || at === 0 || at === rest.length) return args;
  return [command, ...rest.with(at, ` ${rest[at]}`)];
}

/** Returns an error of commander as a `USAGE` error. */
function asUsage({ message }: CommanderError, args: readonly string[]): PmlError {
  const said = message.replace(/^error: |^\(outputHelp\)$/, "").replaceAll("'", '"')
    .replace("\n", " ").replace(/\.$/, "");
  return usage(
    `Cannot run ${quoted(`pml ${args.join(" ")}`)}: ${said || "there is no such command"}`,
    "Look at `pml --help` or `pml COMMAND --help`",
  );
}

function makeProgram(start: (work: () => Promise<number>) => Promise<void>): Command {
  const program = new Command("pml")
    .description(
      "One MCP server between your AI client and every tool: found, asked for, sandboxed",
    )
    .version(VERSION, "-v, --version", "show the version")
    .helpOption("-h, --help", "show this help")
    .exitOverride()
    // The error is shown once, by `report`, as every other error is.
    .configureOutput({ writeOut: print, writeErr: () => {}, outputError: () => {} })
    .addHelpText("after", MORE);
  for (const [group, rows] of Object.entries(COMMANDS)) {
    program.commandsGroup(group);
    for (const row of rows) {
      const above = program.commands.find((one) => one.name() === row.under) ?? program;
      const command = above.command(row.usage).description(row.does)
        .addHelpText("after", examples(row.examples));
      for (const [flags, does] of Object.entries(row.options ?? {})) command.option(flags, does);
      command.action(() =>
        start(() => row.run({ ...command.optsWithGlobals(), words: command.args }))
      );
    }
  }
  return program;
}

function examples(lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join("\n")}`;
}
