import assert from "node:assert/strict";
import type { ProgramDefinition } from "../servers/kind.ts";
import { Scratch } from "./_scratch_test.ts";
import { serverText, shownLines } from "./workspace_lines.ts";
import { assertGolden } from "../../tests/kit/golden.ts";

const NO_NETWORK = { get: () => undefined };

Deno.test("shownLines() cuts nothing off that a yes would cover", async () => {
  using scratch = new Scratch();
  const read = [...Array.from({ length: 300 }, (_, at) => `docs/part-${at}`), "/etc"];
  const path = `${"d/".repeat(1_500)}last.ts`;
  scratch.write(
    "ws/.pml.json",
    JSON.stringify({
      version: 1,
      grants: { filesystem: { read } },
      private_mcps: { mine: { type: "deno", path } },
    }),
  );
  const { file } = await scratch.load();
  assert.ok(file !== undefined);
  const lines = shownLines(file, NO_NETWORK).join("\n");
  assert.ok(lines.includes('"/etc"'));
  assert.ok(lines.includes("last.ts"));
});

Deno.test("shownLines() says that the cloud that a file names is sent the person's key", async () => {
  using scratch = new Scratch();
  const cloud = { url: "https://cloud.example.com" };
  scratch.write("ws/.pml.json", JSON.stringify({ version: 1, cloud }));
  const { file } = await scratch.load();
  assert.ok(file !== undefined);
  const text = shownLines(file, NO_NETWORK).join("\n");
  assert.ok(text.startsWith(`cloud: ${JSON.stringify(cloud)} (`), text);
  assert.match(text, / PML_API_KEY /);
  assertGolden("trust/a cloud", text);
});

Deno.test("shownLines() writes the settings of the gateway in the form of the file", async () => {
  using scratch = new Scratch();
  const gateway = {
    tools_exposure: "hybrid",
    meta_tools: ["search", "call"],
    prefix: true,
    hybrid: {
      max_underlying_tools: 5,
      max_tokens: 900,
      whitelisted_tools: ["github:*", "db:query"],
      blacklisted_tools: [],
    },
  };
  scratch.write("ws/.pml.json", JSON.stringify({ version: 1, gateway }));
  const { file } = await scratch.load();
  assert.ok(file !== undefined);
  assert.deepEqual(shownLines(file, NO_NETWORK), [`gateway: ${JSON.stringify(gateway)}`]);
});

Deno.test("serverText() says how a server runs, and what could hold one of npm", () => {
  const server: ProgramDefinition = {
    ...{ kind: "stdio", name: "gh" },
    ...{ command: "npx", args: ["-y", "x"], env: {} },
  };
  assertGolden("trust/a server that runs freely", serverText(server));
  assertGolden("trust/a confined server", serverText({ ...server, confine: true }));
  for (const confine of [false, true]) {
    const tried = serverText({ ...server, confine }, { trial: { isConfined: true } });
    assert.equal(tried.includes("with your rights"), !confine);
  }
  // Without a layer of the system, a program of the grants could do everything.
  assert.match(serverText(server, { trial: { isConfined: false } }), /with your rights$/);
  const other: ProgramDefinition = { ...server, command: "/opt/db" };
  assert.match(serverText(other), /with your rights$/);
});

Deno.test("serverText() says what installs a package without PML, and what steers one", () => {
  const text = (...[command = "", ...args]: readonly string[]) => {
    const program: ProgramDefinition = { kind: "stdio", name: "gh", command, args, env: {} };
    return serverText(program);
  };
  const unpinned = [
    ["sh", "-c", "cd x && npx -y tiny"],
    ["bash", "-lc", "npx -y tiny > log"],
    ["sh", "-c", "/usr/bin/npm exec -y $TINY"],
    ["docker", "run", "-i", "node:22", "npx", "-y", "tiny"],
    ["mcp-proxy", "--", "uvx", "tiny"],
    ["env", "-i", "pnpm", "dlx", "tiny"],
    ["wsl", "uv", "tool", "run", "tiny"],
  ];
  for (const words of unpinned) {
    assert.match(text(...words), /with your rights, .*unpinned$/);
  }
  const others = [
    ["npx", "-y", "tiny"],
    ["sh", "-c", "npx -y tiny"],
    ["env", "A=b", "bash", "-lc", "exec npx -y tiny"],
    ["cmd", "/c", "npx", "-y", "tiny"],
    ["/opt/npx/server", "--npx-like", "/srv/npx/x"],
    ["uv", "tool", "run", "tiny"],
    ["npm", "run", "exec"],
  ];
  for (const words of others) assert.doesNotMatch(text(...words), /unpinned/);
  assert.match(text("sh", "-c", "npx -y tiny"), /\(`pml learn gh` tries/);
  assert.match(
    text("npx", "-y", "--node-options=--require=./x.cjs", "tiny"),
    /"--node-options=--require=\.\/x\.cjs".* steered by `--node-options`$/,
  );
});

Deno.test("shownLines() says what of the network servers find, without passwords", async () => {
  using scratch = new Scratch();
  const server = { command: "run" };
  scratch.write("ws/.pml.json", JSON.stringify({ version: 1, mcpServers: { mine: server } }));
  const { file } = await scratch.load();
  assert.ok(file !== undefined);
  const values: Readonly<Record<string, string>> = {
    HTTPS_PROXY: "http://me:p@ss/w:rd@proxy:3128/",
    http_proxy: "me:hidden@proxy",
    ALL_PROXY: "socks5://token@proxy",
    NO_PROXY: "localhost,.corp",
    SSL_CERT_FILE: "/home/a@b/ca.pem",
    OTHER: "other",
  };
  const [, line] = shownLines(file, { get: (name) => values[name] });
  const lines = [
    'HTTPS_PROXY="http://[redacted]@proxy:3128/", ALL_PROXY="socks5://[redacted]@proxy"',
    'NO_PROXY="localhost,.corp", http_proxy="[redacted]@proxy"',
    'SSL_CERT_FILE="/home/a@b/ca.pem"',
  ];
  assert.ok(line?.endsWith(lines.join(", ")), line);
  assertGolden("trust/variables of the network", line);
});
