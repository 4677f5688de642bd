/**
 * The commands, their options and their help.
 *
 * @module
 */

import { Command, CommanderError } from "commander";
import { VERSION } from "../core/version.ts";
import { report, usage } from "./_failure.ts";
import { print } from "./out.ts";

type Run = () => Promise<number>;

/** Runs what the arguments say and gives the exit code. */
export async function run(args: readonly string[]): Promise<number> {
  const json = args.includes("--json");
  let wanted: Run = () => Promise.resolve(0);
  const program = makeProgram((run) => wanted = run);
  try {
    if (args.length === 0) program.outputHelp();
    else await program.parseAsync([...args], { from: "user" });
    return await wanted();
  } catch (error) {
    if (!(error instanceof CommanderError)) return report(error, { json });
    return error.exitCode === 0 ? 0 : report(asUsage(error, { args, program }), { json });
  }
}

/** The commander's own words, as the error that everything here ends in. */
function asUsage(
  error: CommanderError,
  { args, program }: { readonly args: readonly string[]; readonly program: Command },
) {
  const [said = "", more = ""] = error.message.replace(/^error: /, "").split("\n");
  const known = program.commands.map((command) => command.name());
  const name = ["pml", ...args.filter((arg) => known.includes(arg)).slice(0, 1)].join(" ");
  const shown = said === "(outputHelp)" ? "there is no such command" : said.replaceAll("'", '"');
  const meant = more.replace(/^\((.*)\)$/, "$1 ");
  return usage(`Cannot run "${name}": ${shown}`, `${meant}Look at \`${name} --help\``);
}

function makeProgram(then: (run: Run) => void): Command {
  const program = new Command("pml")
    .description(
      "One MCP server between your AI client and every tool: found, asked for, sandboxed",
    )
    .version(VERSION, "-v, --version", "show the version")
    .helpOption("-h, --help", "show this help")
    .exitOverride()
    // What is wrong is told once, as every other error is.
    .configureOutput({ writeOut: print, writeErr: () => {}, outputError: () => {} })
    .addHelpText("after", EXAMPLES);
  addUse(program, then);
  addWord(program, then);
  addSetUp(program, then);
  return program;
}

function addUse(program: Command, then: (run: Run) => void): void {
  program.commandsGroup("Tools:");
  program.command("call").description("run one tool")
    .argument("<server:tool>", "the tool")
    .argument("[arguments...]", "key=value by the tool's schema, or key:=JSON")
    .option("--args <json>", "all arguments as a JSON object; - reads it from stdin")
    .option("--json", "print the whole result, or the error, as JSON")
    .addHelpText("after", examples(CALL_EXAMPLES))
    .action((tool: string, pairs: string[], options) => {
      then(async () => await (await import("./_call.ts")).call(tool, pairs, options));
    });
  program.command("tools").description("list servers and their tools, or show one tool whole")
    .argument("[server]", "a server, or server:tool")
    .option("--json", "print JSON")
    .addHelpText("after", examples(["pml tools", "pml tools filesystem:read_file"]))
    .action((name: string | undefined, options) => {
      then(async () => await (await import("./_find.ts")).tools(name, options));
    });
  program.command("search").description("find tools by what they do")
    .argument("<query...>", "what the tool should do, or its name")
    .option("--server <name>", "only this server's tools")
    .option("--limit <number>", "at most so many, 1 to 100", "10")
    .option("--json", "print JSON")
    .addHelpText("after", examples(["pml search read a file", "pml search --limit 3 rename"]))
    .action((words: string[], options) => {
      then(async () => await (await import("./_find.ts")).search(words, options));
    });
  program.command("why").description(
    "say whether a tool runs, asks or is denied, and by which rule",
  )
    .argument("<server:tool>", "the tool")
    .option("--json", "print JSON")
    .addHelpText("after", examples(["pml why filesystem:write_file"]))
    .action((name: string, options) => {
      then(async () => await (await import("./_find.ts")).why(name, options));
    });
}

function addWord(program: Command, then: (run: Run) => void): void {
  program.commandsGroup("Your word (on a terminal):");
  program.command("trust").description("look at what the workspace file brings, and trust it")
    .option("--json", "only show it, as JSON")
    .addHelpText("after", examples(["pml trust", "pml trust --json"]))
    .action((options) => {
      then(async () => await (await import("./_persons_word.ts")).trust(options));
    });
  program.command("approve").description("look at the calls that wait for you, and answer them")
    .argument("[id]", "only this one, or the beginning of its id")
    .option("--json", "only list them, as JSON")
    .addHelpText("after", examples(["pml approve", "pml approve 3fa9", "pml approve --json"]))
    .action((id: string | undefined, options) => {
      then(async () => await (await import("./_persons_word.ts")).approve(id, options));
    });
}

function addSetUp(program: Command, then: (run: Run) => void): void {
  program.commandsGroup("Setting up:");
  program.command("init").description("write .mcp.json and .pml.json into the workspace")
    .option("--yes", "take the defaults and ask nothing")
    .option("--json", "print what was done as JSON")
    .addHelpText("after", examples(["pml init", "pml init --yes"]))
    .action((options) => {
      then(async () => await (await import("./_init.ts")).init(options));
    });
  program.command("doctor").description("look whether everything works, and say what to do")
    .option("--json", "print JSON")
    .addHelpText("after", examples(["pml doctor", "pml doctor --json"]))
    .action((options) => {
      then(async () => await (await import("./_doctor.ts")).doctor(options));
    });
  program.command("stdio").description("serve MCP on stdin and stdout, as clients start it")
    .addHelpText(
      "after",
      "\nEnds with 0 when the client hangs up, with 143, 130 or 129 at SIGTERM, SIGINT or SIGHUP." +
        `\n${examples(["claude mcp add pml -- pml stdio"])}`,
    )
    .action(() => {
      then(async () => await (await import("./_stdio.ts")).stdio());
    });
}

function examples(lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join("\n")}`;
}

const CALL_EXAMPLES = [
  "pml call filesystem:read_file path=README.md",
  'pml call filesystem:read_multiple_files \'paths:=["a.txt", "b.txt"]\'',
  "pml call filesystem:write_file --args - < arguments.json",
];

const EXAMPLES = `${
  examples([
    "pml init                                          set up this workspace for your client",
    "pml call filesystem:read_file path=README.md      run a tool",
    "pml search read a file                            find one",
  ])
}

Exit codes: 0 well, 1 failed, 2 wrong usage or configuration.
Environment: PML_WORKSPACE, PML_HOME (~/.pml), PML_TRUST, PML_API_KEY, PML_LOG_LEVEL.`;
