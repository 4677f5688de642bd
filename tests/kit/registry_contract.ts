/**
 * The requests and responses of each registry of PML's own contract, byte for byte.
 *
 * @module
 */

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { integrityOf } from "../../src/core/hash.ts";
import { within } from "./wait.ts";
import type { Workspace } from "./workspace.ts";
import { IN_PROCESS, pidOf, type Running, startHubInProcess } from "./in_process.ts";
import { type Command, HUB } from "./pml_command.ts";

/** A module with a version in its metadata. */
export const GREETER = `export const __meta__ = {
  name: "greeter",
  version: "1.2.0",
  description: "Greets",
  tools: {
    greet: {
      description: "Greet somebody",
      inputSchema: { type: "object", properties: { who: { type: "string" } } },
      permissions: { env: ["GREETING"] },
    },
  },
};
export function greet({ who }) {
  return "hello " + who;
}
`;
/** Leaves its mark if it runs in the trusted process, or with a grant. */
export const EVIL = `try { Deno.writeTextFileSync("MARK", "was here"); } catch { /* denied */ }
export const __meta__ = { name: "evil", tools: { a: {} } };
export function a() {}
`;
const USED = `sha256-${"0".repeat(64)}`;
const hash = (text: string) => integrityOf(new TextEncoder().encode(text));
/** A capability is sent in its canonical form. */
const COPY = '{"description":"Copies a note","kind":"plan","parameters":{"type":"object"},' +
  '"plan":{"tasks":[{"arguments":{"text":{"$ref":"a#"}},"id":"b","tool":"fs:write"},' +
  '{"arguments":{},"id":"a","tool":"fs:read"}]},' +
  `"tools_used":{"fs:read":"${USED}","fs:write":"${USED}"},"version":1}`;
/** The files of the served folder. */
export const FILES = {
  "greeter.ts": GREETER,
  "greeter@1.1.0.ts": GREETER.replace("1.2.0", "1.1.0"),
  "evil.ts": EVIL,
  "broken.ts": "export const __meta__ = ;",
  "serena.json": `{
    "type": "stdio", "version": "0.3.0", "description": "Code tools",
    "install": { "command": "uvx", "args": ["serena@0.3.0"], "env_required": ["SERENA_KEY"] },
    "tools": ["serena:analyze"], "warnings": { "creates_dotfiles": [".serena"] }
  }`,
  "docs.json": `{ "type": "http", "version": "1.0.0", "url": "https://docs.example.com/mcp" }`,
  "tavily.json": `{
    "type": "cloud", "version": "2.0.0", "proxy_to": "https://t.example.com/mcp",
    "env_required": ["TAVILY_API_KEY"]
  }`,
  // In the format of `pml capability export`.
  "text__copy@1.0.0.json": JSON.stringify(
    {
      ...{ name: "text:copy", hash: hash(COPY), version: 1 },
      kind: "plan",
      plan: {
        tasks: [
          { id: "b", tool: "fs:write", arguments: { text: { $ref: "a#" } } },
          { id: "a", tool: "fs:read", arguments: {} },
        ],
      },
      description: "Copies a note",
      parameters: { type: "object" },
      tools_used: { "fs:write": USED, "fs:read": USED },
      definitions: { "fs:read": { name: "read", inputSchema: { type: "object" } } },
    },
    null,
    2,
  ),
};

const GREET = {
  ...{ description: "Greet somebody", name: "greet" },
  inputSchema: { type: "object", properties: { who: { type: "string" } } },
  permissions: { read: [], write: [], net: [], run: [], env: ["GREETING"] },
};
const MANIFEST = JSON.stringify({
  ...{ fqdn: "greeter", type: "deno", version: "1.2.0", description: "Greets" },
  permissions: GREET.permissions,
  tools: [GREET],
  ...{ env_required: ["GREETING"], warnings: [], routing: "local", integrity: hash(GREETER) },
});
const SERENA = '{"fqdn":"serena","type":"stdio","version":"0.3.0","description":"Code tools",' +
  '"install":{"command":"uvx","args":["serena@0.3.0"],"env_required":["SERENA_KEY"]},' +
  '"tools":["serena:analyze"],"env_required":["SERENA_KEY"],' +
  '"warnings":{"creates_dotfiles":[".serena"]},"routing":"local"}';
