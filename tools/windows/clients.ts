/**
 * Clients of PML: two revisions of MCP, the SDK's client in the demo, and npm servers behind PML.
 *
 * @module
 */

import { join } from "node:path";
import { textOf } from "../../tests/attacks/oracles.ts";
import { type Era, ERAS } from "../../tests/kit/json_rpc.ts";
import type { Checks, Part } from "./part.ts";
import { ANSWER_MS, makeScene } from "./scene.ts";
import type { Wine } from "./wine.ts";

const VERSION = "2026.8.31";

/** Calls a tool in each revision. */
export const RAW_CLIENTS: readonly Part[] = ERAS.map((era) => ({
  name: `raw client ${era}`,
  run: (wine, checks) => speak(wine, { era, checks }),
}));

async function speak(
  wine: Wine,
  { era, checks }: { readonly era: Era; readonly checks: Checks },
): Promise<void> {
  await using scene = await makeScene(wine, { files: { "a.txt": "AAA\n" } });
  await using client = scene.open({ era });
  checks.match(
    "first answer",
    JSON.stringify(await client.open()),
    /"serverInfo":|"capabilities":/,
  );
  const list = await client.request("tools/list", {}, { ms: ANSWER_MS });
  checks.match("tools/list", JSON.stringify(list), /"name":"call"/);
  const read = { tool: "filesystem:read_file", arguments: { path: "a.txt" } };
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => client.callTool("call", read, { ms: ANSWER_MS })),
  );
  checks.match("calls at once", answers.map(textOf).join(""), /^(?:AAA\n){4}$/);
  // More bytes than the buffer of a pipe.
  const text = "x".repeat(300_000);
  await Deno.writeTextFile(scene.ws.file("large.txt"), text);
  const large = await client.callTool("call", { ...read, arguments: { path: "large.txt" } }, {
    ms: ANSWER_MS,
  });
  checks.match("a large answer", `${textOf(large).length > 50_000}`, /true/);
  const { code } = await client.close();
  checks.match("end of input", `code ${code}`, /^code 0$/);
}

/** Runs the demo. */
export const DEMO: Part = {
  name: "demo",
  run: async (wine, checks) => {
    const demo = wine.command("deno.exe", "run", "-A", "Z:\\pml\\tools\\demo.ts");
    const { code, stdout, stderr } = await wine.run(demo, { seconds: 180 });
    const steps = stdout.matchAll(/^(\d+\. .*)\n +(\S.*)$/gm);
    for (const [, step = "", outcome = ""] of steps) checks.match(step, outcome, /^(?!.*NOT AS)/);
    checks.match("end", `code ${code} ${stderr.slice(-300)}`, /^code 0 /);
  },
};

/** Calls two npm servers, which PML starts with Node for Windows. */
export const NPM_SERVERS: Part = {
  name: "npm servers",
  run: async (wine, checks) => {
    const packages = join(wine.drive, "packages");
    await install(packages, ["filesystem", "memory"]);
    const startOf = (name: string) => ({
      command: "node",
      args: [join(packages, `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`)]
        .map((path) => wine.windowsPath(path)),
    });
    const filesystem = startOf("filesystem");
    const mcpServers = {
      files: { ...filesystem, args: [...filesystem.args, "."] },
      memory: {
        ...startOf("memory"),
        env: { MEMORY_FILE_PATH: "${workspaceFolder}/memory.jsonl" },
      },
    };
    const permissions = { allow: ["files:*", "memory:*"] };
    const pml = { version: 1, permissions, mcpServers };
    await using scene = await makeScene(wine, { pml, files: { "a.txt": "AAA\n" } });
    await using client = scene.open();
    await client.open();
    const call = async (tool: string, args: Readonly<Record<string, unknown>>) =>
      textOf(await client.callTool("call", { tool, arguments: args }, { ms: ANSWER_MS }));
    const entities = [{ name: "PML", entityType: "gateway", observations: ["runs servers"] }];
    const calls: readonly (readonly [string, Readonly<Record<string, unknown>>, RegExp])[] = [
      ["files:read_text_file", { path: "a.txt" }, /^AAA/],
      ["files:read_text_file", { path: "C:\\windows\\win.ini" }, /denied/],
      ["memory:create_entities", { entities }, /PML/],
      ["memory:search_nodes", { query: "gateway" }, /runs servers/],
    ];
    for (const [tool, args, wanted] of calls) {
      await checks.try(tool, async () => checks.match(tool, await call(tool, args), wanted));
    }
    await client.close();
  },
};

async function install(folder: string, names: readonly string[]): Promise<void> {
  const specs = names.map((name) => `@modelcontextprotocol/server-${name}@${VERSION}`);
  const { success, stderr } = await new Deno.Command("npm", {
    args: ["install", "--prefix", folder, "--no-audit", "--no-fund", "--loglevel=error", ...specs],
  }).output();
  if (!success) throw new Error(`npm failed: ${new TextDecoder().decode(stderr)}`);
}
