import assert from "node:assert/strict";
import { once } from "node:events";
import { generateKeyPairSync } from "node:crypto";
import { connect } from "node:net";
import type { Fetch } from "../src/core/fetch.ts";
import { parseModuleMeta } from "../src/core/tool.ts";
import { contractSource } from "../src/registry/_contract.ts";
import { Official } from "../src/registry/_official.ts";
import { Cache } from "../src/registry/cache.ts";
import { integrityOf } from "../src/registry/integrity.ts";
import { Registries } from "../src/registry/registries.ts";
import { serveFolder } from "../src/registry/serving.ts";
import { verifyManifest } from "../src/registry/signature.ts";
import { officialAnswers } from "./kit/fake_official.ts";
import { FakeRegistry } from "./kit/fake_registry.ts";
import { pmlCommand } from "./kit/pml_command.ts";
import { ProcWatch } from "./kit/procwatch.ts";
import { within } from "./kit/wait.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const GREETER = `export const __meta__ = {
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
// Where it runs in the trusted process, or with a grant, it leaves its mark.
const EVIL = `try { Deno.writeTextFileSync("MARK", "was here"); } catch { /* denied */ }
export const __meta__ = { name: "evil", tools: { a: {} } };
export function a() {}
`;
const FILES = {
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
};

const hash = (text: string) => integrityOf(new TextEncoder().encode(text));
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
const CATALOG = '{"items":[{"fqdn":"docs","type":"http","version":"1.0.0","routing":"local"},' +
  '{"fqdn":"evil","type":"deno","version":"0.0.0","routing":"local"}],"next_cursor":"evil"}';

/** An answer as it goes over the wire, but for its date. */
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

/** The headers about `TYPE ROUTING VERSION`. */
function about(what: string, caching = "no-cache"): readonly string[] {
  const [type, routing, version] = what.split(" ");
  return [
    ...[`cache-control: ${caching}`, "vary: accept", `x-pml-type: ${type}`],
    ...[`x-pml-routing: ${routing}`, `x-pml-version: ${version}`],
  ];
}

const JSON_WANTED = "accept: application/json\r\n";
const OLD = GREETER.replace("1.2.0", "1.1.0");
const FOR_EVER = "public, max-age=31536000, immutable";
const NOT_FOUND = `{"error":"not_found","message":"MCP 'x' not in registry"}`;
const READ_ONLY =
  '{"error":"method_not_allowed","message":"This registry is read-only: GET and HEAD"}';

/** What is sent, and every byte that comes back. */
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

interface Serving extends AsyncDisposable {
  readonly port: number;
  readonly said: string;
  /** What it wrote to stderr, once it has ended with this code. */
  readonly end: () => Promise<{ readonly code: number; readonly stderr: string }>;
}

async function serve(workspace: Workspace, args: readonly string[]): Promise<Serving> {
  const [program, ...first] = pmlCommand();
  const child = new Deno.Command(program, {
    args: [...first, "registry", "serve", "--port", "0", "--json", ...args],
    ...{ cwd: workspace.path, env: { ...workspace.env }, clearEnv: true },
    ...{ stdin: "null", stdout: "piped", stderr: "piped" },
  }).spawn();
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
  return { port, said, end, [Symbol.asyncDispose]: async () => void await end().catch(() => {}) };
}

async function exchange(port: number, sent: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let back = "";
  socket.setEncoding("utf8").on("data", (chunk) => back += chunk);
  socket.write(sent);
  await once(socket, "close");
  return back;
}

async function asked(port: number, first: string, headers = ""): Promise<string> {
  const host = headers.includes("host:") ? "" : "host: 127.0.0.1\r\n";
  const sent = `${first} HTTP/1.1\r\n${host}connection: close\r\n${headers}\r\n`;
  return (await exchange(port, sent)).replace(/Date: .*/, "Date: DATE");
}

Deno.test("pml registry serve answers byte for byte as the contract says, and runs no module here", async () => {
  const mark = `/tmp/${crypto.randomUUID()}`;
  const files = { ...FILES, "evil.ts": EVIL.replace("MARK", mark) };
  await using workspace = await makeWorkspace({
    files: Object.fromEntries(
      Object.entries(files).map(([name, text]) => [`served/${name}`, text]),
    ),
  });
  const watch = new ProcWatch(workspace.tag);
  await using serving = await serve(workspace, ["served"]);
  const { port, said } = serving;
  assert.deepEqual(JSON.parse(said), { url: `http://127.0.0.1:${port}/mcp`, servers: 5 });
  for (const [first, headers, back] of PINS) {
    assert.equal(await asked(port, first, headers), back, `${first} ${headers}`);
  }
  await assert.rejects(Deno.stat(mark), Deno.errors.NotFound);

  // A page of the web that reaches the loopback by its own name, or from its own origin.
  for (
    const headers of [
      "host: evil.example\r\n",
      "host: 127.0.0.1\r\norigin: https://evil.example\r\n",
    ]
  ) {
    assert.match(await asked(port, "GET /mcp/greeter", headers), /^HTTP\/1.1 403 /, headers);
  }
  await Deno.writeTextFile(workspace.file("served/greeter.ts"), GREETER.replace("hello", "hi"));
  assert.match(await asked(port, "GET /mcp/greeter"), /return "hi " \+ who/);
  await Deno.writeTextFile(workspace.file("served/greeter.ts"), "throw new Error('no')");
  assert.match(await asked(port, "GET /mcp/greeter"), /x-pml-version: 1\.1\.0/);

  const { code, stderr } = await serving.end();
  assert.equal(code, 143);
  assert.match(stderr, /warning: Cannot serve "broken\.ts": Expression expected/);
  assert.match(stderr, /warning: Cannot serve "greeter\.ts": .*no/);
  await watch.assertNothingLeft();
});

