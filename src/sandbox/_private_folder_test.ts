import assert from "node:assert/strict";
import { openPrivateFolder } from "./_private_folder.ts";

const closed = () => Promise.reject(new Deno.errors.PermissionDenied());

/** Makes `Deno.remove` fail for unreadable folders, as for a user who is not root. */
async function withoutRoot(step: () => Promise<void>, chmod = Deno.chmod): Promise<void> {
  const { remove, chmod: before } = Deno;
  const put = (given: Partial<typeof Deno>) => {
    for (const [name, value] of Object.entries(given)) Object.defineProperty(Deno, name, { value });
  };
  const guarded: typeof remove = (path, options) =>
    isClosed(String(path)) ? closed() : remove(path, options);
  put({ remove: guarded, chmod });
  try {
    await step();
  } finally {
    put({ remove, chmod: before });
  }
}

function isClosed(folder: string): boolean {
  if (((Deno.statSync(folder).mode ?? 0) & 0o700) !== 0o700) return true;
  const inside = [...Deno.readDirSync(folder)].filter(({ isDirectory }) => isDirectory);
  return inside.some(({ name }) => isClosed(`${folder}/${name}`));
}

function closeIn(temp: string): void {
  Deno.mkdirSync(`${temp}/closed/deep`, { recursive: true });
  Deno.chmodSync(`${temp}/closed`, 0);
}

/** Creates a folder of an ended process. No process has this id. */
function leftIn(home: string): string {
  const left = `${home}/sandbox/${2 ** 30}-left`;
  Deno.mkdirSync(left, { recursive: true });
  closeIn(left);
  return left;
}

function namesIn(home: string): readonly string[] {
  return [...Deno.readDirSync(`${home}/sandbox`)].map(({ name }) => name);
}

async function inHome(step: (home: string) => Promise<void>): Promise<void> {
  const home = Deno.makeTempDirSync({ prefix: "pml-private-" });
  await step(home);
  Deno.removeSync(home, { recursive: true });
}

Deno.test("openPrivateFolder() removes folders of ended processes, including unreadable ones", () =>
  inHome(async (home) => {
    leftIn(home);
    await withoutRoot(async () => {
      const folder = openPrivateFolder(home, home);
      closeIn(folder.temp);
      await folder[Symbol.asyncDispose]();
      while (namesIn(home).length > 0) await new Promise((later) => setTimeout(later, 5));
    });
  }));

Deno.test("openPrivateFolder() works if an old folder cannot be removed", () =>
  inHome(async (home) => {
    leftIn(home);
    await withoutRoot(async () => {
      await openPrivateFolder(home, home)[Symbol.asyncDispose]();
    }, closed);
    assert.equal(namesIn(home).length, 1);
  }));
