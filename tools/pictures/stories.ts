/**
 * The stories of the pictures: lines that are really typed, one after the other, in an empty home.
 *
 * @module
 */

import { SERVERS } from "./servers.ts";

/** A line of a story. */
export interface Step {
  /** A comment above the line. */
  readonly caption?: string;
  /** The command that is typed into the shell. */
  readonly line: string;
  /** Texts that appear, each with the answer that is typed then. */
  readonly typed?: readonly (readonly [sees: string | RegExp, types: string])[];
}

/** A story, and the files of the workspace when it begins. */
export interface Story {
  readonly title: string;
  readonly files: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
}

const KEY = "TRACKER_TOKEN";
const NAMES = Object.keys(SERVERS);
const PROJECT = { "README.md": "# A project\n\nIt has a readme.\n", "package.json": "{}\n" };

/** Returns a client's configuration that starts each server directly. */
function directConfig(key: string): string {
  const mcpServers = Object.fromEntries(
    NAMES.map((name) => [
      name,
      { command: `${name}-mcp`, ...(name === "tracker" && { env: { [KEY]: key } }) },
    ]),
  );
  return `${JSON.stringify({ mcpServers }, null, 2)}\n`;
}

const PML = { pml: { type: "stdio", command: "pml", args: ["stdio"] } };
const CONFIRM_RUN = [/May it run\?.*no/s, "y"] as const;

/** The stories, by the names of their files. */
export const STORIES: Readonly<Record<string, Story>> = {
  "first-call": {
    title: "A project is set up, a tool is found by what it does, and called",
    files: PROJECT,
    steps: [
      { line: "pml init --yes" },
      { line: "pml search --limit 3 read a file" },
      { line: "pml call filesystem:read_file path=README.md" },
      { line: "pml" },
    ],
  },
  approval: {
    title: "A call that writes asks first, with its exact arguments; one key answers",
    files: { ...PROJECT, "notes/today.txt": "Buy milk.\n" },
    steps: [
      {
        caption: "The key y is pressed: this call runs once.",
        line: "pml call filesystem:write_file path=hello.txt content=hi",
        typed: [CONFIRM_RUN],
      },
      {
        caption: "A rule lets calls run that would ask.",
        line: "pml allow 'filesystem:write_file(path=notes/**)'",
        typed: [["exactly this: ", "write"]],
      },
      { line: "pml call filesystem:write_file path=notes/a.txt content=hi" },
      { line: 'pml why filesystem:write_file \'{"path": "notes/a.txt"}\'' },
    ],
  },
  migration: {
    title: "Six servers of a client move behind PML, and the client lists six tools, not 44",
    files: { ...PROJECT, ".mcp.json": directConfig("the-key-of-the-tracker") },
    steps: [
      { caption: "1. The client starts six servers.", line: "what-a-client-lists .mcp.json" },
      {
        caption: "2. PML takes them over, and keeps the key of one, unseen.",
        line: "pml import claude-code",
        typed: [[/Import these 6 .*no/s, "y"], [/Store .*no/s, "y"], [/Start these .*no/s, "n"]],
      },
      {
        caption: "3. The client starts PML in their place.",
        line: "mv .mcp.json before.json && pml init --yes",
      },
      { caption: "4. The client lists six tools.", line: "what-a-client-lists .mcp.json" },
      {
        caption: "5. The others are found by their purpose.",
        line: "pml search --limit 3 when are these people free",
      },
      {
        caption: "6. A call asks where no rule allows it.",
        line: "pml call calendar:find_free_time people=ann,bob day=monday",
        typed: [CONFIRM_RUN],
      },
    ],
  },
  tokens: {
    title: "What a client pays for the tools of six servers, directly and with PML",
    files: {
      ...PROJECT,
      "before.json": directConfig("x"),
      ".mcp.json": `${JSON.stringify({ mcpServers: PML }, null, 2)}\n`,
      ".pml.json": JSON.stringify({
        version: 1,
        mcpServers: Object.fromEntries(NAMES.map((name) => [name, { command: `${name}-mcp` }])),
      }),
    },
    steps: [
      {
        caption: "Before: the client starts six servers.",
        line: "what-a-client-lists before.json",
      },
      { caption: "After: it starts PML.", line: "what-a-client-lists .mcp.json" },
      {
        caption: "What each setting lists, with PML's own 30 tools, as PML estimates it.",
        line: "pml config | tail -n 10",
      },
    ],
  },
};
