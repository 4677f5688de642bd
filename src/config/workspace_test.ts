import assert from "node:assert/strict";
import { join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { Scratch } from "./_scratch_test.ts";
import { findWorkspace } from "./workspace.ts";

function said(find: () => unknown): string {
  try {
    find();
  } catch (error) {
    assert.ok(error instanceof PmlError);
    assert.equal(error.code, "CONFIG_INVALID");
    assert.ok(error.hint);
    return error.message;
  }
  assert.fail("a workspace was found");
}

Deno.test("findWorkspace() takes the nearest marker of the first kind that any ancestor has", () => {
  using scratch = new Scratch();
  const environment = scratch.environment();
  const deep = join(scratch.ws, "a/b/c");
  Deno.mkdirSync(deep, { recursive: true });
  const at = () => {
    const { root, found } = findWorkspace(environment, deep);
    return [found, root];
  };
  const { warning, ...bare } = findWorkspace(environment, deep);
  assert.deepEqual(bare, { root: deep, found: "cwd", file: undefined, parents: [] });
  assert.match(warning ?? "", /current folder is used/);
  scratch.write("ws/package.json", "{}");
  assert.deepEqual(at(), ["package.json", scratch.ws]);
  scratch.write("ws/a/b/deno.json", "{}");
  assert.deepEqual(at(), ["deno.json", join(scratch.ws, "a/b")]);
  scratch.write("ws/a/.git", "gitdir: x");
  assert.deepEqual(at(), [".git", join(scratch.ws, "a")]);
  scratch.write("ws/.pml.json", "{}");
  assert.deepEqual(at(), [".pml.json", scratch.ws]);
  scratch.write("ws/a/b/.pml.json", "{}");
  assert.deepEqual(at(), [".pml.json", join(scratch.ws, "a/b")]);
});

Deno.test("findWorkspace() obeys PML_WORKSPACE, relative too, and takes the real path", () => {
  using scratch = new Scratch();
  scratch.write("ws/.pml.json", "{}");
  Deno.symlinkSync(scratch.ws, join(scratch.root, "link"));
  for (const said of [scratch.ws, "link", "./ws/../ws", join(scratch.root, "link")]) {
    const environment = scratch.environment({ PML_WORKSPACE: said });
    const found = findWorkspace(environment, scratch.root);
    assert.equal(found.root, scratch.ws);
    assert.equal(found.found, "PML_WORKSPACE");
    assert.equal(found.file, join(scratch.ws, ".pml.json"));
    assert.equal(found.warning, undefined);
  }
  assert.equal(findWorkspace(scratch.environment(), join(scratch.root, "link")).root, scratch.ws);
});

Deno.test("findWorkspace() refuses a PML_WORKSPACE that is missing or a file", () => {
  using scratch = new Scratch();
  const file = scratch.write("ws/file", "");
  const at = (path: string) =>
    said(() => findWorkspace(scratch.environment({ PML_WORKSPACE: path }), scratch.ws));
  assert.match(
    at("missing"),
    /"PML_WORKSPACE": found ".*missing"/,
  );
  assert.match(at(file), /found ".*file", wanted a folder/);
  assert.match(at(`${file}/x`), /found ".*file\/x", wanted a folder/);
});

Deno.test("findWorkspace() accepts / and the home folder only if PML_WORKSPACE names them", () => {
  using scratch = new Scratch();
  scratch.write("user/.git", "");
  scratch.write("user/package.json", "");
  scratch.write("user/.pml.json", "");
  const environment = scratch.environment();
  for (const folder of ["/", scratch.user, scratch.root]) {
    assert.match(
      said(() => findWorkspace(environment, folder)),
      /the home folder$/,
    );
    const explicit = scratch.environment({ PML_WORKSPACE: folder });
    assert.equal(findWorkspace(explicit, scratch.ws).root, folder);
  }
  Deno.removeSync(join(scratch.user, ".git"));
  const inner = join(scratch.user, "inner");
  Deno.mkdirSync(inner);
  const found = findWorkspace(environment, inner);
  assert.deepEqual([found.found, found.root], ["cwd", inner]);
  // Its rules still hold: a deny rule in the home folder stays, although that folder cannot be the
  // workspace.
  assert.deepEqual(found.parents, [join(scratch.user, ".pml.json")]);
});

Deno.test("findWorkspace() names the .pml.json up to the repository root, no further", () => {
  using scratch = new Scratch();
  scratch.write("ws/.pml.json", "{}");
  scratch.write("ws/repo/.git/HEAD", "");
  scratch.write("ws/repo/.pml.json", "{}");
  scratch.write("ws/repo/a/b/.pml.json", "{}");
  Deno.mkdirSync(join(scratch.ws, "repo/a/b/c"));
  const found = findWorkspace(scratch.environment(), join(scratch.ws, "repo/a/b/c"));
  assert.equal(found.file, join(scratch.ws, "repo/a/b/.pml.json"));
  assert.deepEqual(found.parents, [join(scratch.ws, "repo/.pml.json")]);
  const narrow = scratch.environment({ PML_WORKSPACE: join(scratch.ws, "repo/a") });
  assert.equal(findWorkspace(narrow, scratch.ws).file, undefined);
  assert.deepEqual(findWorkspace(narrow, scratch.ws).parents, [join(scratch.ws, "repo/.pml.json")]);
});

Deno.test("findWorkspace() takes a link to nothing and a folder for a .pml.json that is there", () => {
  using scratch = new Scratch();
  Deno.mkdirSync(join(scratch.ws, "a"));
  Deno.symlinkSync("nowhere", join(scratch.ws, ".pml.json"));
  assert.equal(findWorkspace(scratch.environment(), join(scratch.ws, "a")).root, scratch.ws);
  Deno.mkdirSync(join(scratch.ws, "a/.pml.json"));
  assert.equal(findWorkspace(scratch.environment(), join(scratch.ws, "a")).found, ".pml.json");
});