const plainFetch: Fetch = async (url, { named: _, ...init }) =>
  await fetch(url, { ...init, redirect: "manual" });

Deno.test("Registries finds in a served folder, and in an official registry, what it can run", async () => {
  const files = { "served/greeter.ts": GREETER, "served/serena.json": FILES["serena.json"] };
  await using workspace = await makeWorkspace({ files });
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  await using served = await serveFolder(workspace.file("served"), {
    ...{ host: "127.0.0.1", port: 0, maxBytes: 10_000, warn: () => {} },
    privateKey: String(privateKey.export({ type: "pkcs8", format: "pem" })),
    describe: async (file, code) => {
      const url = `data:application/typescript,${
        encodeURIComponent(new TextDecoder().decode(code))
      }`;
      return parseModuleMeta((await import(url)).__meta__, file);
    },
  });
  const packages = [{ registryType: "npm", identifier: "maps-mcp", version: "2.0.0" }];
  const maps = { name: "com.example/Maps", version: "2.0.1", description: "Maps", packages };
  await using official = await FakeRegistry.open([], officialAnswers([{ server: maps }]));
  const closing = new AbortController();
  const { signal } = closing;
  const pem = String(publicKey.export({ type: "spki", format: "pem" }));
  const registries = new Registries({
    places: [
      { source: contractSource(served.url, { fetch: plainFetch }), publicKey: pem },
      { source: new Official(`mcp+${official.origin}`, { fetch: plainFetch }) },
    ],
    cache: new Cache(workspace.home, { warn: () => {} }),
    isPrivate: () => false,
    pinned: () => undefined,
    warn: () => {},
    closing: signal,
  });
  const found = await registries.find("greeter", { signal });
  assert.equal(found?.vouched, "signed by the key of this registry");
  const code = found && await registries.code(found, { signal });
  assert.equal(new TextDecoder().decode(code), GREETER);
  const serena = (await registries.find("serena", { signal }))?.manifest;
  assert.deepEqual([serena?.kind, serena?.tools[0]?.name], ["stdio", "analyze"]);
  const mapped = (await registries.find("com.example.maps", { signal }))?.manifest;
  assert.deepEqual(mapped?.kind === "stdio" && mapped.args, ["-y", "maps-mcp@2.0.0"]);
  await registries.refreshCatalog({ signal });
  const names = registries.catalog().map(({ fqdn }) => fqdn);
  assert.deepEqual(names.toSorted(), ["com.example.maps", "greeter", "serena"]);
  closing.abort();
});

Deno.test("serveFolder() signs each entry for the address that clients configure", async () => {
  await using workspace = await makeWorkspace({
    files: { "served/docs.json": FILES["docs.json"] },
  });
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const options = {
    ...{ host: "127.0.0.1", port: 0, maxBytes: 10_000, warn: () => {} },
    describe: () => Promise.reject(new Error("there is no module")),
    publicUrl: "https://mcp.example.com/mcp",
  };
  const pem = String(privateKey.export({ type: "pkcs8", format: "pem" }));
  const path = workspace.file("served");
  await using served = await serveFolder(path, { ...options, privateKey: pem });
  assert.equal(
    served.publicKey,
    publicKey.export({ type: "spki", format: "der" }).toString("base64"),
  );
  const entry = await (await fetch(`${served.url}/docs`)).json();
  const pinned = { registry: options.publicUrl, publicKey: served.publicKey ?? "" };
  assert.equal(verifyManifest(entry, pinned), Date.parse(entry.issued));
  const changed = (await Deno.stat(workspace.file("served/docs.json"))).mtime;
  assert.equal(entry.issued, changed?.toISOString());
  assert.throws(() => verifyManifest({ ...entry, url: "https://evil.example/mcp" }, pinned));
  const rsa = generateKeyPairSync("rsa", { modulusLength: 1_024 }).privateKey;
  for (const wrong of ["no key", String(rsa.export({ type: "pkcs8", format: "pem" }))]) {
    await assert.rejects(serveFolder(path, { ...options, privateKey: wrong }), {
      code: "CONFIG_INVALID",
      message: "Cannot sign entries: the key is no Ed25519 key as PEM",
    });
  }
});
