import assert from "node:assert/strict";
import { runsWorkspaceFiles } from "./workspace_files.ts";

const W = "${workspaceFolder}";
const runs = (cwd: string | undefined, command: string, ...args: string[]) =>
  runsWorkspaceFiles({ name: "s", command, args, cwd });

Deno.test("runsWorkspaceFiles() finds programs that take code from the workspace", () => {
  const all: readonly (readonly [string | undefined, string, ...string[]])[] = [
    [undefined, `${W}/run.sh`],
    [undefined, "node", `${W}/server.mjs`],
    [undefined, "node", "--import", `${W}/hook.mjs`, "/opt/server.mjs"],
    [undefined, "node", `--require=${W}/hook.cjs`, "/opt/server.mjs"],
    [undefined, "sh", "-c", `exec node ${W}/server.mjs`],
    [undefined, "bash", "-c", `cd ${W} && npm start`],
    [undefined, "uv", "run", "--directory", W, "server"],
    [undefined, "uvx", "--from", W, "server"],
    [undefined, "npx", "-y", "tsx", `${W}/server.ts`],
    [undefined, "npx", W],
    [undefined, "env", "A=b", "python3", `${W}/server.py`],
    [W, "node", "server.mjs"],
    [`${W}/tools`, "npm", "start"],
    [W, "./run.sh"],
  ];
  for (const one of all) assert.equal(runs(...one), true, JSON.stringify(one));
});

Deno.test("runsWorkspaceFiles() takes paths that servers are given for data", () => {
  const all: readonly (readonly [string | undefined, string, ...string[]])[] = [
    [undefined, "npx", "-y", "@modelcontextprotocol/server-filesystem", W],
    [undefined, "uvx", "mcp-server-git", "--repository", W],
    [undefined, "python3", "-m", "mcp_server_git", "--repository", W],
    [undefined, "node", "/opt/server.mjs", W],
    [undefined, "docker", "run", "-i", "-v", `${W}:/w`, "image"],
    [undefined, "/opt/db/bin/server", "--root", W],
    [W, "npx", "-y", "some-server"],
    [W, "node", "/opt/server.mjs"],
    [undefined, "node", "/opt/server.mjs"],
  ];
  for (const one of all) assert.equal(runs(...one), false, JSON.stringify(one));
});
