import assert from "node:assert/strict";
import { join } from "node:path";
import { denoDir, makeWorkspace, type Workspace } from "./kit/workspace.ts";
import { repoFile } from "./kit/pml_command.ts";
import { runPml } from "./kit/run.ts";

const WEATHER = `
export const __meta__ = {
  name: "weather-now", version: "1.0.0",
  tools: {
    forecast: {
      description: "The weather */ of tomorrow",
      inputSchema: {
        type: "object",
        properties: { city: { type: "string" }, unit: { enum: ["C", "F"] } },
        required: ["city"],
      },
      outputSchema: {
        type: "object", properties: { degrees: { type: "number" } }, required: ["degrees"],
      },
    },
    secret: {},
    fails: {},
  },
};
export const forecast = ({ city }) => ({ degrees: city.length });
export const secret = () => 1;
export const fails = () => ({ content: [{ type: "text", text: "it broke" }], isError: true });
`;

function weather(): Promise<Workspace> {
  return makeWorkspace({
    files: { "weather.js": WEATHER, "README.md": "read" },
    pml: {
      version: 1,
      permissions: {
        allow: ["weather-now:*", "filesystem:read_file"],
        deny: ["weather-now:secret"],
      },
      private_mcps: { "weather-now": { type: "deno", path: "weather.js" } },
      mcpServers: { broken: { command: "/nowhere/at/all" } },
    },
  });
}

/** The program of docs/commands.md, with more calls. */
const [, SHOWN = ""] = /```ts\n([^]*?)```/.exec(
  await Deno.readTextFile(repoFile("docs/commands.md")),
) ?? [];
const PROGRAM = `${SHOWN.replace("{ openGateway }", "{ openGateway, ToolError }")}
const { degrees } = await mcp["weather-now"].forecast({ city: "Bern", unit: "C" });
const failed = await mcp["weather-now"].fails().catch((error) => error);
console.log(degrees.toFixed(1), failed instanceof ToolError, failed.message, failed.tool, text);
`;

async function deno(ws: Workspace, args: readonly string[]) {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: ws.path,
    env: { ...ws.env, DENO_DIR: denoDir() },
    clearEnv: true,
  }).output();
  const decoder = new TextDecoder();
  return { code, said: decoder.decode(stdout) + decoder.decode(stderr) };
}

Deno.test("pml types writes declarations with which a program is checked and runs", async () => {
  await using ws = await weather();
  const { code, stdout, stderr } = await runPml(ws, ["types", "weather-now", "filesystem"]);
  assert.deepEqual([code, stderr], [0, ""]);
  assert.match(stdout, /^\/\/ Written by `pml types weather-now filesystem`/);
  assert.match(stdout, /\/\*\* The weather \*\\\/ of tomorrow \*\//);
  assert.match(
    stdout,
    /forecast\(args: \{ city: string; unit\?: "C" \| "F" \}\): Promise<\{ degrees: number \}>;/,
  );
  assert.doesNotMatch(stdout, /secret/);
  const { imports, compilerOptions } = JSON.parse(await Deno.readTextFile(repoFile("deno.json")));
  const config = { imports: { ...imports, "@casys/pml": repoFile("mod.ts") }, compilerOptions };
  await Deno.writeTextFile(ws.file("deno.json"), JSON.stringify(config));
  await Deno.writeTextFile(ws.file("mcp.d.ts"), stdout);
  await Deno.writeTextFile(ws.file("program.ts"), PROGRAM);
  const ran = await deno(ws, ["run", "-A", "--no-lock", "program.ts"]);
  assert.match(ran.said, /^4\.0 true it broke weather-now:fails read$/m);
  await Deno.writeTextFile(
    ws.file("wrong.ts"),
    PROGRAM.replace('"C"', '"K"').replace("fails", "no"),
  );
  // One check of both files: all errors must be in the second one.
  const both = ["check", "--quiet", "--no-lock", "program.ts", "wrong.ts"];
  const checked = await deno(ws, both);
  assert.equal(checked.code, 1);
  assert.match(checked.said, /'"K"' is not assignable[^]*Property 'no' does not exist/);
  assert.match(checked.said, /at file:.*\/wrong\.ts:/);
  assert.ok(!checked.said.includes("program.ts"), checked.said);
});

Deno.test("pml types writes all servers, and lists the omitted ones", async () => {
  await using ws = await weather();
  const { code, stdout, stderr } = await runPml(ws, ["types"]);
  assert.equal(code, 0, stderr);
  for (const name of ["filesystem", "git", "shell", "sqlite", '"weather-now"']) {
    assert.ok(stdout.includes(`\n  ${name}: {\n`), name);
  }
  assert.match(stderr, /^Left out: broken \(.*\)$/m);
  await Deno.writeTextFile(join(ws.path, "mcp.d.ts"), stdout);
  const checked = await deno(ws, ["check", "--no-lock", "--no-config", "mcp.d.ts"]);
  assert.equal(checked.code, 0, checked.said);
  const json = JSON.parse((await runPml(ws, ["types", "weather-now", "--json"])).stdout);
  assert.deepEqual(json.servers[0].tools[0], {
    name: "forecast",
    args: '{ city: string; unit?: "C" | "F" }',
    output: "{ degrees: number }",
  });
});

Deno.test("pml types reports an unknown server, and why a server has no tools", async () => {
  await using ws = await weather();
  const unknown = await runPml(ws, ["types", "weather-nwo"]);
  assert.equal(unknown.code, 2);
  assert.equal(unknown.stdout, "");
  assert.match(
    unknown.stderr,
    /Cannot find the server "weather-nwo": it is not among .*weather-now/,
  );
  const broken = await runPml(ws, ["types", "filesystem", "broken"]);
  assert.equal(broken.code, 1);
  assert.equal(broken.stdout, "");
  assert.match(broken.stderr, /broken/);
  const help = await runPml(ws, ["types", "--help"]);
  assert.match(help.stdout, /pml types filesystem git > mcp\.d\.ts/);
});
