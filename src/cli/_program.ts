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
import { approve, trust } from "./_persons_word.ts";
import { registry } from "./_registry.ts";
import { stdio } from "./_stdio.ts";
import { print } from "./out.ts";

/** A command as the help shows it, and what runs it. */
interface Row {
  /** Its name, and the words that follow. */
  readonly usage: string;
  /** The command that it is a command of. */
  readonly under?: string;
  readonly does: string;
  readonly options?: Readonly<Record<string, string>>;
  readonly examples: readonly string[];
  readonly run: (typed: Typed) => Promise<number>;
}

const JSON_OPTION = { "--json": "print JSON" };

const COMMANDS: Readonly<Record<string, readonly Row[]>> = {
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
      does: "list servers and their tools, or show one server:tool whole",
      options: { ...JSON_OPTION, "--refresh": "ask the servers again, whatever they said before" },
      examples: ["pml tools", "pml tools --refresh github", "pml tools filesystem:read_file"],
      run: inContext(tools),
    },
    {
      usage: "search <query...>",
      does: "find tools by what they do",
      options: {
        ...JSON_OPTION,
        "--server <name>": "only this server's tools",
        "--limit <number>": "at most so many, 1 to 100; 10 unless told",
      },
      examples: ["pml search read a file", "pml search --limit 3 rename"],
      run: inContext(search),
    },
    {
      usage: "install-model [folder]",
      under: "search",
      does: "have search understand meanings: with a model that is downloaded, or one in a folder",
      options: {
        "--json": "only show what it takes, as JSON; with --yes, do it and show what came of it",
        "--yes": "ask nothing",
        "--from <url>": "another hub than the usual one, as a mirror",
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
      does: "say whether a tool, or a call with JSON arguments, runs, asks or is denied, and why",
      options: JSON_OPTION,
      examples: [
        "pml why filesystem:write_file",
        `pml why filesystem:write_file '{"path": "a.txt"}'`,
        "pml why github:@resources",
      ],
      run: inContext(why),
    },
  ],
  "Your word (on a terminal):": [
    {
      usage: "trust",
      does: "look at what the workspace file brings, and trust it",
      options: { "--json": "only show it, as JSON" },
      examples: ["pml trust"],
      run: inContext(trust),
    },
    {
      usage: "approve [id]",
      does: "look at the calls that wait for you, and answer",
      options: { "--json": "only list them, as JSON" },
      examples: ["pml approve", "pml approve 3fa9"],
      run: inContext(approve),
    },
    {
      usage: "install <server>",
      does: "install the package that a server is, and answer whether its install scripts run",
      options: { "--json": "run no script, and show as JSON what has some" },
      examples: ["pml install sqlite"],
      run: inContext(install),
    },
    {
      usage: "lock [update] [server]",
      does: "show what pml.lock pins of servers, check it, or pin anew what you agree to",
      options: {
        ...JSON_OPTION,
        "--check": "say in what it differs from what is there, and exit 1 if it does",
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
      does: "list the MCP servers that clients have, or take those of one into PML",
      options: {
        "--json": "only show it, as JSON",
        "--dry-run": "only show it",
        "--workspace": "into .pml.json of the workspace, not into your own config.yaml",
        "--undo": "put the file back as it was before the last import",
      },
      examples: ["pml import", "pml import cursor", "pml import --workspace .mcp.json"],
      run: inContext(importServers),
    },
    {
      usage: "learn <server> [calls...]",
      does: "try an npm server confined, and propose the smallest grants that it works with",
      options: { "--json": "only try and show it, as JSON" },
      examples: ["pml learn memory", `pml learn github github:search_code '{"q": "x"}'`],
      run: inContext(learn),
    },
    {
      usage: "config [what] [words...]",
      does: "show what holds and what it costs in tokens, or change it: show, intent [text]",
      options: {
        "--json": "only show it, as JSON",
        "--preset <name>": "show tools as a preset says: meta_only, semantic, hybrid_balanced, ...",
        "--wizard": "ask a few questions, measure your servers, and recommend a preset",
        "--workspace": "write into .pml.json of the workspace, not into your own config.yaml",
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
      does: "look whether everything works, and say what to do",
      options: JSON_OPTION,
      examples: ["pml doctor"],
      run: inContext(doctor, { broken: true }),
    },
    {
      usage: "check <file>",
      does: "look a module over for its author; nothing of it runs outside the sandbox",
      options: {
        ...JSON_OPTION,
        "--types": "check its types too, as it does unless told",
        "--no-types": "leave the types out",
      },
      examples: ["pml check weather.ts", "pml check --no-types --json weather.ts"],
      run: inContext(check, { broken: true }),
    },
    {
      usage: "registry <serve> <folder>",
      does: "serve a folder of modules and manifests as a registry, read-only, until it is stopped",
      options: {
        "--json": "print where it listens as JSON",
        "--port <number>": "where to listen; 3004 unless told, 0 for a free one",
        "--host <address>": "127.0.0.1 unless told; any other lets others read the whole folder",
        "--key <file>": "sign what is served with this Ed25519 key (PEM)",
        "--url <address>": "what clients configure, where it is another address; it is signed too",
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

Exit codes: 0 well, 1 failed, 2 wrong usage or configuration.`;

/** Runs what the arguments say and gives the exit code. */
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

/** What follows `--` is what is searched for: the commander would take it for a command of search. */
function searched(args: readonly string[]): readonly string[] {
  const [command, ...rest] = args;
  const at = rest.indexOf("--") + 1;
  if (command !== "search" || at === 0 || at === rest.length) return args;
  return [command, ...rest.with(at, ` ${rest[at]}`)];
}

/** The commander's own words, as the error that everything here ends in. */
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
    // What is wrong is told once, as every other error is.
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
