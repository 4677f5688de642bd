import assert from "node:assert/strict";
import { join } from "node:path";
import fc from "fast-check";
import { Redactor } from "../audit/redact.ts";
import { listOf } from "../core/json.ts";
import { Scratch } from "./_scratch_test.ts";
import { isPml, type PickResult, ServerPicker } from "./client_servers.ts";
import { clientFiles, type ClientPlace, CLIENTS, readClientFile } from "./clients.ts";
import { clientServersSchema } from "./settings.ts";
import { environmentOf } from "./env.ts";
import { assertGolden } from "../../tests/kit/golden.ts";

const redactor = new Redactor();

function pickerIn(place: ClientPlace, builtins: readonly string[] = []): ServerPicker {
  return new ServerPicker(place, (text) => redactor.redact(text), new Set(builtins));
}

async function pick(
  servers: Readonly<Record<string, unknown>>,
  set: Readonly<Record<string, string>> = {},
): Promise<PickResult> {
  const entries = Object.entries(servers).map(([name, fields]) => ({
    client: "cursor" as const,
    path: "/f.json",
    key: ["mcpServers", name],
    name,
    fields: fields as Record<string, unknown>,
    rank: 2,
    disabled: false,
  }));
  const place = { environment: environmentOf({ HOME: "/home/me", ...set }), root: "/work" };
  return await pickerIn(place, ["git"]).pick(entries, {});
}

const alphabet = (characters: string, length: number) =>
  fc.array(fc.constantFrom(...characters), { minLength: length, maxLength: length + 20 })
    .map((each) => each.join(""));
const LETTERS = "abcdefghijklmnopqrstuvwxyz";
const key = fc.oneof(
  alphabet(LETTERS + LETTERS.toUpperCase() + "0123456789", 24),
  alphabet("0123456789abcdef", 40),
  fc.uuid(),
  alphabet(LETTERS, 30).map((text) => `sk-${text}`),
);
const put = fc.constantFrom<(key: string) => unknown>(
  (key) => ({ command: "x", env: { API_TOKEN: key } }),
  (key) => ({ command: "x", env: { dbPassword: key } }),
  (key) => ({ command: "x", env: { A: key } }),
  (key) => ({ command: "x", env: { A: `\${TOKEN:-${key}}` } }),
  (key) => ({ command: "x", args: ["--api-key", key] }),
  (key) => ({ command: "x", args: [`--token=${key}`] }),
  (key) => ({ command: "x", args: ["-e", `SOME_KEY=${key}`] }),
  (key) => ({ command: "x", args: ["--header", `Authorization: Bearer ${key}`] }),
  (key) => ({ command: "x", args: [`postgres://me:${key}@h/db`] }),
  (key) => ({ command: "x", args: ["plain", key] }),
  (key) => ({ url: "https://x.y/", headers: { Authorization: `Bearer ${key}` } }),
  (key) => ({ url: "https://x.y/", headers: { Authorization: `Basic ${key}` } }),
  (key) => ({ url: "https://x.y/", headers: { "X-Api-Key": key } }),
  (key) => ({ url: "https://x.y/", headers: { Cookie: `a=${key}` } }),
  (key) => ({ url: `https://x.y/?api_key=${key}&b=c` }),
  (key) => ({ url: `https://x.y/${key}/mcp` }),
  (key) => ({ command: `/opt/sk-${key}` }),
);

Deno.test("ServerPicker.pick() returns no definition with a key, at any place", async () => {
  await fc.assert(
    fc.asyncProperty(key, put, async (secret, make) => {
      const { taken, skipped } = await pick({ a: make(secret) });
      const said = [
        ...taken.map(({ entry: _, ...rest }) => rest),
        ...skipped.map(({ why }) => why),
      ];
      assert.ok(!JSON.stringify(said).includes(secret), JSON.stringify(said));
    }),
    // A random text whose kinds of characters rarely change looks like a word.
    { numRuns: 400, seed: 7 },
  );
});