const DOCS =
  '{"fqdn":"docs","type":"http","version":"1.0.0","url":"https://docs.example.com/mcp",' +
  '"tools":[],"env_required":[],"warnings":[],"routing":"local"}';
const TAVILY = '{"fqdn":"tavily","type":"cloud","version":"2.0.0",' +
  '"proxy_to":"https://t.example.com/mcp","tools":[],"env_required":["TAVILY_API_KEY"],' +
  '"warnings":[],"routing":"cloud"}';
const COPYING = '{"fqdn":"text:copy","type":"capability","version":"1.0.0",' +
  '"description":"Copies a note","tools":[{"name":"copy","description":"Copies a note",' +
  '"inputSchema":{"type":"object"}}],"tools_used":["fs:read","fs:write"],"env_required":[],' +
  `"warnings":[],"routing":"local","integrity":"${hash(COPY)}"}`;
const CATALOG = '{"items":[{"fqdn":"docs","type":"http","version":"1.0.0","routing":"local"},' +
  '{"fqdn":"evil","type":"deno","version":"0.0.0","routing":"local"}],"next_cursor":"evil"}';

/** Returns a response as it is sent, without its date. */
function answered(status: string, headers: readonly string[], body = ""): string {
  return [`HTTP/1.1 ${status}`, ...headers, "Date: DATE", "Connection: close", "", body]
    .join("\r\n");
}

function served(body: string, type: string, rest: readonly string[]): string {
  const head = [
    `content-type: application/${type}`,
    `content-length: ${new TextEncoder().encode(body).length}`,
    `etag: "${hash(body)}"`,
  ];
  return answered("200 OK", [...head, ...rest], body);
}

/** Returns the headers for `TYPE ROUTING VERSION`. */
function about(what: string, caching = "no-cache"): readonly string[] {
  const [type, routing, version] = what.split(" ");
  return [
    ...[`cache-control: ${caching}`, "vary: accept", `x-pml-type: ${type}`],
    ...[`x-pml-routing: ${routing}`, `x-pml-version: ${version}`],
  ];
}

/**
 * PML requests the code of a pinned entry with this type. Clients that do not name it get a module.
 */
const CODE_WANTED = "accept: application/typescript\r\n";
const JSON_WANTED = "accept: application/json\r\n";
const OLD = GREETER.replace("1.2.0", "1.1.0");
const FOR_EVER = "public, max-age=31536000, immutable";
const NOT_FOUND = `{"error":"not_found","message":"MCP 'x' not in registry"}`;
const READ_ONLY =
  '{"error":"method_not_allowed","message":"This registry is read-only: GET and HEAD"}';

/** Each request, and every byte of its response. */
const PINS: readonly (readonly [sent: string, headers: string, back: string])[] = [
  ["GET /mcp/greeter", "", served(GREETER, "typescript", about("deno local 1.2.0"))],
  [
    "GET /mcp/greeter@1.1.0",
    "",
    served(OLD, "typescript", about("deno local 1.1.0", FOR_EVER)),
  ],
  ["GET /greeter", JSON_WANTED, served(MANIFEST, "json", about("deno local 1.2.0"))],
  ["GET /mcp/serena", JSON_WANTED, served(SERENA, "json", about("stdio local 0.3.0"))],
  ["GET /mcp/docs", JSON_WANTED, served(DOCS, "json", about("http local 1.0.0"))],
  ["GET /mcp/tavily", "", served(TAVILY, "json", about("cloud cloud 2.0.0"))],
  [
    "GET /mcp/text:copy@1.0.0",
    CODE_WANTED,
    served(COPY, "typescript", about("capability local 1.0.0", FOR_EVER)),
  ],
  ["GET /mcp/text:copy", JSON_WANTED, served(COPYING, "json", about("capability local 1.0.0"))],
  ["GET /mcp?limit=2", "", served(CATALOG, "json", ["cache-control: no-cache"])],
  [
    "HEAD /mcp/docs",
    "",
    served(DOCS, "json", about("http local 1.0.0")).replace(/\r\n\r\n.*$/s, "\r\n\r\n"),
  ],
  [
    "GET /mcp/greeter",
    `if-none-match: "${hash(GREETER)}"\r\n`,
    answered("304 Not Modified", [`etag: "${hash(GREETER)}"`, ...about("deno local 1.2.0")]),
  ],
  [
    "GET /mcp/x",
    "",
    answered("404 Not Found", ["content-type: application/json", "content-length: 57"], NOT_FOUND),
  ],
  [
    "DELETE /mcp/greeter",
    "",
    answered("405 Method Not Allowed", [
      ...["content-type: application/json", "content-length: 83", "allow: GET, HEAD"],
    ], READ_ONLY).replace("Date: DATE\r\nConnection: close", "connection: close\r\nDate: DATE"),
  ],
];

