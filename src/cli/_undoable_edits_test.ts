import assert from "node:assert/strict";
import { join } from "node:path";
import fc from "fast-check";
import { type App, openApp } from "../app/app.ts";
import { assertQuick } from "../../tests/kit/wait.ts";
import { Scratch } from "../config/_scratch_test.ts";
import { addServers, findTarget, findUndo } from "./_undoable_edits.ts";

const SERVERS = {
  GitHub: { command: "npx", args: ["-y", "x"], env: { TOKEN: "${TOKEN}" } },
  "odd: name #": { url: "https://x.y/mcp", headers: { A: "yes", B: "1" } },
};

const blank = fc.constantFrom("", " ", "\n", "\t", "\r\n", "\n\n  ");
const comment = fc.constantFrom("", "// one\n", "/* two */", '/* { " , */', "// , }\r\n");
const gap = fc.tuple(blank, comment, blank).map((parts) => parts.join(""));
const LISTS = [
  "",
  '"mcpServers": {}',
  '"mcpServers": { /* none */ }',
  '"mcpServers": {\n\t"a": {"command": "x"}, // last\n\t}',
  '"mcpServers": {"a": {"command": "x"},}',
  '"permissions": {"allow": []}',
];
const odd = fc.tuple(
  fc.array(gap, { minLength: 6, maxLength: 6 }),
  fc.constantFrom(...LISTS),
  fc.boolean(),
  fc.boolean(),
).map(([[a, b, c, d, e, f], list, first, trailing]) => {
  const version = `"version"${c}:${d}1`;
  const members = [version, ...(list === "" ? [] : [list])];
  if (first) members.reverse();
  return `${a}{${b}${members.join(`${e},${b}`)}${trailing ? "," : ""}${f}}${a}`;
});

async function roundTrip(text: string, workspace: boolean): Promise<string> {
  using scratch = new Scratch();
  const name = workspace ? "ws/.pml.json" : "user/.pml/config.yaml";
  const path = scratch.write(name, text);
  const environment = scratch.environment({ PML_WORKSPACE: scratch.ws });
  const open = () => openApp({ cwd: scratch.ws, environment });
  // As a process leaves it that was killed while it wrote the file.
  scratch.write(`${name}.0123456789abcdef.pml-tmp`, "half");
  const written = await within(await open(), async (app) => {
    await addServers(app, await findTarget(app, workspace), { servers: SERVERS });
    return await Deno.readTextFile(path);
  });
  await within(await open(), async (app) => {
    assert.equal(app.config().problem, undefined, written);
    const file = workspace ? app.loaded().file : app.loaded().userConfig;
    const names = file?.servers.map(({ name }) => name) ?? [];
    assert.ok(names.includes("github") && names.includes("odd-name"), written);
    await (await findUndo(app, await findTarget(app, workspace))).run();
  });
  assert.deepEqual(await Deno.readFile(path), new TextEncoder().encode(text));
  const left = [...Deno.readDirSync(join(path, ".."))].map((each) => each.name);
  assert.ok(!left.some((each) => each.includes("backup") || each.includes("tmp")), left.join());
  return written;
}

async function within<T>(app: App, use: (app: App) => Promise<T>): Promise<T> {
  await using open = app;
  return await use(open);
}