Deno.test("ServerPicker.pick() does not change values that are not keys", async () => {
  const args = [
    "-y",
    "@modelcontextprotocol/server-filesystem@2025.8.21",
    "--model=claude-3-5-sonnet-20241022",
    "/home/me/Projects/My-Second-Project-2/source",
    "--editor",
    "vim",
    "npm:thing",
    "https://api.example.com:8443/v1/resources",
    "--log-file=/var/log/server.log",
  ];
  const env = { LANG: "C.UTF-8", AUTH_ENABLED: "true", MAX_TOKENS: "100", REGION: "eu-central-1" };
  const { taken: [one] } = await pick({ a: { command: "npx", args, env } });
  assert.deepEqual(one?.definition, { command: "npx", args, env });
});

Deno.test("ServerPicker.pick() uses one variable for equal values, and free names for others", async () => {
  const of = (TOKEN: string) => ({ command: "x", env: { TOKEN } });
  const values = async (set: Record<string, string>) =>
    (await pick({ a: of("one-value"), b: of("one-value"), c: of("other"), d: of("${TOKEN}") }, set))
      .taken.map(({ definition }) => definition.env?.TOKEN);
  const [a, b, c, d] = ["${A_TOKEN}", "${B_TOKEN}", "${C_TOKEN}", "${TOKEN}"];
  assert.deepEqual(await values({}), [a, b, c, d]);
  assert.deepEqual(await values({ TOKEN: "one-value" }), [d, d, c, d]);
  const { taken } = await pick({ a: of("one-value"), b: of("one-value") });
  assert.deepEqual(taken.map(({ definition }) => definition.env?.TOKEN), [d, d]);
});

Deno.test("ServerPicker.pick() takes the forms of Copilot, Cline, Codex and Gemini", async () => {
  using scratch = new Scratch();
  const mcpServers = {
    nested: { transport: { type: "http", url: "https://x.y/mcp", headers: { A: "b" } } },
    named: { transport: "sse", url: "https://x.y/sse" },
    copilot: { type: "local", command: "node", args: ["a.js"], tools: ["*"], timeout: 90_000 },
    cline: { command: "x", timeout: 60, disabledTools: ["rm"] },
    codex: {
      command: "x",
      env_vars: ["A_TOKEN", { name: "B_TOKEN", source: "local" }, { name: "C", source: "remote" }],
      enabled_tools: ["look", "write"],
      disabled_tools: ["write"],
      tool_timeout_sec: 1.5,
    },
    gemini: { command: "x", excludeTools: ["rm"], trust: true, cwd: "./sub" },
    quiet: { command: "x" },
  };
  const mcp = { allowed: Object.keys(mcpServers).filter((name) => name !== "quiet") };
  const path = scratch.write("settings.json", JSON.stringify({ mcp, mcpServers }));
  const place = { environment: scratch.environment(), root: scratch.ws };
  const entries = await readClientFile({ client: "gemini", path }, place);
  const { taken, skipped } = pickerIn(place).pick(entries, {});
  assert.deepEqual(skipped.map(({ entry, why }) => [entry.name, why]), [
    ["quiet", "it is disabled"],
  ]);
  assert.deepEqual(
    Object.fromEntries(taken.map(({ name, definition }) => [name, definition])),
    {
      nested: { url: "https://x.y/mcp", headers: { A: "b" } },
      named: { type: "sse", url: "https://x.y/sse" },
      copilot: { command: "node", args: ["a.js"], timeout: 90_000 },
      cline: { command: "x", tools: { rm: { disabled: true } }, timeout: 60_000 },
      codex: {
        command: "x",
        env: { A_TOKEN: "${A_TOKEN}", B_TOKEN: "${B_TOKEN}" },
        tools: ["look"],
        timeout: 1_500,
      },
      gemini: {
        command: "x",
        tools: { rm: { disabled: true } },
        cwd: "${workspaceFolder}/sub",
      },
    },
  );
  const keys = taken.flatMap(({ left }) => left);
  assert.deepEqual(keys.map(({ key }) => key), ["env_vars.C", "trust"]);
  assertGolden("import/keys that are left out", keys.map(({ why }) => why).join("\n"));
});