/** A program that serves. */
export interface Serving extends AsyncDisposable {
  readonly port: number;
  readonly pid: number;
  readonly said: string;
  /** Ends the program, and returns its exit code and stderr. */
  readonly end: () => Promise<{ readonly code: number; readonly stderr: string }>;
}

/** Spawns a command that prints the address that it listens on as JSON. */
export function spawnServing(workspace: Workspace, [program, ...args]: Command): Promise<Serving> {
  return servingOf(
    new Deno.Command(program, {
      args,
      ...{ cwd: workspace.path, env: { ...workspace.env }, clearEnv: true },
      ...{ stdin: "null", stdout: "piped", stderr: "piped" },
    }).spawn(),
  );
}

/**
 * Starts a hub on a free port: in this process, unless `ownProcess` is true, for tests of its memory
 * and of kills.
 */
export function serveHub(
  workspace: Workspace,
  more: readonly string[] = [],
  { ownProcess = !IN_PROCESS } = {},
): Promise<Serving> {
  const args = ["serve", "--port", "0", "--json", ...more];
  if (ownProcess) return spawnServing(workspace, [...HUB, ...args]);
  return servingOf(startHubInProcess({ args, cwd: workspace.path, env: workspace.env }));
}

async function servingOf(
  child: Pick<Running, "stdout" | "stderr" | "status" | "kill" | "pid">,
): Promise<Serving> {
  const stderr = new Response(child.stderr).text();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value: said = "" } = await within(reader.read(), { what: () => "it does not listen" });
  const end = async () => {
    child.kill("SIGTERM");
    const { code } = await within(child.status, { what: () => "it does not end" });
    await reader.cancel();
    return { code, stderr: await stderr };
  };
  const port = Number(/127\.0\.0\.1:(\d+)/.exec(said)?.[1]);
  return {
    ...{ port, said, end },
    get pid() {
      return pidOf(child);
    },
    [Symbol.asyncDispose]: async () => void await end().catch(() => {}),
  };
}

async function exchange(port: number, request: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let back = "";
  socket.setEncoding("utf8").on("data", (chunk) => back += chunk);
  socket.write(request);
  await once(socket, "close");
  return back;
}

/** Sends a request on a new connection, and returns the response without its date. */
export async function rawRequest(port: number, first: string, headers = ""): Promise<string> {
  const host = headers.includes("host:") ? "" : "host: 127.0.0.1\r\n";
  const request = `${first} HTTP/1.1\r\n${host}connection: close\r\n${headers}\r\n`;
  return (await exchange(port, request)).replace(/Date: .*/, "Date: DATE");
}

/** Asserts that the server on a port answers by the contract, and to this machine alone. */
export async function assertContract(port: number): Promise<void> {
  for (const [first, headers, back] of PINS) {
    assert.equal(await rawRequest(port, first, headers), back, `${first} ${headers}`);
  }
  // A web page that reaches the loopback by its own host name, or from its own origin.
  for (
    const headers of [
      "host: evil.example\r\n",
      "host: 127.0.0.1\r\norigin: https://evil.example\r\n",
    ]
  ) {
    assert.match(await rawRequest(port, "GET /mcp/greeter", headers), /^HTTP\/1.1 403 /, headers);
  }
}
