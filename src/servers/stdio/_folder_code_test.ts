import assert from "node:assert/strict";
import { loadsCodeFromFolder } from "./_folder_code.ts";

const TAKE = [
  ...[
    "python3 -m mcp_server_git",
    "python3.12 -c run",
    "node server.js",
    "node --import tsx /x.js",
  ],
  ...["uv run /opt/x.py", "/usr/bin/uv --directory /opt run x", "pnpm exec x", "pn start"],
  ...[
    "npm run mcp",
    "npm.cmd start",
    "C:\\bun\\bun.exe /opt/x.ts",
    "deno run -A npm:x",
    "make mcp",
  ],
  ...[
    "timeout 60 npx -y x",
    "docker compose run x",
    "./server",
    "bin/server --stdio",
    "java -jar x",
  ],
  ...["npx -y tsx /opt/x.ts", "npx -y supergateway --stdio npx", "uvx --from x python -m y"],
];
const STAY = [
  ...[
    "node /opt/server.js .",
    "python3 /opt/x.py -m",
    "/opt/server --stdio",
    "github-mcp-server stdio",
  ],
  ...[
    "npx -y @scope/server-filesystem .",
    "uvx mcp-server-git --repository .",
    "pnx x",
    "pn dlx x",
  ],
  ...["docker run -i --rm mcp/git", "env A=b npx -y x", "bunx x"],
];

Deno.test("loadsCodeFromFolder() knows commands that other files in their folder would change", () => {
  const takes = (line: string) => {
    const [command = "", ...args] = line.split(" ");
    return loadsCodeFromFolder({ name: "x", command, args });
  };
  assert.deepEqual(TAKE.filter((line) => !takes(line)), []);
  assert.deepEqual(STAY.filter(takes), []);
  const line = "cd /opt && exec uv run x";
  assert.ok(loadsCodeFromFolder({ name: "x", command: "sh", args: ["-c", line] }));
});