Deno.test("ServerPicker.pick() converts the variables of each client, and keeps the defaults of inputs", async () => {
  using scratch = new Scratch();
  const place = { environment: scratch.environment(), root: scratch.ws };
  const read = async (client: (typeof CLIENTS)[number], name: string, text: string) => {
    const path = scratch.write(name, text);
    const entries = await readClientFile({ client, path }, place);
    const { taken, skipped } = pickerIn(place).pick(entries, {});
    return {
      env: taken.map(({ definition }) => definition.env),
      left: taken.flatMap(({ left }) => left),
      why: skipped.map(({ why }) => why),
    };
  };
  const json = (env: object) => JSON.stringify({ mcpServers: { a: { command: "x", env } } });
  const claude = { A: "${A_KEY}", B: "${B_KEY:-info}", C: "$C_KEY", D: "${D_KEY:-}" };
  assert.deepEqual(await read("claude-code", "claude.json", json(claude)), {
    env: [claude],
    left: [],
    why: [],
  });
  for (const client of ["gemini", "qwen"] as const) {
    const { env } = await read(client, `${client}.json`, json({ A: "$A_KEY", B: "${B_KEY}" }));
    assert.deepEqual(env, [{ A: "${A_KEY}", B: "${B_KEY}" }]);
  }
  const list = "mcpServers:\n  - name: a\n    command: x\n    env: { A: '${{ secrets.A_KEY }}' }\n";
  const { env, left } = await read("continue", "config.yaml", list);
  assert.deepEqual([env, left], [[{ A: "${A_KEY}" }], []]);
  const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
  const inputs = [
    { id: "region", type: "pickString", options: ["eu", "us"], default: "eu" },
    { id: "my-key", type: "promptString", password: true, default: secret },
    { id: "typed", type: "promptString", default: secret },
    { id: "odd", type: "promptString", default: "${a}" },
  ];
  const own = {
    A: "${input:region}",
    B: "${input:my-key}",
    C: "${input:typed}",
    D: "${input:odd}",
    E: "${env:E_KEY}",
    F: "${input:none}",
  };
  const bad = { command: "x", args: ["${config:a.b}", "${command:pick}", `\${file:${secret}}`] };
  const code = await read(
    "vscode",
    "mcp.json",
    JSON.stringify({ inputs, servers: { a: { command: "x", env: own }, bad } }),
  );
  assert.deepEqual(code.env, [{
    A: "${REGION:-eu}",
    B: "${MY_KEY}",
    C: "${TYPED}",
    D: "${ODD}",
    E: "${E_KEY}",
    F: "${NONE}",
  }]);
  const [why = ""] = code.why;
  assert.ok(why.includes("${config:a.b}, ${command:pick}") && !why.includes(secret), why);
});

Deno.test("ServerPicker.pick() names each key that it leaves out, with the reason", async () => {
  const { taken: [one] } = await pick({
    a: {
      command: "x",
      headers: { A: "b" },
      alwaysAllow: ["rm"],
      odd: 1,
      description: "d",
      timeout: "1",
    },
  });
  assert.deepEqual(one?.left.map(({ key }) => key).sort(), [
    ...["alwaysAllow", "description", "headers", "odd", "timeout"],
  ]);
  for (const { why } of one?.left ?? []) assert.match(why, /\w{3}/);
});

