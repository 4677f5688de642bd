/**
 * The files and calls of the home and the workspace that `tools/old_home.ts` creates.
 *
 * @module
 */

import type { OldCall } from "../../tests/kit/old_home.ts";

const TEXT = { type: "string" };

const NOTES = serverText([
  {
    name: "list",
    description: "List notes",
    inputSchema: { type: "object", properties: { max: { type: "number", maximum: 1_000 } } },
    annotations: { readOnlyHint: true },
  },
  {
    name: "write",
    title: "Write",
    description: "Write a note",
    inputSchema: { type: "object", properties: { text: TEXT, at: TEXT }, required: ["text"] },
  },
  { name: "drop", description: "Drop a note", inputSchema: { type: "object" } },
  {
    name: "move",
    description: "Move a note",
    inputSchema: { type: "object", properties: { path: TEXT }, required: ["path"] },
  },
  { name: "count", description: "Count notes", inputSchema: { type: "object" } },
]);

/** The files of an npm package with a server. */
export const PACKAGED = {
  "package.json": '{"bin":"main.mjs"}',
  "main.mjs": serverText([
    { name: "tell", description: "Tell a story", inputSchema: { type: "object" } },
  ]),
} as const;

const WEATHER = `export const __meta__ = {
  name: "weather",
  version: "1.0.0",
  tools: {
    get: {
      description: "Weather of a city",
      inputSchema: {
        type: "object",
        properties: { city: { type: "string" }, days: { type: "number" } },
        required: ["city"],
      },
      annotations: { readOnlyHint: true },
    },
  },
};
export const get = ({ city, days = 1 }) => ({ city, days, sun: true });
`;

/** The files of the workspace, without `.pml.json`. */
export const FILES = {
  "tools/notes.mjs": NOTES,
  "weather.js": WEATHER,
  "good.txt": "good\n",
  ".cursor/mcp.json": '{"mcpServers":{}}\n',
  "paris.ts":
    'const weather = await mcp.weather.get({ city: "Paris", days: 3 });\nreturn weather;\n',
  "both.json": JSON.stringify({
    tasks: [
      { id: "sky", tool: "weather:get", arguments: { city: "Oslo" } },
      { id: "good", tool: "filesystem:read_file", arguments: { path: "good.txt" } },
    ],
  }),
} as const;

/** Returns the `.pml.json` of the workspace. */
export function workspaceFile(site: string): string {
  return `{
  // The servers of this project.
  "version": 1,
  "permissions": {
    "allow": [
      "notes:list",
      "notes:count",
      "notes:move(path=docs/**)",
      "weather:get",
      "greeter:greet",
      "fs:count",
      "offered:tell",
      "web:fetch",
      "packaged:tell",
      "boxed:tell",
      "my:*",
    ],
    "deny": ["notes:drop"],
  },
  "mcpServers": {
    "notes": { "command": "node", "args": ["tools/notes.mjs"], "env": { "KEY": "\${NOTES_KEY}" } },
    "packaged": { "command": "npx", "args": ["-y", "packaged"] },
    "boxed": { "command": "npx", "args": ["-y", "packaged"], "confine": true },
    "web": {
      "type": "http",
      "url": "${site}/web/mcp",
      "headers": { "x-web-key": "\${WEB_KEY}" },
    },
  },
  "private_mcps": { "weather": { "type": "deno", "path": "weather.js" } },
}
`;
}

/** Returns the user's own `config.yaml`. */
export function ownFile(site: string): string {
  return `# Settings of the user.
permissions:
  ask:
    - web:post
mcpServers:
  docs:
    url: ${site}/docs/mcp
`;
}

/** The calls of clients. */
export const CALLS: readonly OldCall[] = [
  callOf("notes:list"),
  callOf("notes:write", { text: "one", at: "./good.txt" }),
  callOf("notes:move", { path: "docs/a [1].txt" }),
  callOf("notes:drop"),
  callOf("web:fetch", { page: "a" }),
  callOf("packaged:tell"),
  callOf("boxed:tell"),
  callOf("weather:get", { city: "Paris" }),
  callOf("greeter:greet", { name: "Ada" }),
  callOf("fs:count", { path: "c" }),
  callOf("offered:tell"),
  callOf("docs:find", { page: "b" }),
  callOf("diary:tell"),
  callOf("filesystem:read_file", { path: "good.txt" }),
  callOf("shell:exec", { command: "printf", args: ["%s", "1.0"], timeout_ms: 5_000 }),
  callOf("my:weather", { city: "Rome" }),
  callOf("my:both"),
  {
    name: "execute_code",
    args: { code: 'return (await mcp.weather.get({ city: "Bern" })).city;' },
    text: "",
  },
];

/** The tools whose decisions are recorded. */
export const DECIDED_TOOLS = [
  ...[
    "notes:list",
    "notes:write",
    "notes:count",
    "notes:move",
    "notes:drop",
    "web:fetch",
    "web:post",
    "packaged:tell",
    "boxed:tell",
  ],
  ...[
    "weather:get",
    "greeter:greet",
    "fs:count",
    "offered:tell",
    "docs:find",
    "diary:tell",
    "my:weather",
  ],
  ...["filesystem:read_file", "filesystem:list_directory", "filesystem:write_file", "shell:exec"],
] as const;

function callOf(tool: string, args: Record<string, unknown> = {}): OldCall {
  return { name: "call", args: { tool, arguments: args }, text: "" };
}

/** Returns the code of a stdio server in JavaScript whose tools return their name and arguments. */
function serverText(tools: readonly object[]): string {
  // Servers in Go and Rust list such numbers, which change when JavaScript parses and writes them.
  const text = JSON.stringify(tools)
    .replaceAll('"maximum":1000', '"maximum":9223372036854775807,"minimum":0.0');
  return `#!/usr/bin/env node
import { createInterface } from "node:readline";
const tools = ${JSON.stringify(text)};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const results = {
    initialize: {
      protocolVersion: "2025-11-25",
      capabilities: { tools: {} },
      serverInfo: { name: "old", version: "1.0.0" },
      instructions: "Call each tool once.",
    },
    "tools/call": {
      content: [{ type: "text", text: \`\${params?.name} \${JSON.stringify(params?.arguments)}\` }],
    },
  };
  const result = method === "tools/list" ? \`{"tools":\${tools}}\` : JSON.stringify(results[method]);
  const error = '"error":{"code":-32601,"message":"Method not found"}';
  const answer = result === undefined ? error : \`"result":\${result}\`;
  console.log(\`{"jsonrpc":"2.0","id":\${JSON.stringify(id)},\${answer}}\`);
}
`;
}
