/**
 * Accesses that a module tries when it runs: files, environment, other programs, native code, each
 * as its own code and again inside `eval`.
 *
 * @module
 */

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { symlink } from "node:fs/promises";
import { assertHeld, attack, type Group } from "./evilmod/house.ts";

const GROUPS: readonly Group[] = [
  {
    group: "imports",
    least: 17,
    like:
      /Requires (read|import) access|outside the workspace|one thread|not a valid module type|invalid URL/,
  },
  { group: "environment", least: 16, like: /Requires \w+ access|outside the workspace/ },
  {
    group: "powers",
    least: 29,
    like:
      /Requires \w+ access|run grant|native code|host\.sqlite|it is denied|not there|not a function|attached databases|preopen/,
  },
  {
    group: "files",
    least: 24,
    like: /Requires \w+ access|outside the workspace|it is protected|cannot make links/,
  },
];

Deno.test("every probe of a hostile module is refused, and no secret is revealed", async (t) => {
  const key = `canary-key-${randomBytes(12).toString("hex")}`;
  const secret = `canary-env-${randomBytes(12).toString("hex")}`;
  const files = { ".env": `SECRET=${secret}\n`, ".git/config": "[core]\n" };
  const env = { PML_CANARY_KEY: key, ANTHROPIC_API_KEY: key, PML_API_KEY: key };
  const options = { modules: { evil: "probes.ts", good: "good.ts" }, env, secrets: [key], files };
  await attack(options, async (house) => {
    const { ws, call, pml } = house;
    const link = ws.file("environ");
    await symlink("/proc/self/environ", link);
    const args = { canary: ws.outside, link, http: 1, tcp: 1, udp: 1 };
    for (const tool of ["probe", "again"] as const) {
      for (const group of GROUPS) {
        await t.step(`${tool} ${group.group}`, () => assertHeld(house, { tool, group, args }));
      }
    }
    // No log may contain the arguments.
    assert.equal((await call("good:fail", { password: key })).text, "Only 3 are left");
    for (const [name, text] of Object.entries(files)) {
      assert.equal(await Deno.readTextFile(ws.file(name)), text, name);
    }
    assert.ok(!(pml.stdout + pml.stderr).includes(secret));
  });
});