Deno.test("ServerPicker.pick() keeps folder variables and needs no key for them, or for text", async () => {
  const { taken: [one] } = await pick({
    a: {
      command: "${workspaceFolder}/run.sh",
      args: ["${workspaceRoot}/a", "Hello ${name}", "${userHome}${/}x", "Key:${TOKEN}"],
      env: { TOKEN: "Bearer abcdefghij", BASE: "${workspaceFolderBasename}" },
      cwd: ".",
      envFile: "${workspaceFolder}/.env",
    },
  });
  assert.deepEqual(one?.definition, {
    command: "${workspaceFolder}/run.sh",
    args: ["${workspaceFolder}/a", "Hello ${name}", "${userHome}/x", "Key:${TOKEN}"],
    env: { TOKEN: "Bearer ${A_TOKEN}", BASE: "${workspaceFolderBasename}" },
    cwd: "${workspaceFolder}",
    envFile: "${workspaceFolder}/.env",
  });
  assert.deepEqual(one?.variables.map(({ name }) => name), ["A_TOKEN"]);
});

Deno.test("ServerPicker.pick() takes one segment or one value of an address for a key, and keeps the host", async () => {
  const random = "Zq8sK2mN4pR6tV8xY0aB1cD3eF5gH7jL";
  const uuid = "7b1e0c52-94f3-4b7e-9a55-0d6c2f1e8a43";
  const addresses = {
    tavily: `https://mcp.tavily.com/mcp/?tavilyApiKey=tvly-dev-${random}`,
    firecrawl: `https://mcp.firecrawl.dev/fc-${random}/v2/mcp`,
    zapier: `https://mcp.zapier.com/api/mcp/s/${random}${random}/mcp`,
    n8n: `https://n8n.example.com:8443/mcp/${uuid}/sse?a=b`,
    slashes: `https://h.example/mcp?a=${random}/${random}&b=c`,
  };
  const { taken } = await pick(
    Object.fromEntries(Object.entries(addresses).map(([name, url]) => [name, { url }])),
  );
  assert.deepEqual(taken.map(({ definition }) => definition.url), [
    "https://mcp.tavily.com/mcp/?tavilyApiKey=${TAVILY_KEY}",
    "https://mcp.firecrawl.dev/${FIRECRAWL_KEY}/v2/mcp",
    "https://mcp.zapier.com/api/mcp/s/${ZAPIER_KEY}/mcp",
    "https://n8n.example.com:8443/mcp/${N8N_KEY}/sse?a=b",
    "https://h.example/mcp?a=${SLASHES_KEY}&b=c",
  ]);
});

Deno.test("ServerPicker.pick() replaces a random text that no system allows as a path", async () => {
  // Longer than the name of a file may be.
  const long = "Zq8sK2mN4pR6tV8xY0aB1cD3eF5gH7jL".repeat(10);
  const { taken } = await pick({ note: { command: "x", env: { NOTE: long } } });
  assert.deepEqual(taken[0]?.definition.env, { NOTE: "${NOTE}" });
});

Deno.test("ServerPicker.pick() says which key PML cannot take, and never its value", async () => {
  const wrong: Record<string, [unknown, RegExp]> = {
    a: [{ command: 7 }, /requires .* as its command/],
    b: [{ command: "x", args: "hunter2" }, /as its args/],
    c: [{ url: "https://me:hunter2@x.y/" }, /url is not .*without a user name/],
    d: [{ command: "x", env: ["hunter2"] }, /requires .* as its env/],
    e: [{}, /requires .* as its command/],
    f: ["hunter2", /requires .* as its command/],
    git: [{ command: "x" }, /built in/],
  };
  const said = Object.entries(wrong).map(([name, [entry]]) => [name, entry]);
  const { taken, skipped } = await pick(Object.fromEntries(said));
  assert.deepEqual(taken, []);
  for (const { entry, why } of skipped) {
    assert.match(why, wrong[entry.name]?.[1] ?? /^$/, entry.name);
    assert.doesNotMatch(why, /hunter2/);
  }
  assert.equal(skipped.length, Object.keys(wrong).length);
});

