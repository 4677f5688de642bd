/**
 * The JSON of all commands that have `--json`: an object with named lists, and one spelling of names.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { COMMANDS } from "../src/cli/_commands.ts";
import { isObject } from "../src/core/json.ts";
import { repoFile } from "./kit/pml_command.ts";
import { runPml } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const MODULE = `export const __meta__ = {
  name: "weather", description: "Weather", tools: { today: { description: "Today" } },
};
export function today() { return "sun"; }
`;

/** Arguments for each command; a text says why a command cannot run here. */
const ARGUMENTS: Readonly<Record<string, readonly (readonly string[])[] | string>> = {
  call: [["filesystem:list_directory", "path=."]],
  tools: [[], ["git"], ["git:status"]],
  search: [["read", "a", "file"]],
  "search install-model": "it downloads a model",
  why: [["git:status"], ["tiny:tell"]],
  types: [["git"]],
  memory: [["show"], ["clear"]],
  capability: [["list"]],
  list: [[]],
  add: [["more", "--", "node", "more.js"], ["more", "--url", "https://mcp.example.com/"]],
  remove: [["tiny"]],
  outdated: [[]],
  upgrade: "it needs a package of npm",
  logs: [["tiny"]],
  allow: [["tiny:tell"]],
  ask: [["tiny:tell"]],
  deny: [["tiny:tell"]],
  rules: [["list"], ["remove", "git:status"], ["table", "tiny"]],
  trust: [[], ["--list"]],
  approve: [[]],
  pause: [[]],
  resume: [[]],
  install: "it needs a package of npm",
  login: "it needs a server with OAuth",
  logout: [["--all"]],
  lock: [[], ["--check"], ["update"]],
  init: [["--dry-run"]],
  update: "it asks a registry of packages",
  uninstall: [[]],
  import: [[], ["clients.json"]],
  learn: [["tiny"]],
  config: [[], ["set", "limits.children", "4"], ["intent", "x"], ["--preset", "balanced"]],
  key: [["list"]],
  audit: "each record is a line, as the journal has it",
  doctor: [[]],
  check: [["weather.ts"]],
  dev: "each event is a line",
  metrics: [[]],
  page: "it serves until it is ended",
  registry: "it serves until it is ended",
  serve: "it serves until it is ended",
  token: [["list"]],
};

/** Members whose content is of MCP, or was written by others. */
const OTHERS = new Set([
  ...["structuredContent", "inputSchema", "outputSchema", "annotations", "_meta", "content"],
  ...["definition", "example", "gateway"],
]);
/** Members that are objects with names of tools, settings or variables as their keys. */
const MAPS = new Set(["values", "tools", "grants", "env"]);
const MCP = new Set(["structuredContent", "inputSchema", "outputSchema", "isError"]);

function assertNames(value: unknown, at: string): void {
  if (Array.isArray(value)) return value.forEach((one) => assertNames(one, `${at}[]`));
  if (!isObject(value)) return;
  for (const [name, member] of Object.entries(value)) {
    const place = `${at}.${name}`;
    assert.ok(MCP.has(name) || /^(_meta|[a-z][a-z0-9]*(_[a-z0-9]+)*)$/.test(name), place);
    assert.ok(!["said", "into", "file", "filename"].includes(name), `another name: ${place}`);
    if (OTHERS.has(name)) continue;
    const isMap = MAPS.has(name) && isObject(member);
    for (const one of isMap ? Object.values(member) : [member]) assertNames(one, place);
  }
}

async function scene(): Promise<Workspace> {
  const tiny = { command: "node", args: ["tiny.mjs"] };
  const ws = await makeWorkspace({
    files: {
      "tiny.mjs": tinyServer('"fine"'),
      "weather.ts": MODULE,
      "clients.json": JSON.stringify({ mcpServers: { other: { command: "node", args: ["x"] } } }),
    },
    pml: {
      permissions: { allow: ["git:status", "filesystem:list_directory", "tiny:*"] },
      mcpServers: { tiny },
    },
  });
  await runPml(ws, ["call", "filesystem:write_file", "path=a", "content=b"]);
  return ws;
}

Deno.test("every command with --json prints one object, whose members are spelled alike", async () => {
  await using ws = await scene();
  const page = await Deno.readTextFile(repoFile("docs/commands.md"));
  const section = page.slice(page.indexOf("members of the object"));
  const cells = section.matchAll(/^\| (`[a-z`, -]+`) +\|/gm);
  const documented = new Set(
    [...cells].flatMap(([, cell = ""]) => cell.split(", ").map((one) => one.replaceAll("`", ""))),
  );
  for (const row of Object.values(COMMANDS).flat()) {
    if (row.options?.["--json"] === undefined) continue;
    const name = [row.under, row.usage.split(" ", 1)[0]].filter(Boolean).join(" ");
    const all = ARGUMENTS[name];
    assert.ok(all !== undefined, `no arguments for pml ${name}`);
    assert.ok(documented.has(name), `docs/commands.md has no JSON of ${name}`);
    if (typeof all === "string") continue;
    for (const words of all) {
      const line = ["pml", name, ...words].join(" ");
      const [at] = [words.indexOf("--")];
      const [own, rest] = at < 0 ? [words, []] : [words.slice(0, at), words.slice(at)];
      const { stdout, stderr } = await runPml(ws, [...name.split(" "), ...own, "--json", ...rest]);
      assert.notEqual(stdout, "", `${line}: ${stderr}`);
      const value = JSON.parse(stdout);
      assert.ok(isObject(value), `${line}: ${stdout.slice(0, 100)}`);
      assert.equal(value.error, undefined, stdout);
      assertNames(value, line);
    }
  }
  const { calls } = JSON.parse((await runPml(ws, ["approve", "--json"])).stdout);
  assert.ok(calls.length > 0, "a list that is empty shows no names");
  await assert.rejects(Deno.stat(join(ws.path, "a")), Deno.errors.NotFound);
});
