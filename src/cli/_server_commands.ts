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
    does:
      "add a server: a command behind --, an address, a package, a module, or one of a registry",
    options: {
      "--json": "only show it, as JSON",
      "--url <address>": "the address of a server over HTTP",
      "--header <pairs...>": "a header for it: 'NAME: VALUE'; write a secret as ${VARIABLE}",
      "--env <pairs...>": "a variable for its command: NAME=VALUE, or NAME='${VARIABLE}'",
      "--replace": "replace the server of that name, after it showed the difference",
      "--undo": "bring back the definition that the last --replace replaced",
      "--workspace": IN_WORKSPACE,
      "--no-workspace": "replace the one in your config.yaml",
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
    options: { "--workspace": "from .pml.json", "--no-workspace": "from config.yaml" },
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
    does: "upgrade a server's package, after it showed the changes and asked",
    options: { "--json": "only show it, as JSON" },
    examples: ["pml upgrade github"],
  },
  {
    usage: "logs <server>",
    does: "show the stderr of a server, or the log of a module",
    options: {
      "--json": "print JSON; with --follow, a line of it for each line",
      "--follow": "show new lines as they come",
    },
    examples: ["pml logs github", "pml logs github --follow"],
  },
];