Deno.test("clientFiles() knows where each system keeps them", () => {
  const environment = environmentOf({ HOME: "/home/me", CODEX_HOME: "/codex" });
  const paths = (os: typeof Deno.build.os) =>
    CLIENTS.flatMap((client) => clientFiles(client, { environment, root: "/work", os }))
      .map(({ path }) => path);
  const home = environment.userHome;
  const apple = `${home}/Library/Application Support`;
  const wanted = [
    ["linux", `${home}/.config/Claude/claude_desktop_config.json`],
    ["darwin", `${apple}/Claude/claude_desktop_config.json`],
    ["linux", `${home}/.config/Code/User/mcp.json`],
    ["darwin", `${apple}/Code/User/mcp.json`],
    ["linux", "/codex/config.toml"],
    ["linux", `${home}/.claude.json`],
    ["linux", "/work/.mcp.json"],
    ["linux", "/work/.vscode/mcp.json"],
    ["linux", `${home}/.codeium/windsurf/mcp_config.json`],
  ] as const;
  for (const [os, path] of wanted) assert.ok(paths(os).includes(path), path);
});

Deno.test("clientFiles() knows where Windows keeps them, by its own rules for paths", () => {
  const home = "C:\\Users\\Me";
  const roaming = `${home}\\AppData\\Roaming`;
  const variables = { HOME: "/c/Users/git-bash", USERPROFILE: home, CODEX_HOME: "D:/codex" };
  const pathsIn = (more: Readonly<Record<string, string>>) => {
    const environment = environmentOf({ ...variables, ...more });
    const place = { environment, root: "C:\\work", os: "windows" } as const;
    return CLIENTS.flatMap((client) => clientFiles(client, place)).map(({ path }) => path);
  };
  const paths = pathsIn({});
  for (
    const path of [
      `${home}\\.claude.json`,
      `${roaming}\\Claude\\claude_desktop_config.json`,
      `${home}\\.cline\\data\\settings\\cline_mcp_settings.json`,
      "D:\\codex\\config.toml",
      `${home}\\.continue\\config.yaml`,
      `${home}\\.copilot\\mcp-config.json`,
      `${home}\\.cursor\\mcp.json`,
      `${home}\\.gemini\\settings.json`,
      `${home}\\.config\\opencode\\opencode.json`,
      `${home}\\.qwen\\settings.json`,
      `${roaming}\\Code\\User\\mcp.json`,
      `${home}\\.codeium\\windsurf\\mcp_config.json`,
      `${roaming}\\Zed\\settings.json`,
      "C:\\work\\.mcp.json",
      "C:\\work\\.cursor\\mcp.json",
    ]
  ) assert.ok(paths.includes(path), `${path} in ${paths}`);
  // A redirected profile, which companies have.
  const redirected = pathsIn({ APPDATA: "\\\\files\\me\\Roaming" });
  assert.ok(redirected.includes("\\\\files\\me\\Roaming\\Zed\\settings.json"), `${redirected}`);
});

Deno.test("import removes cmd and .cmd from commands of Windows, and keeps lines for cmd", async () => {
  const starts: readonly (readonly [command: string, args: readonly string[], ...string[]])[] = [
    ["cmd", ["/c", "npx", "-y", "pkg"], "npx", "-y", "pkg"],
    ["cmd.exe", ["/C", "npx -y pkg"], "npx", "-y", "pkg"],
    ["C:\\Windows\\System32\\cmd.exe", ["/d", "/s", "/c", "npx", "-y", "pkg"], "npx", "-y", "pkg"],
    ["cmd", ["/c", "npx.cmd", "-y", "pkg", "C:\\my files"], "npx", "-y", "pkg", "C:\\my files"],
    ["npx.cmd", ["-y", "pkg"], "npx", "-y", "pkg"],
    ["C:\\node\\npx.cmd", ["-y", "pkg"], "C:\\node\\npx.cmd", "-y", "pkg"],
    ["docker.exe", ["run", "x"], "docker.exe", "run", "x"],
    // What `cmd` replaces or splits is another command without it.
    ["cmd", ["/c", "npx", "-y", "%PKG%"], "cmd", "/c", "npx", "-y", "%PKG%"],
    ["cmd", ["/c", "cd x && npx -y pkg"], "cmd", "/c", "cd x && npx -y pkg"],
    ["cmd", ["/k", "npx"], "cmd", "/k", "npx"],
  ];
  using scratch = new Scratch();
  const mcpServers = Object.fromEntries(
    starts.map(([command, args], at) => [`s${at}`, { command, args }]),
  );
  const path = scratch.write("ws/.mcp.json", JSON.stringify({ mcpServers }));
  const place = { environment: scratch.environment(), root: scratch.ws };
  const entries = await readClientFile({ client: "claude-code", path }, place);
  const found = entries.map(({ fields: { command, args } }) => [command, ...listOf(args)]);
  assert.deepEqual(found, starts.map(([, , ...words]) => words));
});

