/**
 * The commands, their options and their help.
 *
 * @module
 */

import { SETUP_COMMANDS } from "./_setup_commands.ts";
import { IN_WORKSPACE, JSON_OPTION, SERVER_COMMANDS } from "./_server_commands.ts";
import type { CommandRow } from "./_command_row.ts";

/** The effect of the command of each list of rules. */
const RULE_DOES = {
  allow: "let tools run without a question",
  ask: "make tools ask you before each call",
  deny: "never let tools run",
};

/** The commands by the titles of their groups, which the help shows. */
export const COMMANDS: Readonly<Record<string, readonly CommandRow[]>> = {
  "Tools:": [
    {
      usage: "call <server:tool> [arguments...]",
      does: "run one tool; arguments are key=value, key:=JSON or one JSON object",
      options: {
        ...JSON_OPTION,
        "--args <json>": "all arguments as a JSON object; - reads it from stdin",
        "--select <part>": "show this part of the result: a JSON pointer or a JMESPath expression",
        "--save <file>": "save images, audio and files, or else the text, into a new file",
      },
      examples: [
        "pml call filesystem:read_file path=README.md",
        "pml call filesystem:write_file --args - < arguments.json",
        "pml call filesystem:read_file path=config.json --select hosts[0].name",
      ],
    },
    {
      usage: "tools [server]",
      does: "list servers and their tools, or show one server:tool in full",
      options: { ...JSON_OPTION, "--refresh": "ask the servers again" },
      examples: ["pml tools filesystem:read_file"],
    },
    {
      usage: "search <query...>",
      does: "find tools by their purpose",
      options: {
        ...JSON_OPTION,
        "--server <name>": "only tools of this server",
        "--limit <number>": "show at most this many, 1 to 100; 10 by default",
      },
      examples: ["pml search read a file", "pml search --limit 3 rename"],
    },
    {
      usage: "install-model [folder]",
      under: "search",
      does: "let search understand meaning, with a model",
      options: {
        "--json": "only show the sizes, as JSON; with --yes, install",
        "--yes": "install without asking",
        "--from <url>": "download from this mirror",
      },
      examples: ["pml search install-model ./models/my-encoder"],
    },
    {
      usage: "why <server:tool> [arguments...]",
      does: "show whether a tool or a call runs, asks you or is denied, and why",
      options: JSON_OPTION,
      examples: [
        "pml why filesystem:write_file path=a.txt",
        "pml why github:@resources",
      ],
    },
    {
      usage: "types [servers...]",
      does: "print TypeScript types of tools for your own programs",
      options: JSON_OPTION,
      examples: ["pml types filesystem git > mcp.d.ts"],
    },
    {
      usage: "memory <what> [tool]",
      words: ["show", "clear"],
      does: "show or clear the memory of tool use: show, clear",
      options: JSON_OPTION,
      examples: ["pml memory show github:search_code", "pml memory clear"],
    },
  ],
  "Capabilities (saved code and plans):": [
    {
      usage: "capability [what] [words...]",
      words: ["list", "show", "save", "rename", "delete", "export", "import"],
      page: "workflows.md",
      does: "list, show, save, rename, delete, export or import saved capabilities",
      options: {
        ...JSON_OPTION,
        "--code <file>": "save this TypeScript",
        "--plan <file>": "save this plan (JSON)",
        "--parameter <pairs...>": "make a literal a parameter: name=value, or name:=JSON",
        "--description <text>": "the description for users and models",
        "--yes": "delete without asking",
      },
      examples: [
        "pml capability save my:weather --code weather.ts --parameter city=Paris",
        "pml capability export my:weather > weather.json",
        "pml capability import weather.json",
      ],
    },
    {
      usage: "publish <file...>",
      page: "hub.md",
      does: "publish a module, a manifest or a capability to a hub; runs `pml-hub publish`",
      passesOn: true,
      examples: [
        "pml publish my:weather@1.0.0 --to https://hub.example.com/mcp",
        "pml publish weather.ts --dry-run",
      ],
    },
  ],
  "Servers:": SERVER_COMMANDS,
  "Your approval (on a terminal):": [
    ...(["allow", "ask", "deny"] as const).map((list) => ({
      usage: `${list} <rule>`,
      does: `${RULE_DOES[list]}: a server, server:tool, server:@reads, or server:tool(name=glob)`,
      options: {
        "--json": "change nothing, and print JSON",
        "--remove": `remove this ${list} rule`,
        "--workspace": IN_WORKSPACE,
        "--no-workspace": "write into your config.yaml in any case",
      },
      examples: [
        `pml ${list} github`,
        `pml ${list} github:search_code --workspace`,
        `pml ${list} --remove github:search_code`,
      ],
    })),
    {
      usage: "rules [what] [words...]",
      words: ["list", "remove", "table", "end"],
      page: "rules.md",
      does: "list or remove rules, decide about all tools of servers, or end an answer for a " +
        "session: list, remove, table, end",
      options: {
        "--json": "change nothing, and print JSON",
        "--workspace": "remove it from the workspace's .pml.json",
        "--no-workspace": "remove it from your config.yaml",
      },
      examples: [
        "pml rules",
        "pml rules remove github:search_code",
        "pml rules table github",
        "pml rules end ID",
      ],
    },
    {
      usage: "trust [file]",
      does: "show the content of the workspace file, and trust it",
      options: {
        "--json": "change nothing, and print JSON",
        "--list": "list the files that you trust",
        "--revoke": "no longer trust this file, or the one named",
      },
      examples: ["pml trust", "pml trust --revoke"],
    },
    {
      usage: "approve [id]",
      does: "show the calls that wait for your approval, and answer them",
      options: {
        "--json": "change nothing, and print JSON",
        "--watch": "stay open, and show each new call",
      },
      examples: ["pml approve", "pml approve --watch"],
    },
    {
      usage: "pause",
      does: "refuse every new call in this workspace, until pml resume",
      options: JSON_OPTION,
      examples: ["pml pause"],
    },
    {
      usage: "resume",
      does: "accept calls in this workspace again",
      options: { "--json": "only show whether it is paused, as JSON" },
      examples: ["pml resume"],
    },
    {
      usage: "install [server]",
      does: "install a server's package, and decide about its scripts; or all for offline use",
      options: {
        "--json": "run no script; print the installed packages as JSON",
        "--offline-ready": "fetch all files that PML and your servers load at their first use",
      },
      examples: ["pml install sqlite", "pml install --offline-ready"],
    },
    {
      usage: "login <server>",
      page: "remote.md",
      does: "sign in at a server over HTTP, in your browser",
      options: {
        ...JSON_OPTION,
        "--no-browser": "only print the address",
        "--scope <scopes>": "also ask for these scopes, separated by spaces or commas",
      },
      examples: ["pml login notion", "pml login --no-browser notion"],
    },
    {
      usage: "logout [server]",
      does: "sign out at a server, which revokes the token if it can",
      options: { ...JSON_OPTION, "--all": "at all servers" },
      examples: ["pml logout notion"],
    },
    {
      usage: "lock [update] [server]",
      words: ["update"],
      does: "show the pins of pml.lock, check them, or pin changes",
      options: {
        ...JSON_OPTION,
        "--check": "show what differs from the lock, and exit 1 if anything does",
      },
      examples: ["pml lock --check", "pml lock update github"],
    },
  ],
  "Setting up:": [
    ...SETUP_COMMANDS,
    {
      usage: "completions <shell> [words...]",
      words: ["bash", "zsh", "fish"],
      does: "print a script that completes commands for bash, zsh or fish",
      examples: ["source <(pml completions bash)", "pml completions fish | source"],
    },
  ],
};
