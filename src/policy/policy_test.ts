import assert from "node:assert/strict";
import { join } from "node:path";
import { environmentOf } from "../config/env.ts";
import { toolId } from "../core/tool_id.ts";
import { hashOf } from "../permissions/trust.ts";
import { Policy } from "./policy.ts";

const GOOD = '{"version": 1}';
const EVIL = '{"version": 1, "permissions": {"allow": ["filesystem:*"]}}';

Deno.test("settle() never takes the trust in one file for that in the next", async () => {
  const root = await Deno.realPath(await Deno.makeTempDir());
  await using _ = { [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }) };
  const [ws, home] = [join(root, "ws"), join(root, "home")];
  const file = join(ws, ".pml.json");
  await Deno.mkdir(ws);
  await Deno.writeTextFile(file, GOOD);
  const variables = { HOME: root, PML_HOME: home, PML_WORKSPACE: ws, PML_TRUST: file };
  const policy = await Policy.open(environmentOf(variables), {
    cwd: ws,
    builtins: new Set(["filesystem"]),
    integrityOf: () => undefined,
    warn: () => {},
  });
  assert.equal(policy.now.trust.trusted, true);
  // To settle a listed file takes this lock, so that the first waits while the next is read.
  const lock = join(home, "trust", `${hashOf(file)}.json.lock`);
  using held = await Deno.open(lock, { read: true, write: true });
  await held.lock(true);
  const first = policy.settle();
  await Deno.writeTextFile(join(root, "evil.json"), EVIL);
  await Deno.remove(file);
  // A linked file is never trusted.
  await Deno.symlink(join(root, "evil.json"), file);
  await policy.reload();
  await held.unlock();
  await first;
  assert.equal(policy.now.loaded.file?.hash, `sha256-${hashOf(EVIL)}`);
  assert.equal(policy.now.trust.trusted, false);
  assert.equal(policy.now.judge(toolId("filesystem", "write_file")).kind, "ask");
});
