import assert from "node:assert/strict";
import { packageCommand } from "./_package_command.ts";

function read(line: string) {
  const [command = "", ...args] = line.split(" ");
  const found = packageCommand({ name: "s", command, args });
  if (found === undefined) return undefined;
  const { command: _, env: __, isOffline, isScriptless, settings, tokens, ...rest } = found;
  assert.deepEqual({ isOffline, isScriptless, settings, tokens }, {
    ...{ isOffline: false, isScriptless: false, settings: [], tokens: {} },
  });
  return rest;
}

Deno.test("packageCommand() reads every way to run a package of npm", () => {
  const ways = [
    "npx -y pkg@1.0.0 --flag x",
    "/usr/local/bin/npx --yes pkg@1.0.0 --flag x",
    "cmd /c npx -y pkg@1.0.0 --flag x",
    "npx.cmd -y pkg@1.0.0 --flag x",
    "npm exec -y pkg@1.0.0 -- --flag x",
    "npm x --yes -- pkg@1.0.0 --flag x",
    "pnpx pkg@1.0.0 --flag x",
    "pnpm dlx pkg@1.0.0 --flag x",
    "yarn dlx -q pkg@1.0.0 --flag x",
  ];
  const wanted = { tool: "npm", spec: "pkg@1.0.0", name: "pkg", bin: undefined, beside: [] };
  for (const line of ways) {
    const found = read(line);
    assert.deepEqual(
      found,
      { ...wanted, runtime: "node", args: ["--flag", "x"], python: undefined },
      line,
    );
  }
  for (const line of ["bunx pkg", "bun x pkg", "bunx --bun pkg"]) {
    assert.deepEqual([read(line)?.runtime, read(line)?.spec], ["bun", "pkg"], line);
  }
  for (
    const line of ["npx --package=@a/b@^1 cmd", "npx -p @a/b@^1 cmd", "npm exec -p @a/b@^1 -- cmd"]
  ) {
    const { spec, name, bin } = read(line) ?? {};
    assert.deepEqual({ spec, name, bin }, { spec: "@a/b@^1", name: "@a/b", bin: "cmd" }, line);
  }
});

Deno.test("packageCommand() reads what uvx runs as uv installs it", () => {
  const plain = {
    tool: "uv",
    runtime: undefined,
    bin: undefined,
    args: [],
    beside: [],
    python: undefined,
  };
  const wanted: Record<string, Record<string, unknown>> = {
    "uvx mcp-server-fetch": { spec: "mcp-server-fetch", name: "mcp-server-fetch" },
    "uvx a@1.2.0 --x": { spec: "a==1.2.0", name: "a", args: ["--x"] },
    "uvx a@latest": { spec: "a", name: "a" },
    "uv tool run --from a[cli]==1.2 b c": { spec: "a[cli]==1.2", name: "a", bin: "b", args: ["c"] },
    "/opt/bin/uvx --with x[e,f]>=1,<2,y@2 --python 3.12 a": {
      spec: "a",
      name: "a",
      beside: ["x[e,f]>=1,<2", "y==2"],
      python: "3.12",
    },
  };
  for (const [line, found] of Object.entries(wanted)) {
    assert.deepEqual(read(line), { ...plain, ...found }, line);
  }
});

Deno.test("packageCommand() does not change commands that install nothing", () => {
  const others = ["node x.js", "npm run exec", "uv run server.py", "bun run x", "pnpm start"];
  for (const line of [...others, "uv --directory /x run y", "/opt/npx-like z"]) {
    assert.equal(read(line), undefined, line);
  }
});

Deno.test("packageCommand() refuses unsupported arguments, and names them", () => {
  const wanted: Record<string, RegExp> = {
    "npx": /"" is not a package/,
    "npx -c touch": /option "-c"/,
    "npx --registry=./x x": /"--registry" .*the address/,
    "npx --registry=https://me:word@127.0.0.1 x": /"--registry" .*the address/,
    "npx --//127.0.0.1/:_authToken=word x": /its option "--\/\/127.0.0.1\/:_authToken"$/,
    "npx -yq x --flag": /write `--` before "--flag"/,
    "npx --no-audit x --flag": /write `--` before "--flag"/,
    "uvx --from a --from b c": /it names several/,
    "npx -v": /option "-v"/,
    "npx github:evil/x": /"github:evil\/x" is not a package/,
    "npx ../x": /is not a package/,
    "npx file:/etc": /is not a package/,
    "npx -p a ../b": /"..\/b" is not the name/,
    "npm --prefix . exec x": /option "--prefix"/,
    "npm exec x --flag": /write `--` before "--flag"/,
    "pnpm dlx --allow-build=x x": /option "--allow-build"$/,
    "uvx git+https://127.0.0.1/x": /is not a package/,
    "uvx --from . x": /"." is not a package/,
    "uvx --with ./x y": /".\/x" is not a package/,
    "uvx --index-url http://127.0.0.1:1 x": /option "--index-url"/,
    "uv --directory . tool run x": /option "--directory"/,
    "uvx --python ./bin/python x": /not the name of/,
    "pipx run x": /PML does not support it/,
  };
  for (const [line, like] of Object.entries(wanted)) {
    assert.throws(() => read(line), (error: Error) => {
      assert.match(error.message, /^Cannot start "s": .*package/, line);
      assert.match(error.message, like, line);
      return true;
    });
  }
});