Deno.test("addServers() keeps the comments of any .pml.json, and undoing restores the same bytes", async () => {
  await fc.assert(
    fc.asyncProperty(odd, async (text) => {
      const after = await roundTrip(text, true);
      const comments = (of: string) => of.match(/\/\/[^\r\n]*|\/\*[^]*?\*\//g)?.join() ?? "";
      assert.equal(comments(after.replace("https://", "")), comments(text));
    }),
    { numRuns: 60 },
  );
});

Deno.test("addServers() takes at most a second for a thousand servers in any file", async () => {
  const many = Object.fromEntries(
    Array.from(
      { length: 1_000 },
      (_, at) => [`s${at}`, { command: "npx", args: ["-y", `p${at}`] }],
    ),
  );
  for (const text of ["{}", '{\n  "mcpServers": {\n    "a": {"command": "x"} // mine\n  }\n}\n']) {
    await assertQuick(1_000, async () => {
      using scratch = new Scratch();
      const path = scratch.write("ws/.pml.json", text);
      const environment = scratch.environment({ PML_WORKSPACE: scratch.ws });
      await within(await openApp({ cwd: scratch.ws, environment }), async (app) => {
        await addServers(app, await findTarget(app, true), { servers: many });
      });
      const { mcpServers } = JSON.parse((await Deno.readTextFile(path)).replace("// mine", ""));
      assert.deepEqual({ ...mcpServers, ...many }, mcpServers);
    });
  }
});

Deno.test("addServers() keeps the comments of a config.yaml, and undoing restores the same bytes", async () => {
  const texts = [
    "",
    "# only this\n",
    "limits:\n    call_ms: 1000   # short\r\n",
    "mcpServers:\n  a: {command: x} # a\n# end\n",
    "mcpServers: {}\nlimits: {call_ms: 1000}\n",
    "---\npermissions:\n  deny: ['shell:*']\n",
  ];
  for (const text of texts) {
    const after = await roundTrip(text, false);
    for (const comment of text.match(/# \w+/g) ?? []) assert.ok(after.includes(comment), after);
  }
});

Deno.test("a server of the person's counts everywhere, and no untrusted file takes its name", async () => {
  using scratch = new Scratch();
  const environment = scratch.environment({ PML_WORKSPACE: scratch.ws });
  scratch.write("user/.pml/config.yaml", "mcpServers: {mine: {command: own}}\n");
  const commands = async (trust = "") => {
    const given = scratch.environment({ PML_WORKSPACE: scratch.ws, PML_TRUST: trust });
    return await within(await openApp({ cwd: scratch.ws, environment: given }), (app) => {
      const states = app.servers.states().filter(({ name }) => name === "mine");
      assert.deepEqual(states.map(({ state }) => state), ["unknown"]);
      const git = app.servers.states().filter(({ name }) => name === "git");
      assert.deepEqual(git.map(({ origin }) => origin), [trust === "" ? "builtin" : "private"]);
      const servers = app.config().servers.filter(({ name }) => name === "mine");
      return Promise.resolve(servers.map((each) => "command" in each && each.command));
    });
  };
  const path = scratch.write(
    "ws/.pml.json",
    '{"version":1,"mcpServers":{"mine":{"command":"evil"},"git":{"command":"x"}}}',
  );
  assert.deepEqual(await commands(), ["own"]);
  assert.deepEqual(await commands(path), ["evil"]);
  scratch.write(
    "user/.pml/config.yaml",
    "mcpServers: {mine: {command: own}, Mine: {command: x}}\n",
  );
  await within(await openApp({ cwd: scratch.ws, environment }), (app) => {
    assert.equal(app.config().problem?.code, "NAME_CONFLICT");
    return Promise.resolve();
  });
});

Deno.test("addServers() leaves nothing behind where the file was changed meanwhile, or is a link", async () => {
  using scratch = new Scratch();
  const environment = scratch.environment({ PML_WORKSPACE: scratch.ws });
  const path = scratch.write("user/.pml/config.yaml", "limits: {}\n");
  await within(await openApp({ cwd: scratch.ws, environment }), async (app) => {
    const target = await findTarget(app, false);
    await Deno.writeTextFile(path, "# mine\n");
    await assert.rejects(addServers(app, target, { servers: SERVERS }), /changed meanwhile/);
    assert.equal(await Deno.readTextFile(path), "# mine\n");
    await assert.rejects(Deno.stat(`${path}.backup`), Deno.errors.NotFound);
    await assert.rejects(findUndo(app, await findTarget(app, false)), /no import into/);
    await Deno.rename(path, `${path}.real`);
    await Deno.symlink(`${path}.real`, path);
    await assert.rejects(findTarget(app, false), /it is a link/);
  });
});
