import assert from "node:assert/strict";
import { openPrivateFolder } from "./_private.ts";

/** Removes as the system does for who is not root: nothing out of a folder that is closed. */
function withoutRoot(step: () => void): void {
  const { removeSync } = Deno;
  const put = (value: typeof removeSync) => Object.defineProperty(Deno, "removeSync", { value });
  put((path, options) => {
    refuseClosed(String(path));
    removeSync(path, options);
  });
  try {
    step();
  } finally {
    put(removeSync);
  }
}

function refuseClosed(folder: string): void {
  if (((Deno.statSync(folder).mode ?? 0) & 0o700) !== 0o700) {
    throw new Deno.errors.PermissionDenied();
  }
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    if (isDirectory) refuseClosed(`${folder}/${name}`);
  }
}

Deno.test("A private folder goes with what a module closed in it, and stops no start", () => {
  const home = Deno.makeTempDirSync({ prefix: "pml-private-" });
  const close = (temp: string) => {
    Deno.mkdirSync(`${temp}/closed/deep`, { recursive: true });
    Deno.chmodSync(`${temp}/closed`, 0);
  };
  // No process has such a number.
  const left = `${home}/sandbox/${2 ** 30}-left`;
  Deno.mkdirSync(`${left}/temp`, { recursive: true });
  close(`${left}/temp`);
  withoutRoot(() => {
    using folder = openPrivateFolder(home, home);
    close(folder.temp);
  });
  assert.deepEqual([...Deno.readDirSync(`${home}/sandbox`)], []);
  withoutRoot(() => {
    const { chmodSync } = Deno;
    const put = (value: typeof chmodSync) => Object.defineProperty(Deno, "chmodSync", { value });
    Deno.mkdirSync(`${left}/temp`, { recursive: true });
    close(`${left}/temp`);
    put(() => {
      throw new Deno.errors.PermissionDenied();
    });
    try {
      openPrivateFolder(home, home)[Symbol.dispose]();
    } finally {
      put(chmodSync);
    }
  });
  Deno.removeSync(home, { recursive: true });
});
