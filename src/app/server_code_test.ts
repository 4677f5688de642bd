import assert from "node:assert/strict";
import type { ServerDefinition } from "../config/servers.ts";
import { codeOf } from "./server_code.ts";

Deno.test("codeOf() finds the files of a server, also where a path has blanks or a shell starts it", () => {
  const of = (command: string, ...args: string[]) =>
    codeOf({ kind: "stdio", name: "s", command, args } as unknown as ServerDefinition, "/ws");
  assert.ok(of("node", "/my server/server.js").includes("/my server/server.js"));
  assert.ok(of("sh", "-c", "exec python 'tools/run.py' --x").includes("/ws/tools/run.py"));
  assert.deepEqual(of("./bin/serve", "--port=1"), ["/ws/bin/serve", "/ws/bin/serve"]);
});
