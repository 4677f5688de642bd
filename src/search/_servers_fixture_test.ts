/**
 * Example servers for tests of search.
 *
 * @module
 */

import type { ToolDefinition } from "../protocol/tool.ts";
import { Catalog } from "./catalog.ts";

/** The tools of servers, each with its description. */
export type ServerTools = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** A few common servers. */
export const SERVERS: ServerTools = {
  filesystem: {
    read_file: "Read the contents of a text file",
    write_file: "Write a text file, replacing what was there",
    list_directory: "List the entries of a directory",
  },
  github: {
    create_issue: "Open a new issue in a repository",
    search_repositories: "Search for repositories",
    read_file: "Read one file of a repository",
  },
  weather: { forecast: "Tell tomorrow's weather of a city" },
};

/** Returns a catalog of these servers. */
export function catalogOf(told: ServerTools): Catalog {
  const catalog = new Catalog();
  for (const [name, tools] of Object.entries(told)) {
    catalog.set({ name, origin: "registry" }, Object.entries(tools).map(tool));
  }
  return catalog;
}

/** Returns a tool with a name and a description. */
export function tool([name, description]: readonly [string, string]): ToolDefinition {
  return { name, description, inputSchema: { type: "object" } };
}
