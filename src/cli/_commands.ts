/**
 * The commands, their options and their help.
 *
 * @module
 */

import { audit, AUDIT_OPTIONS } from "./_audit.ts";
import { call } from "./_call.ts";
import { capability } from "./_capability.ts";
import { check } from "./_check.ts";
import { completions } from "./_completions.ts";
import { config } from "./_config.ts";
import { doctor } from "./_doctor.ts";
import { search, tools, why } from "./_find.ts";
import { inContext, type Typed } from "./_command_context.ts";
import { importServers } from "./_import.ts";
import { init } from "./_init.ts";
import { install } from "./_install.ts";
import { installModel } from "./_install_model.ts";
import { key } from "./_key.ts";
import { learn } from "./_learn.ts";
import { lock } from "./_lock.ts";
import { login, logout } from "./_login.ts";
import { memory } from "./_memory.ts";
import { approve } from "./_approve.ts";
import { registry } from "./_registry.ts";
import { RULE_DOES, ruleCommand } from "./_rules.ts";
import { serve, SERVE_OPTIONS } from "./_serve.ts";
import { IN_WORKSPACE, SERVER_COMMANDS } from "./_server_commands.ts";
import { stdio } from "./_stdio.ts";
import { token } from "./_token.ts";
import { trust } from "./_trust.ts";
import { uninstall } from "./_uninstall.ts";
import { types } from "./_declare.ts";

/** A command, its help and the function that runs it. */
export interface CommandRow {
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

/** The commands, by the titles of their groups. */
export const COMMANDS: Readonly<Record<string, readonly CommandRow[]>> = {
  "Tools:": [
    {
      usage: "call <server:tool> [arguments...]",
      does: "run one tool; arguments are key=value by its schema, or key:=JSON",
      options: {
        ...JSON_OPTION,
        "--args <json>": "all arguments as a JSON object; - reads it from stdin",
        "--save <file>": "save images, audio and files, or else the text, into a new file",
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
  "Servers:": SERVER_COMMANDS,
  "Your approval (on a terminal):": [
    ...(["allow", "ask", "deny"] as const).map((list) => ({
      usage: `${list} <rule>`,
      does: `${RULE_DOES[list]}: a server, server:tool, or server:tool(name=glob)`,
      options: { "--workspace": IN_WORKSPACE },
      examples: [`pml ${list} github`, `pml ${list} github:search_code --workspace`],
      run: inContext(ruleCommand(list)),
    })),
    {
      usage: "trust [file]",
      does: "show what the workspace file brings, and trust it",
      options: {
        "--json": "only show it, as JSON",
        "--list": "list the files that you trust",
        "--revoke": "do not trust this file any more, or the one named",
      },
      examples: ["pml trust", "pml trust --list", "pml trust --revoke"],
      run: inContext(trust, { tellsTrust: true }),
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
      does: "sign in at a server over HTTP, in your browser",
      options: {
        ...JSON_OPTION,
        "--no-browser": "only print the address; take the one that the browser ends at on stdin",
        "--scope <scopes>": "ask for these scopes, too, separated by commas",
      },
      examples: ["pml login notion", "pml login --no-browser notion"],
      run: inContext(login),
    },
    {
      usage: "logout [server]",
      does: "sign out at a server, and have it take the token back where it can",
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
      does: "write .mcp.json and .pml.json into the workspace, and connect your clients",
      options: {
        ...JSON_OPTION,
        "--yes": "take the defaults and ask nothing",
        "--client [names]": "connect these clients instead, or all that are found here",
        "--user": "write into the client's file for all your projects",
        "--dry-run": "only show it",
        "--undo": "put the files of clients back as they were",
        "--http": "have Claude Code use `pml serve` instead of starting PML itself",
      },
      examples: ["pml init", "pml init --client cursor,zed", "pml init --client --dry-run"],
      run: inContext(init),
    },
    {
      usage: "uninstall",
      does: "show everything that PML keeps on this machine, and remove it",
      options: { "--json": "only show it, as JSON" },
      examples: ["pml uninstall --json", "pml uninstall"],
      run: inContext(uninstall, { broken: true }),
    },
    {
      usage: "import [client-or-file]",
      does: "list the MCP servers of your clients, or import those of one into PML",
      options: {
        "--json": "only show it, as JSON",
        "--dry-run": "only show it",
        "--workspace": IN_WORKSPACE,
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
      does: "show the settings and their cost in tokens, or change them: show, set, intent [text]",
      options: {
        "--json": "only show it, as JSON",
        "--preset <name>": "use a preset: meta_only, semantic, hybrid_balanced, ...",
        "--wizard": "ask a few questions, measure your servers, and recommend a preset",
        "--workspace": IN_WORKSPACE,
      },
      examples: [
        "pml config",
        "pml config --preset balanced",
        "pml config set limits.children 4",
        `pml config intent "TypeScript web app with PostgreSQL"`,
      ],
      run: inContext(config),
    },
    {
      usage: "key <what> [name] [command...]",
      does: "keep a key for your servers, unseen, or say which program has it; list, or remove one",
      options: { ...JSON_OPTION, "--stdin": "read the key from stdin" },
      examples: [
        "pml key set GITHUB_TOKEN",
        "pml key from GITHUB_TOKEN -- op read op://Private/GitHub/token",
        "pml key list",
        "pml key remove GITHUB_TOKEN",
      ],
      run: inContext(key),
    },
    {
      usage: "audit [what]",
      does: "show the journal of calls, or check that nobody changed it: verify",
      options: AUDIT_OPTIONS,
      examples: ["pml audit --failed --since 2h", "pml audit verify"],
      run: audit,
    },
    {
      usage: "completions <shell> [words...]",
      does: "print a script that completes commands for bash, zsh or fish",
      examples: ["source <(pml completions bash)", "pml completions fish | source"],
      run: (typed) => completions(Object.values(COMMANDS).flat(), typed),
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
      usage: "dev <file>",
      does: "follow a module while it is written: check each save, call its tools",
      options: { ...JSON_OPTION, "--no-types": "do not check its types" },
      examples: ["pml dev weather.ts"],
      run: inContext(async (at, typed) => await (await import("./_dev.ts")).dev(at, typed)),
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
    {
      usage: "serve",
      does: "serve MCP over HTTP at http://127.0.0.1:3003/mcp until it is stopped",
      options: SERVE_OPTIONS,
      examples: ["pml serve", "pml serve --port 0 --json", "pml serve --token-env MY_TOKEN"],
      run: serve,
    },
    {
      usage: "token <what> [name]",
      does: "let others use `pml serve` with rules of their own: new, list, revoke",
      options: JSON_OPTION,
      examples: ["pml token new ci", "pml token list", "pml token revoke ci"],
      run: inContext(token),
    },
  ],
};
