/**
 * The commands that set PML up, their options and their help.
 *
 * @module
 */

import { IN_WORKSPACE, JSON_OPTION } from "./_server_commands.ts";
import type { CommandRow } from "./_command_row.ts";

/** The commands that set PML up. */
export const SETUP_COMMANDS: readonly CommandRow[] = [
  {
    usage: "init",
    page: "clients.md",
    does: "write .mcp.json and .pml.json, and connect your clients",
    options: {
      ...JSON_OPTION,
      "--yes": "take the defaults, and ask nothing",
      "--client [names]": "connect these clients, or all on this machine",
      "--user": "write into your own file of the client",
      "--ask-once": "let clients run PML's tools unasked, so that PML alone asks",
      "--dry-run": "only show the changes",
      "--undo": "restore the files of clients byte for byte",
      "--http": "connect clients to a running `pml serve`",
      "--port <number>":
        "with --http: the port of `pml serve`; by default that of the running one, or 3003",
      "--key": "store a key for cloud tools, from a hidden prompt or from stdin",
    },
    examples: ["pml init --client cursor,zed", "pml init --client --dry-run", "pml init --key"],
  },
  {
    usage: "update",
    does: "check for a newer PML, and show how to get it",
    options: JSON_OPTION,
  },
  {
    usage: "uninstall",
    does: "show PML's files on this machine, and remove them",
    options: { "--json": "change nothing, and print JSON" },
  },
  {
    usage: "import [client-or-file]",
    page: "import.md",
    does: "list the MCP servers of your clients, or import those of one",
    options: {
      "--json": "change nothing, and print JSON",
      "--dry-run": "only show the changes",
      "--workspace": IN_WORKSPACE,
      "--move": "take the imported servers out of the client's file",
      "--undo": "undo the last import, also in the files of clients",
    },
    examples: [
      "pml import cursor",
      "pml import claude-code --move",
      "pml import --workspace .mcp.json",
    ],
  },
  {
    usage: "learn <server> [calls...]",
    does: "run an npm server confined, and propose the grants that it needs",
    options: { "--json": "only try it, and print JSON" },
    examples: ["pml learn memory", `pml learn github github:search_code '{"q": "x"}'`],
  },
  {
    usage: "config [what] [words...]",
    words: ["show", "set", "intent"],
    page: "settings.md",
    does: "show the settings and their cost, or change them: show, set, intent [text]",
    options: {
      "--json": "change nothing, and print JSON",
      "--preset <name>": "use a preset: meta_only, semantic, balanced, ...",
      "--wizard": "measure your servers, and recommend a preset",
      "--workspace": IN_WORKSPACE,
    },
    examples: [
      "pml config --preset balanced",
      "pml config set limits.children 4",
      `pml config intent "TypeScript web app with PostgreSQL"`,
    ],
  },
  {
    usage: "key <what> [name] [command...]",
    words: ["set", "from", "list", "remove"],
    page: "keys.md",
    does: "store keys for your servers, or name a program that prints one: set, from, list, remove",
    options: { ...JSON_OPTION, "--stdin": "read the key from stdin" },
    examples: [
      "pml key set GITHUB_TOKEN",
      "pml key from GITHUB_TOKEN -- op read op://Private/GitHub/token",
    ],
  },
  {
    usage: "metrics",
    page: "observability.md",
    does: "show calls, times, tokens and memory of all running PMLs",
    options: {
      "--json": "print JSON; with --follow, one line of JSON every two seconds",
      "--follow": "show them again every two seconds",
      "--prometheus": "print the text that Prometheus reads",
    },
    examples: ["pml metrics", "pml metrics --follow"],
  },
  {
    usage: "audit [what]",
    words: ["verify"],
    does: "show the calls of this workspace, or check that the journal was not changed: verify",
    options: {
      "--json": "print each record as a line of JSON",
      "--all": "of all workspaces, with the folder of each",
      "--follow": "show calls as they end, or new records, until Ctrl-C",
      "--tool <pattern>": "only calls of a server, or of server:tool",
      "--server <name>": "only records of this server",
      "--kind <kind>": "single records in place of calls: start, end or event",
      "--since <time>": "only records since this time: 30m, 2h, 7d or a date",
      "--failed": "only calls that failed",
      "--limit <number>": "show at most this many; by default 50, or no earlier ones with --follow",
      "--checkpoint <text>": "verify: compare with the checkpoint of an earlier verify",
    },
    examples: ["pml audit --failed --since 2h", "pml audit --all", "pml audit verify"],
  },
  {
    usage: "doctor",
    does: "check PML and your servers, and show how to fix problems",
    options: JSON_OPTION,
  },
  {
    usage: "check <file>",
    does: "check a module, in the sandbox",
    options: {
      ...JSON_OPTION,
      "--no-types": "do not check its types",
    },
    examples: ["pml check weather.ts"],
  },
  {
    usage: "dev <file>",
    does: "check each save of a module, and call its tools",
    options: { ...JSON_OPTION, "--no-types": "do not check its types" },
    examples: ["pml dev weather.ts"],
  },
  {
    usage: "registry <serve> <folder>",
    words: ["serve"],
    page: "registries.md",
    does: "serve a folder as a registry, read-only",
    options: {
      "--json": "print the address as JSON",
      "--port <number>": "the port; 3004 by default, 0 for any free port",
      "--host <address>": "the address; 127.0.0.1 by default",
      "--key <file>": "sign entries with this Ed25519 key (PEM)",
      "--url <address>": "the address that clients use, if it differs",
    },
    examples: ["pml registry serve ./servers"],
  },
  {
    usage: "page",
    page: "page.md",
    does: "show PML in your browser: waiting calls, servers, tools, the journal, rules",
    options: {
      "--json": "print the address as JSON",
      "--port <number>": "the port; by default any free one",
      "--no-open": "print a link instead of opening the browser",
    },
    examples: ["pml page", "pml page --no-open"],
  },
  {
    usage: "stdio",
    does: "serve MCP on stdin and stdout, as clients start it",
    examples: ["claude mcp add pml -- pml stdio"],
  },
  {
    usage: "serve",
    page: "serve.md",
    does: "serve MCP over HTTP at http://127.0.0.1:3003/mcp",
    options: {
      "--json": "print the address as JSON",
      "--port <number>": "the port; 3003 by default, 0 for any free port",
      "--token-env <name>": "the variable with the token; PML makes one by default",
      "--metrics": "serve /metrics for Prometheus, with its own token",
      "--metrics-token-env <name>":
        "the variable with the token for /metrics; PML makes one by default",
      "--allow-origin <origins...>": "web pages that may send requests",
      "--host <address>": "the address; 127.0.0.1 by default",
      "--allow-host <names...>": "the names by which clients reach another address",
      "--cert <file>": "the certificate for another address (PEM), with --key",
      "--key <file>": "the private key of the certificate (PEM)",
      "--behind-proxy": "PML is behind a proxy that provides TLS",
      "--open": "open the page of PML in your browser, as `pml page` does",
    },
    examples: ["pml serve --open", "pml serve --token-env MY_TOKEN"],
  },
  {
    usage: "token <what> [name]",
    words: ["new", "list", "revoke"],
    page: "serve.md",
    does: "let others use `pml serve` with their own rules: new, list, revoke",
    options: JSON_OPTION,
    examples: ["pml token new ci", "pml token revoke ci"],
  },
];
