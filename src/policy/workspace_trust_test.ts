import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { TrustStore } from "./trust.ts";
import { type ShownFile, WorkspaceTrust } from "./workspace_trust.ts";

const HASH = "a".repeat(64);
const CODE = `sha256-${"1".repeat(64)}`;
const OTHER = `sha256-${"2".repeat(64)}`;

interface Place extends AsyncDisposable {
  readonly store: TrustStore;
  readonly trust: WorkspaceTrust;
  readonly file: string;
}

async function place(): Promise<Place> {
  const folder = await Deno.realPath(await Deno.makeTempDir());
  const file = join(folder, ".pml.json");
  await Deno.writeTextFile(file, "{}");
  const store = new TrustStore(join(folder, "home"), { warn: (message) => assert.fail(message) });
  return {
    store,
    trust: new WorkspaceTrust(store),
    file,
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

function shownFile(path: string, change: Partial<ShownFile> = {}): ShownFile {
  return {
    path,
    hash: HASH,
    isLink: false,
    lines: () => Promise.resolve(['server "weather": a module']),
    servers: ["weather", "db"],
    modules: [{ name: "weather", path: "/x.ts", integrity: CODE }],
    isListed: false,
    ...change,
  };
}

const same = (shown: ShownFile) => ({ readAgain: () => Promise.resolve(shown) });

Deno.test("WorkspaceTrust asks about the whole file until it is accepted", async () => {
  await using at = await place();
  const shown = shownFile(at.file);
  const asked = await at.trust.findUnapproved(shown, same(shown));
  assert.equal(asked?.code, "WORKSPACE_UNTRUSTED");
  assert.ok(asked.facts.some((fact) => fact.includes(HASH)));
  assert.ok(asked.facts.some((fact) => fact.includes(CODE)));
  assert.deepEqual(await at.trust.stateOf(shown), { trusted: false, approved: new Map() });
  await asked.accept();
  assert.deepEqual(await at.trust.stateOf(shown), {
    trusted: true,
    approved: new Map([["weather", CODE]]),
  });
  assert.equal(await at.trust.findUnapproved(shown, same(shown)), undefined);
});

Deno.test("WorkspaceTrust escapes invisible characters and long runs of spaces", async () => {
  await using at = await place();
  const line = `server "x": runs the command ["a\u3164\u202e${" ".repeat(99)}; rm"]`;
  const shown = shownFile(at.file, { lines: () => Promise.resolve([line]) });
  const asked = await at.trust.findUnapproved(shown, same(shown));
  const fact = asked?.facts.find((each) => each.startsWith('server "x"')) ?? "";
  assert.match(fact, /a\\u\{3164\}\\u\{202e\}/);
  assert.doesNotMatch(fact, / {20}/);
});

Deno.test("WorkspaceTrust asks nothing about a server that the file does not define", async () => {
  await using at = await place();
  const shown = shownFile(at.file);
  const asked = await at.trust.findUnapproved(shown, same(shown), "filesystem");
  assert.equal(asked, undefined);
  assert.ok(await at.trust.findUnapproved(shown, same(shown), "db"));
});

Deno.test("WorkspaceTrust saves nothing if the file changed while the user was asked", async () => {
  await using at = await place();
  const shown = shownFile(at.file);
  const changed = shownFile(at.file, { hash: "b".repeat(64) });
  const asked = await at.trust.findUnapproved(shown, same(changed));
  await assert.rejects(
    asked?.accept() ?? Promise.resolve(),
    (error) => error instanceof PmlError && error.code === "APPROVAL_STALE",
  );
  assert.ok(!(await at.trust.stateOf(shown)).trusted);
  assert.ok(!(await at.trust.stateOf(changed)).trusted);
});

Deno.test("WorkspaceTrust asks again about changed code, and an approval covers only the shown code", async () => {
  await using at = await place();
  const two = (weather: string, db: string) =>
    shownFile(at.file, {
      modules: [
        { name: "weather", path: "/x.ts", integrity: weather },
        { name: "db", path: "/db.ts", integrity: db },
      ],
    });
  const first = two(CODE, CODE);
  await (await at.trust.findUnapproved(first, same(first)))?.accept();
  const changed = two(OTHER, OTHER);
  const asked = await at.trust.findUnapproved(changed, same(changed), "weather");
  assert.equal(asked?.code, "APPROVAL_STALE");
  assert.equal(asked.facts.length, 1);
  assert.ok(asked.facts[0]?.includes(CODE) && asked.facts[0].includes(OTHER));
  await asked.accept();
  const { approved } = await at.trust.stateOf(changed);
  assert.deepEqual([approved.get("weather"), approved.get("db")], [OTHER, CODE]);
});

Deno.test("WorkspaceTrust pins the modules of a listed file at first use, and asks about changes", async () => {
  await using at = await place();
  const listed = shownFile(at.file, { isListed: true });
  assert.equal(await at.trust.findUnapproved(listed, same(listed)), undefined);
  const changed = shownFile(at.file, {
    isListed: true,
    modules: [{ name: "weather", path: "/x.ts", integrity: OTHER }],
  });
  assert.equal((await at.trust.stateOf(changed)).approved.get("weather"), CODE);
  const asked = await at.trust.findUnapproved(changed, same(changed));
  assert.equal(asked?.code, "APPROVAL_STALE");
  await asked.accept();
  assert.equal((await at.trust.stateOf(changed)).approved.get("weather"), OTHER);
  // Accepting one module does not trust the file itself.
  assert.ok(!await at.store.isTrusted(at.file, HASH));
});

Deno.test("WorkspaceTrust rejects a linked file with an error", async () => {
  await using at = await place();
  const linked = shownFile(at.file, { isLink: true });
  const asked = await at.trust.findUnapproved(linked, same(linked));
  assert.match(asked?.facts[0] ?? "", /is a link/);
  await assert.rejects(
    asked?.accept() ?? Promise.resolve(),
    (error) => error instanceof PmlError && error.code === "WORKSPACE_UNTRUSTED",
  );
  assert.ok(!(await at.trust.stateOf(linked)).trusted);
});

/** A repository with a linked worktree, and the file of each. */
async function worktrees(folder: string): Promise<{ main: string; linked: string }> {
  const [main, linked] = [join(folder, "main"), join(folder, "linked")];
  const own = join(main, ".git", "worktrees", "linked");
  await Deno.mkdir(own, { recursive: true });
  await Deno.mkdir(linked);
  await Deno.writeTextFile(join(linked, ".git"), `gitdir: ${own}\n`);
  await Deno.writeTextFile(join(own, "gitdir"), join(linked, ".git"));
  await Deno.writeTextFile(join(own, "commondir"), "../..\n");
  const files = { main: join(main, ".pml.json"), linked: join(linked, ".pml.json") };
  for (const file of Object.values(files)) await Deno.writeTextFile(file, "{}");
  return files;
}

/** A store that simulates another process just before a file is trusted or revoked. */
class Racing extends TrustStore {
  beforeTrust = () => Promise.resolve();
  beforeRevoke = (_: string) => Promise.resolve();
  afterRevoke = (_: string) => {};

  override async trust(...given: Parameters<TrustStore["trust"]>): Promise<void> {
    await this.beforeTrust();
    await super.trust(...given);
  }

  override async revoke(path: string): Promise<boolean> {
    await this.beforeRevoke(path);
    const had = await super.revoke(path);
    this.afterRevoke(path);
    return had;
  }
}

Deno.test("revoked trust is not copied to another worktree concurrently", async () => {
  await using at = await place();
  const folder = dirname(at.file);
  const { main, linked } = await worktrees(folder);
  const store = new Racing(join(folder, "home"), { warn: (message) => assert.fail(message) });
  const trust = new WorkspaceTrust(store);
  const isTrusted = async () => (await at.trust.stateOf(shownFile(linked))).trusted;
  const trusted = () => at.store.trust({ path: main, hash: HASH, servers: {} });
  await trusted();
  store.beforeTrust = async () => void await at.trust.revoke(main);
  assert.equal((await trust.stateOf(shownFile(linked))).trusted, false);
  assert.equal(await isTrusted(), false, "copied after the revocation");
  await trusted();
  assert.equal(await isTrusted(), true);
  let takenOver: boolean | undefined;
  const revoked = Promise.withResolvers<void>();
  store.afterRevoke = (path) => void (path === linked && revoked.resolve());
  store.beforeRevoke = async (path) => {
    if (path !== main || takenOver !== undefined) return;
    await revoked.promise;
    takenOver = await isTrusted();
  };
  await trust.revoke(main);
  assert.equal(takenOver, true);
  assert.equal(await isTrusted(), false, "copied during the revocation");
});
