import assert from "node:assert/strict";
import { join } from "node:path";
import { programOf } from "../servers/kinds.ts";
import { readAt, readFile as read, Scratch } from "./_scratch_test.ts";
import { readWorkspaceFile } from "./file.ts";

const SERVERS = JSON.stringify({
  version: 1,
  private_mcps: {
    weather: { type: "deno", path: "./mcp/weather.ts", confine: true },
    db: {
      type: "stdio",
      install: { command: "npx", args: ["-y", "x"], env: { A: "${B}" } },
      cwd: "sub",
      tools: ["db:query", "list"],
    },
    docs: {
      type: "http",
      url: "https://docs.example.com/mcp",
      headers: { Authorization: "B" },
    },
  },
  mcpServers: {
    GitHub: { command: "npx", env: { TOKEN: "${GITHUB_TOKEN}" } },
    remote: { type: "sse", url: "http://10.0.0.1/sse" },
    off: { command: "x", disabled: true },
  },
});

Deno.test("readWorkspaceFile() repeats no value that may be a secret", async () => {
  const texts = [
    '{"version": 1, "mcpServers": {"a": {"command": "x", "env": "hunter2hunter2"}}}',
    '{"version": 1, "mcpServers": {"a": {"url": "https://x.y/", "headers": {"A": "hunter2\\n"}}}}',
    '{"version": 1, "registries": ["https://me:hunter2@x.y/"]}',
    '{"version": 1, "mcpServers": {"a": {"command": "x", "env": {"T": hunter2}}}}',
    '{"version": 1, "mcpServers": {"a": {"command": "x", "headers": {"T": "hunter2}}}}',
  ];
  for (const text of texts) {
    const { error } = await read(text);
    assert.ok(error, text);
    assert.ok(!JSON.stringify([error.message, error.detail]).includes("hunter2"), text);
  }
});

Deno.test("readWorkspaceFile() warns of an address that is not valid, without its value", async () => {
  for (const url of ["https://me:hunter2@x.y/", "htt://x.y/?key=hunter2", "hunter2"]) {
    const { file, error, warnings } = await read(JSON.stringify({ mcpServers: { a: { url } } }));
    assert.equal(error, undefined);
    assert.equal(file?.servers.length, 1);
    assert.match(warnings.join(), /mcpServers\.a\.url is not a URL that begins/);
    assert.doesNotMatch(warnings.join(), /hunter2/);
  }
});

Deno.test("readWorkspaceFile() takes the entry of a registry in private_mcps", async () => {
  const install = {
    command: "npx",
    args: ["-y", "x@1"],
    env: { B: "b" },
    env_required: ["A", "B"],
  };
  const entry = { type: "stdio", fqdn: "acme.db", version: "1.0.0", integrity: "x", install };
  const tools = [{ name: "query", inputSchema: { type: "object" } }, "db:list"];
  const value = { private_mcps: { db: { ...entry, env_required: ["C"], tools } } };
  const { file, error } = await read(JSON.stringify(value));
  assert.equal(error, undefined);
  const [db] = file?.servers ?? [];
  assert.ok(db !== undefined);
  assert.deepEqual(programOf(db)?.env, { C: "${C}", A: "${A}", B: "b" });
  assert.deepEqual(db.tools, ["query", "list"]);
});

Deno.test("readWorkspaceFile() merges both kinds of servers and resolves paths next to the real file", async () => {
  using scratch = new Scratch();
  const real = scratch.write(
    "elsewhere/real.json",
    SERVERS,
  );
  const path = join(scratch.ws, ".pml.json");
  Deno.symlinkSync(real, path);
  const { file, error } = await readAt(path, readWorkspaceFile);
  assert.equal(error, undefined);
  assert.equal(file?.realPath, real);
  const folder = join(scratch.root, "elsewhere");
  const expected = [
    { kind: "deno", path: join(folder, "mcp/weather.ts"), confine: true, name: "weather" },
    {
      kind: "stdio",
      command: "npx",
      args: ["-y", "x"],
      env: { A: "${B}" },
      cwd: join(folder, "sub"),
      tools: ["query", "list"],
      name: "db",
    },
    {
      kind: "http",
      url: "https://docs.example.com/mcp",
      headers: { Authorization: "B" },
      name: "docs",
    },
    {
      kind: "stdio",
      command: "npx",
      args: [],
      env: { TOKEN: "${GITHUB_TOKEN}" },
      name: "github",
      title: "GitHub",
    },
    { kind: "http", url: "http://10.0.0.1/sse", isSse: true, headers: {}, name: "remote" },
  ];
  assert.deepEqual(JSON.parse(JSON.stringify(file?.servers)), expected);
});

Deno.test("readWorkspaceFile() calls two servers of one name NAME_CONFLICT", async () => {
  const { file, error } = await read(JSON.stringify({
    version: 1,
    private_mcps: { github: { type: "http", url: "https://a.b/" } },
    mcpServers: { GitHub: { command: "x" } },
  }));
  assert.equal(file, undefined);
  assert.equal(error?.code, "NAME_CONFLICT");
  assert.match(error?.message ?? "", /key "mcpServers.GitHub": found a second server "github"/);
});

Deno.test("readWorkspaceFile() lets a definition name none but its own tools", async () => {
  for (const tool of ["other:query", "db:que  ry", "db: query", ""]) {
    const { error } = await read(JSON.stringify({
      version: 1,
      private_mcps: { db: { type: "http", url: "https://x.y", tools: [tool] } },
    }));
    assert.match(
      error?.message ?? "",
      /key "private_mcps.db.tools": .*wanted tools of this/,
    );
  }
});

Deno.test("readWorkspaceFile() takes no approval from a client's own lists", async () => {
  const { file, warnings } = await read(JSON.stringify({
    version: 1,
    mcpServers: { a: { command: "x", autoApprove: ["y"] } },
  }));
  assert.equal(file?.permissions, undefined);
  assert.match(warnings.join(), /only rules allow/);
});
