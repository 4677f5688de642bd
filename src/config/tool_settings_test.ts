import assert from "node:assert/strict";
import type { JsonObject } from "../core/json.ts";
import { toolSlug } from "../core/tool_id.ts";
import { readAt, readFile as read, Scratch } from "./_scratch_test.ts";
import { argumentTexts, sentArguments, shownArguments } from "./fixed_arguments.ts";
import { expand } from "./expand.ts";
import { readUserConfig } from "./user_config.ts";
import { shownLines } from "./workspace_lines.ts";
import { wantedKeys } from "./wanted_keys.ts";
import { assertGolden } from "../../tests/kit/golden.ts";

const TOOLS = {
  "*": { disabled: true },
  search_code: {
    rename: "find_code",
    description: "Finds code",
    arguments: { owner: "acme", token: "${CODE_TOKEN}", filter: { in: ["${AREA:-src}", 7] } },
  },
  "do it!": { rename: "do_it" },
};

async function serverOf(tools: object) {
  const text = JSON.stringify({ version: 1, mcpServers: { github: { command: "x", tools } } });
  return await read(text);
}

Deno.test("serversOf() reads the settings of tools, by the names of rules", async () => {
  const { file, error, path } = await serverOf(TOOLS);
  assert.equal(error, undefined);
  const { settings } = file?.servers[0] ?? {};
  assert.equal(settings?.file, path);
  assert.deepEqual(JSON.parse(JSON.stringify([...settings?.of ?? []])), [
    ["*", { disabled: true }],
    ["search_code", TOOLS.search_code],
    [toolSlug("do it!"), { rename: "do_it" }],
  ]);
  // A list contains the tools to keep, as before.
  const listed = await serverOf(["a", "github:b"]);
  const [server] = listed.file?.servers ?? [];
  assert.deepEqual(server?.kind === "stdio" && server.tools, ["a", "b"]);
  assert.equal(server?.settings, undefined);
});

Deno.test("serversOf() reports problems of the settings of tools, with their place", async () => {
  const wrong = {
    'key "mcpServers.github.tools.a.renam": found an unknown key': {
      a: { renam: "b" },
    },
    'key "mcpServers.github.tools.a.rename": found "a:b" (a string)': {
      a: { rename: "a:b" },
    },
    'key "mcpServers.github.tools.b.rename": found a second tool': {
      a: { rename: "c" },
      b: { rename: "C" },
    },
    'key "mcpServers.github.tools.*": found more than disabled': { "*": { rename: "a" } },
  };
  for (const [message, tools] of Object.entries(wrong)) {
    const { error } = await serverOf(tools);
    assert.ok(error?.message.includes(message), error?.message);
  }
  const { error } = await serverOf({ a: { arguments: "hunter2hunter2" } });
  assert.doesNotMatch(JSON.stringify([error?.message, error?.detail]), /hunter2/);
});

Deno.test("fixed arguments keep the text of numbers, in each syntax", async () => {
  const args =
    '{"id":725653563933458432,"deep":[1.0,{"small":-0,"text":"1.0"}],"far":[1e400,-1e400],"plain":7}';
  const json =
    `{"version":1,"mcpServers":{"s":{"command":"x","tools":{"t":{"arguments":${args}}}}}}`;
  const commented = json.replace('"deep"', '/* a list */ "deep"');
  const yaml = `mcpServers: { s: { command: x, tools: { t: { arguments: ${args} } } } }`;
  using scratch = new Scratch();
  const files = [
    (await read(json)).file,
    (await read(commented)).file,
    (await readAt(scratch.write("config.yaml", yaml), readUserConfig)).file,
  ];
  for (const file of files) {
    const written = file?.servers[0]?.settings?.of.get("t")?.arguments ?? {};
    assert.equal(JSON.stringify(written), args);
    const sent = sentArguments(written, argumentTexts(written));
    const shown = shownArguments(written, true, assert.fail);
    assert.deepEqual([JSON.stringify(sent), JSON.stringify(shown)], [args, args]);
  }
});

Deno.test("a fixed argument of YAML that is not a JSON number is a problem", async () => {
  using scratch = new Scratch();
  for (const number of [".inf", "-.inf", ".nan"]) {
    const args = `{ id: [{ deep: ${number} }] }`;
    const yaml = `mcpServers: { s: { command: x, tools: { t: { arguments: ${args} } } } }`;
    const { error } = await readAt(scratch.write("config.yaml", yaml), readUserConfig);
    assert.match(
      String(error?.message),
      /s\.tools\.t\.arguments\.id": .*wanted a JSON value/,
      number,
    );
  }
});

Deno.test("fixed arguments are filled in at any depth, and shown with names in place of values", () => {
  const registered: string[] = [];
  const get = (name: string) => name === "CODE_TOKEN" ? "v4lue" : undefined;
  const filled = (args: JsonObject) =>
    expand({ arguments: argumentTexts(args) }, { server: "s", get }).arguments;
  const register = (value: string) => void registered.push(value);
  const written = { ...TOOLS.search_code.arguments, password: "hunter2hunter2" };
  const sent = sentArguments(written, filled(written));
  const shown = shownArguments(written, true, register);
  const filter = { in: ["src", 7] };
  assert.deepEqual(sent, { owner: "acme", token: "v4lue", filter, password: "hunter2hunter2" });
  assert.deepEqual(shown, { ...written, password: "[redacted]" });
  assert.deepEqual(shownArguments(written, false, register), written);
  assert.deepEqual(registered, ["hunter2hunter2", "hunter2hunter2"]);
  assert.deepEqual(Object.keys(argumentTexts(written)), [
    "owner",
    "token",
    "filter.in.0",
    "password",
  ]);
  assert.throws(() => filled({ a: ["${NOT_THERE}"] }), {
    code: "KEY_MISSING",
    hint: /arguments\.a\.0/,
  });
});

Deno.test("settings of tools are shown with the file, and their keys are requested", async () => {
  const { file } = await serverOf({ ...TOOLS, a: {}, b: { arguments: { password: "hunter2" } } });
  assert.ok(file);
  const lines = shownLines(file, { get: () => undefined });
  const text = lines.filter((line) => line.includes("tool")).join("\n");
  assert.match(text, /"search_code" .*"find_code", .*"Finds code", .*owner="acme", .*CODE_TOKEN/);
  assert.ok(
    text.includes(String.raw`filter="{\"in\":[\"${"${AREA:-src}"}\",7]}" with your key AREA`),
    text,
  );
  assert.match(text, /"b" .*password="hunter2"/);
  assertGolden("trust/settings of tools", text);
  assert.deepEqual(wantedKeys({ servers: file.servers, grants: {}, registries: [] }), [
    { name: "CODE_TOKEN", by: ["github"], isRequired: true },
    { name: "AREA", by: ["github"], isRequired: false },
  ]);
});