Deno.test("import knows PML where a client starts it with cmd", async () => {
  using scratch = new Scratch();
  const args = ["/c", "C:\\Users\\Me\\AppData\\Roaming\\npm\\pml.cmd", "stdio"];
  const path = scratch.write(
    "ws/a.json",
    JSON.stringify({ mcpServers: { mine: { command: "cmd", args } } }),
  );
  const place = { environment: scratch.environment(), root: scratch.ws };
  const [entry] = await readClientFile({ client: undefined, path }, place);
  assert.ok(entry !== undefined && isPml(entry));
});

Deno.test("claude-desktop keeps its file in the folder of its Windows package, if it has one", () => {
  const local = "C:\\Users\\Me\\AppData\\Local";
  const environment = environmentOf({ USERPROFILE: "C:\\Users\\Me" });
  const namesIn = (folder: string) =>
    folder === `${local}\\Packages` ? ["Other_x", "Claude_pzs8sxrjxfjjc"] : [];
  const place = { environment, root: "C:\\work", os: "windows", namesIn } as const;
  assert.deepEqual(clientFiles("claude-desktop", place).map(({ path }) => path), [
    `${local}\\Packages\\Claude_pzs8sxrjxfjjc\\LocalCache\\Roaming\\Claude\\claude_desktop_config.json`,
    "C:\\Users\\Me\\AppData\\Roaming\\Claude\\claude_desktop_config.json",
  ]);
});

Deno.test("readClientFile() takes no key twice, and no strange shape", async () => {
  using scratch = new Scratch();
  const place = { environment: scratch.environment(), root: scratch.ws };
  const texts = [
    '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}',
    '{"mcpServers": []}',
    "[]",
    "",
    '{"mcpServers": {},,}',
  ];
  for (const text of texts) {
    const path = scratch.write("ws/.mcp.json", text);
    const reading = readClientFile({ client: "claude-code", path }, place);
    await assert.rejects(reading, { code: "CONFIG_INVALID" }, text);
  }
  // It is a name as any other, which PML does not take, and no prototype.
  const text = '{"mcpServers": {"__proto__": {"command": "x"}, "a": {"__proto__": {"url": "y"}}}}';
  const named = { client: "claude-code", path: scratch.write("ws/.mcp.json", text) } as const;
  const [proto, a] = await readClientFile(named, place);
  assert.deepEqual([proto?.name, a?.name, a?.fields.url], ["__proto__", "a", undefined]);
  const path = scratch.write("any.toml", '[mcp_servers."my server"]\ncommand = "x"\n');
  const [entry] = await readClientFile({ client: undefined, path }, place);
  assert.deepEqual([entry?.name, entry?.key], ["my server", ["mcp_servers", "my server"]]);
  await assert.rejects(readClientFile({ client: undefined, path: join(scratch.ws, "no") }, place));
});

Deno.test("A server of a client's file brings no certificates: those are in the person's file", () => {
  const far = { url: "https://far.example", ca: "a.pem", cert: "c.pem", key: "k.pem" };
  const told: (readonly [unknown, string])[] = [];
  clientServersSchema({ far }, {
    path: [],
    wrong: ({ path, wanted }) => told.push([path.at(-1), wanted]),
  });
  const wanted = "no value: certificates are set in your config.yaml";
  assert.deepEqual(told, ["ca", "cert", "key"].map((key) => [key, wanted]));
});
