import assert from "node:assert/strict";
import { environmentOf } from "../config/env.ts";
import type { Pins } from "../policy/pins.ts";
import type { Program } from "../sandbox/program.ts";
import type { SpareKeeper } from "../sandbox/process.ts";
import { type App, openApp } from "./app.ts";
import { beginProgram } from "./early_program.ts";

interface Scene {
  readonly servers?: Readonly<Record<string, object>>;
  readonly isTrusted?: boolean;
  /** Changes the app, in whose PML home anything may be pinned then. */
  readonly withPins?: (app: App) => Pick<Pins, "findUnapproved">;
  /** Runs before the program begins. */
  readonly before?: (app: App) => unknown;
  /** Runs when the program has begun. */
  readonly after?: (app: App) => unknown;
}

const OWN = { own: { command: "/bin/echo", args: ["hi"] } };

/** Returns the programs that began in an app whose keeper records them, and whether it was ended. */
async function begunIn({ servers = OWN, isTrusted = true, withPins, before, after }: Scene) {
  const HOME = await Deno.realPath(await Deno.makeTempDir());
  const begun: Program[] = [];
  let isEnded = false;
  try {
    const cwd = `${HOME}/ws`;
    await Deno.mkdir(cwd);
    await Deno.mkdir(`${HOME}/.pml`, { mode: 0o700 });
    const pml = { version: 1, permissions: { allow: ["*"] }, mcpServers: servers };
    await Deno.writeTextFile(`${cwd}/.pml.json`, JSON.stringify(pml));
    const variables = { HOME, PATH: "/bin", ...isTrusted && { PML_TRUST: cwd } };
    await using app = await openApp({ cwd, environment: environmentOf(variables) });
    const begin = (program: Program) => void begun.push(program);
    const dispose = () => void (isEnded = true);
    app.spare = { begin, [Symbol.dispose]: dispose } as unknown as SpareKeeper;
    if (withPins !== undefined) {
      await Deno.mkdir(`${HOME}/.pml/pins`, { mode: 0o700 });
      const pins = { identityOf: () => ({}), ...withPins(app) } as unknown as Pins;
      app.pins = () => Promise.resolve(pins);
    }
    await before?.(app);
    await beginProgram(app);
    await after?.(app);
    return { begun, isEnded };
  } finally {
    await Deno.remove(HOME, { recursive: true });
  }
}

Deno.test("beginProgram() starts the program of a trusted file, with the mark of this PML", async () => {
  let mark = "";
  const { begun } = await begunIn({ after: ({ runMark }) => mark = runMark });
  const [program] = begun;
  assert.deepEqual([program?.file, program?.args], ["/bin/echo", ["hi"]]);
  assert.equal(program?.env.PML_RUN, `${mark}.`);
});

Deno.test("beginProgram() starts only the first program that needs no package", async () => {
  const servers = { pack: { command: "npx", args: ["-y", "none"] }, ...OWN, two: OWN.own };
  assert.equal((await begunIn({ servers })).begun.length, 1);
  const container = { command: "docker", args: ["run", "-i", "image"] };
  for (const other of [servers.pack, container, { command: "/nothing/there" }]) {
    const { begun } = await begunIn({ servers: { other } });
    assert.ok(begun.every(({ file }) => file === "/nothing/there"));
  }
});

Deno.test("beginProgram() starts nothing of a file that is not trusted", async () => {
  assert.deepEqual((await begunIn({ isTrusted: false })).begun, []);
});

Deno.test("beginProgram() starts no program that differs from its pin", async () => {
  const pins = (stale: object | undefined) => () => ({
    findUnapproved: () => Promise.resolve(stale as Awaited<ReturnType<Pins["findUnapproved"]>>),
  });
  assert.equal((await begunIn({ withPins: pins(undefined) })).begun.length, 1);
  assert.deepEqual((await begunIn({ withPins: pins({}) })).begun, []);
});

Deno.test("beginProgram() starts no program that is blocked while its pins are read", async () => {
  const withPins = (app: App) => ({
    findUnapproved: () => {
      for (const server of app.directory.all()) server.whyBlocked = () => "it is not approved";
      return Promise.resolve(undefined);
    },
  });
  assert.deepEqual((await begunIn({ withPins })).begun, []);
});

Deno.test("beginProgram() starts no program after a call has loaded the call path", async () => {
  assert.deepEqual((await begunIn({ before: (app) => app.callPath() })).begun, []);
});

Deno.test("a change of the configuration ends a program that has begun", async () => {
  const after = async ({ policy }: App) => {
    const { path = "" } = policy.now.loaded.file ?? {};
    await Deno.writeTextFile(path, JSON.stringify({ version: 1, mcpServers: {} }));
    await policy.reload();
  };
  assert.equal((await begunIn({ after })).isEnded, true);
  assert.equal((await begunIn({})).isEnded, false);
});
