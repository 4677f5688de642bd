import assert from "node:assert/strict";
import { withoutServers } from "./_client_removal.ts";

const YAML = `name: mine # the name
mcpServers:
  - name: one
    command: first
  # the second
  - name: two
    command: second
`;

Deno.test("withoutServers() removes items of a YAML list, and keeps the others with their comments", async () => {
  const rest = await withoutServers(YAML, "config.yaml", [["mcpServers", "one"]]);
  assert.equal(rest, YAML.replace("  - name: one\n    command: first\n", ""));
  const crlf = YAML.replaceAll("\n", "\r\n");
  const other = await withoutServers(crlf, "config.yaml", [["mcpServers", "two"]]);
  assert.match(other, /first\r\n/);
  assert.doesNotMatch(other, /second\r\n$/);
});

Deno.test("withoutServers() removes tables of TOML with the tables in them, under quoted names, too", async () => {
  const text = 'a = 1\n[mcp_servers."x.y"]\ncommand = "x"\n[mcp_servers."x.y".env]\nA = "1"\n' +
    '[mcp_servers.other]\ncommand = "y" # mine\n';
  const rest = await withoutServers(text, "config.toml", [["mcp_servers", "x.y"]]);
  assert.equal(rest, 'a = 1\n[mcp_servers.other]\ncommand = "y" # mine\n');
  const inline = 'mcp_servers = { x = { command = "x" } }\n';
  await assert.rejects(withoutServers(inline, "config.toml", [["mcp_servers", "x"]]), {
    code: "CONFIG_INVALID",
  });
});

Deno.test("withoutServers() removes a member of JSON, and does not change a file where that is unclear", async () => {
  const text = '{\n  // mine\n  "mcpServers": {"one": {}, "two": {} /* 2 */}\n}\n';
  const rest = await withoutServers(text, "x.json", [["mcpServers", "one"]]);
  assert.match(rest, /\/\/ mine[^]*"two": \{\} \/\* 2 \*\//);
  const twice = '{"mcpServers": {"one": {}}, "mcpServers": {"one": {}}}';
  await assert.rejects(withoutServers(twice, "x.json", [["mcpServers", "one"]]), {
    code: "CONFIG_INVALID",
  });
});
