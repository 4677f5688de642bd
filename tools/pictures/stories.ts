/**
 * What the pictures tell: commands that are really run, one after the other, in an empty home.
 *
 * @module
 */

import { tinyServer } from "../../tests/kit/tiny_server.ts";

/** A command of a story. */
export interface Step {
  readonly args: readonly string[];
  /** What a person sees, and the key that is pressed then. */
  readonly typed?: readonly (readonly [sees: string | RegExp, types: string])[];
  /** The lines that are shown, if not all are. */
  readonly shown?: RegExp;
}

/** A story, and the files that are there when it begins. */
export interface Story {
  readonly title: string;
  readonly files: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
}

const README = "# A project\n\nIt has a readme.\n";
const NAMES = ["mail", "calendar", "tickets", "wiki", "billing", "maps"] as const;
const VERBS = ["list", "get", "create", "update", "delete", "search", "archive", "share"] as const;

/** Returns a server with many tools, each with a schema as real ones have. */
function serverOf(name: string): string {
  const tools = VERBS.map((verb) => ({
    name: `${verb}_${name}`,
    description: `${verb[0]?.toUpperCase()}${
      verb.slice(1)
    } entries of ${name}, by id or by a query`,
    inputSchema: {
      type: "object",
      properties: {
        query: { type: "string", description: "Words to look for" },
        id: { type: "string", description: `The id of an entry of ${name}` },
        limit: { type: "integer", description: "At most this many entries", minimum: 1 },
      },
    },
  }));
  return tinyServer("`${params.name}: done`").replace(
    /\[\{ name: "tell"[^\]]*\]/,
    () => JSON.stringify(tools),
  );
}

const SERVERS = Object.fromEntries(
  NAMES.map((name) => [name, { command: "deno", args: ["run", "-A", `servers/${name}.js`] }]),
);
const SIX: Readonly<Record<string, string>> = {
  ".mcp.json": `${JSON.stringify({ mcpServers: SERVERS }, null, 2)}\n`,
  "package.json": "{}\n",
  ...Object.fromEntries(NAMES.map((name) => [`servers/${name}.js`, serverOf(name)])),
};

/** The stories, by the names of their files. */
export const STORIES: Readonly<Record<string, Story>> = {
  "first-call": {
    title: "A project is set up, a tool is found by what it does, and called",
    files: { "README.md": README, "package.json": "{}\n" },
    steps: [
      { args: ["init", "--yes"] },
      { args: ["search", "--limit", "3", "read", "a", "file"], shown: /^\S+:\S+ / },
      { args: ["call", "filesystem:read_file", "path=README.md"] },
      { args: [] },
    ],
  },
  approval: {
    title: "A call that writes asks first, with its exact arguments; one key answers",
    files: { "README.md": README, "package.json": "{}\n" },
    steps: [
      {
        args: ["call", "filesystem:write_file", "path=hello.txt", "content=hi"],
        typed: [[/May it run\?.*no/s, "y"]],
      },
      {
        args: ["allow", "filesystem:write_file(path=notes/**)"],
        typed: [["exactly this: ", "write"]],
      },
      { args: ["why", "filesystem:write_file", '{"path": "notes/a.txt", "content": ""}'] },
    ],
  },
  migration: {
    title: "Six servers of a client move behind PML, and the client lists six tools, not 48",
    files: SIX,
    steps: [
      { args: ["import", "claude-code"], typed: [[/Import these 6 .*no/s, "y"]] },
      { args: ["init", "--yes"] },
      { args: ["search", "--limit", "3", "create", "a", "calendar", "entry"], shown: /^\S+:\S+ / },
      { args: ["tools", "calendar:create_calendar"] },
      {
        args: ["doctor"],
        shown: /^\S+ (?:client|context|server (?:mail|calendar|tickets|wiki|billing|maps))\b/,
      },
    ],
  },
  tokens: {
    title: "What a client pays for a list, by setting, with six servers behind PML",
    files: { ".pml.json": JSON.stringify({ version: 1, mcpServers: SERVERS }), ...SIX },
    steps: [{ args: ["config"], shown: /^Tokens|^ {2,}/ }],
  },
};
