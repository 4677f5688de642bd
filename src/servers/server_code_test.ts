import assert from "node:assert/strict";
import type { ServerDefinition } from "./kind.ts";
import { foldersOf } from "../core/folder_variables.ts";
import { codeOf } from "./server_code.ts";

Deno.test("codeOf() finds the files of a server, also where a path has blanks or a shell starts it", () => {
  const folders = foldersOf({ workspace: "/ws", userHome: "/home/me" });
  const of = (command: string, ...args: string[]) =>
    codeOf({ kind: "stdio", name: "s", command, args } as unknown as ServerDefinition, folders);
  assert.ok(of("node", "/my server/server.js").includes("/my server/server.js"));
  assert.ok(of("sh", "-c", "exec python 'tools/run.py' --x").includes("/ws/tools/run.py"));
  assert.deepEqual(of("./bin/serve", "--port=1"), ["/ws/bin/serve", "/ws/bin/serve"]);
});

Deno.test("codeOf() fills in folders, and contains the file of variables", () => {
  const own = {
    kind: "stdio",
    name: "s",
    command: "node",
    args: ["main.js", "${userHome}/lib/a.js"],
    env: {},
    cwd: "${workspaceFolder}/tools",
    envFile: "${workspaceFolder}/vars",
  } as const;
  const found = codeOf(own, foldersOf({ workspace: "/ws", userHome: "/home/me" }));
  assert.deepEqual([...new Set(found)], ["/ws/tools/main.js", "/home/me/lib/a.js", "/ws/vars"]);
});
