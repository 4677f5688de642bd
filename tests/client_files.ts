/**
 * Files of every client, with servers and with keys of every kind.
 *
 * @module
 */

import type { Workspace } from "./kit/workspace.ts";

/** Keys that users may have written into files, each in a form that patterns recognize. */
export const KEYS = {
  github: "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6",
  plain: "hunter2-correct-horse",
  password: "s3cr3t-pw",
  header: "sk-proj-Zm9vYmFyYmF6cXV4MTIzNDU2",
  random: "Qx7Lp2Vn9Rt4Ws8Yb3Kd6Mf1",
  uuid: "3f2b8c1e-9d47-4a6b-8e05-7c1d2e3f4a5b",
  query: "k9j8h7g6f5d4",
  connection: "dbpass99word",
  other: "ghp_ZZZZc3D4e5F6g7H8i9J0k1L2m3N4o5P6",
  fallback: "fallback-key-value",
};

/** Returns Claude Code's file in the home folder. */
export function claudeCode(ws: Workspace): string {
  return JSON.stringify({
    numStartups: 3,
    mcpServers: {
      everywhere: { type: "stdio", command: "npx", args: ["-y", "everywhere"] },
      twice: { command: "of-user" },
    },
    projects: {
      [ws.path]: { mcpServers: { twice: { command: "of-project" } } },
      "/somewhere/else": { mcpServers: { foreign: { command: "foreign" } } },
    },
  });
}

/** The file of every other client, by its path below the home folder. */
export const HOME_FILES: Readonly<Record<string, string>> = {
  ".config/Claude/claude_desktop_config.json": JSON.stringify({
    mcpServers: {
      GitHub: {
        command: "docker",
        args: ["run", "-e", `GITHUB_TOKEN=${KEYS.github}`, "image"],
        env: { GITHUB_TOKEN: KEYS.github, LANG: "C" },
      },
      "Second GitHub": { command: "x", env: { GITHUB_TOKEN: KEYS.other } },
      pml: { command: "pml", args: ["stdio"] },
      mine: { command: "/usr/bin/pml", args: ["stdio"] },
      filesystem: { command: "npx", args: ["-y", "fs"] },
      socket: { type: "ws", url: "wss://x.y/" },
      "***": { command: "x" },
      github: { command: "y" },
    },
  }),
  ".cursor/mcp.json": `{
      // Cursor allows comments
      "mcpServers": {
        "db": {
          "command": "npx",
          "args": ["-y", "pg", "postgresql://me:${KEYS.connection}@db.example/x", "--password", "${KEYS.password}"],
          "env": { "A": "\${env:SOME_VAR}", "TRACE": "true", "NOTE": "${KEYS.random}" },
          "cwd": "\${workspaceFolder}"
        },
        "remote": {
          "url": "https://mcp.example.com/sse?api_key=${KEYS.query}",
          "headers": { "Authorization": "Bearer ${KEYS.header}", "X-API-Key": "${KEYS.plain}" },
        },
      },
    }`,
  ".config/Code/User/mcp.json": `{
      "inputs": [{ "type": "promptString", "id": "perplexity-key", "password": true }],
      "servers": {
        "perplexity": {
          "type": "stdio", "command": "npx", "args": ["-y", "ppx", "--root=\${workspaceFolder}/src"],
          "env": { "PERPLEXITY_API_KEY": "\${input:perplexity-key}" },
          "envFile": "\${workspaceFolder}/.env",
        },
        "strange": { "command": "\${command:pick}" },
      },
    }`,
  ".codex/config.toml": `model = "gpt-5"
[mcp_servers.linear]
url = "https://mcp.linear.example/mcp"
bearer_token_env_var = "LINEAR_TOKEN"
http_headers = { X-Session = "${KEYS.uuid}" }
[mcp_servers.off]
command = "off"
enabled = false
[mcp_servers.ctx]
command = "npx"
args = ["-y", "ctx"]
enabled_tools = ["resolve"]
env_vars = ["CTX_REGION"]
startup_timeout_sec = 20
`,
  ".codeium/windsurf/mcp_config.json": JSON.stringify({
    mcpServers: {
      surf: { serverUrl: "https://surf.example/mcp", headers: { A: "b" } },
      gone: { command: "x", disabled: true },
    },
  }),
  ".gemini/settings.json": `{
      "theme": "dark", // with comments
      "mcp": { "excluded": ["quiet"] },
      "mcpServers": {
        "gem": { "httpUrl": "https://gem.example/mcp", "headers": { "X-Token": "$GEM_TOKEN" } },
        "quiet": { "command": "x" },
        "loose": { "command": "x", "env": { "KEY": "\${LOOSE_KEY:-${KEYS.fallback}}" } }
      }
    }`,
};
