/**
 * The commands for servers, their options and their help.
 *
 * @module
 */

import type { CommandRow } from "./_command_row.ts";

/** The option of commands that print JSON. */
export const JSON_OPTION: CommandRow["options"] = { "--json": "print JSON" };
/** The help of an option that many commands have. */
export const IN_WORKSPACE = "write into the workspace's .pml.json instead of your config.yaml";

/** The commands for servers. */
export const SERVER_COMMANDS: readonly CommandRow[] = [
  {
    usage: "add [server] [command...]",
    does: "add a server: a command after --, an address, a package, a module, or one of a registry",
    options: {
      "--json": "change nothing, and print JSON",
      "--url <address>": "the address of a server over HTTP",
      "--header <pairs...>": "a header of the server: 'NAME: VALUE'; write a secret as ${VARIABLE}",
      "--env <pairs...>": "a variable of the command: NAME=VALUE, or NAME='${VARIABLE}'",
      "--replace":
        "show the difference, and replace a server; with only --env or --header, change it",
      "--undo": "bring back the definition that the last --replace replaced",
      "--workspace": IN_WORKSPACE,
      "--no-workspace": "replace the server in your config.yaml",
    },
    examples: [
      "pml add ./mcp/weather.ts",
      "pml add files -- npx -y @modelcontextprotocol/server-filesystem .",
      "pml add npm:@modelcontextprotocol/server-memory",
      "pml add notion --url https://mcp.notion.com/mcp",
      "pml add notion --replace --url https://mcp.notion.com/sse",
    ],
  },
  {
    usage: "remove <server>",
    does: "remove a server from config.yaml or .pml.json",
    options: {
      "--json": "change nothing, and print JSON",
      "--workspace": "from .pml.json",
      "--no-workspace": "from config.yaml",
    },
    examples: ["pml remove files"],
  },
  {
    usage: "list",
    does: "list the servers, and where each is defined",
    options: JSON_OPTION,
  },
  {
    usage: "outdated",
    does: "list npm servers with the version that runs and the newest one",
    options: JSON_OPTION,
  },
  {
    usage: "upgrade <server>",
    does: "show the changes of a server's newer package, and upgrade it if you agree",
    options: { "--json": "change nothing, and print JSON" },
    examples: ["pml upgrade github"],
  },
  {
    usage: "logs <server>",
    does: "show the stderr of a server, or the log of a module",
    options: {
      "--json": "print JSON; with --follow, one JSON object for each line",
      "--follow": "show new lines as they come, until Ctrl-C",
      "--tail <number>": "only the last lines; with --follow 0 by default",
    },
    examples: ["pml logs github", "pml logs github --follow --tail 20"],
  },
];
