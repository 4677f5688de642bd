import assert from "node:assert/strict";
import { NO_PERMISSIONS } from "../protocol/tool.ts";
import { adviceOn, missingPermission } from "./_dev_grant.ts";

const SAID: readonly (readonly [message: string, kind: string, item: string])[] = [
  ['Cannot read "a b.txt": the module has no read grant for it', "read", "a b.txt"],
  ['Cannot readDir "x": the module has no write grant for it', "write", "x"],
  ['Cannot open "../x": it is outside the workspace', "read", "../x"],
  ['Cannot make a temporary file in "/x": it is outside the workspace', "write", "/x"],
  ['Cannot list "../x": it is outside the workspace', "read", "../x"],
  ['Cannot look at "../x": it is outside the workspace', "read", "../x"],
  ['Cannot remove ".env": it is protected', "write", ".env"],
  ['Cannot run "git": this module has no run grant for it', "run", "git"],
  ['Cannot read the variable "TOKEN": this module has no env grant for it', "env", "TOKEN"],
  ['Cannot fetch "https://a.b": this module has no net grant for a.b:443', "net", "a.b"],
  ['Cannot fetch "http://a.b:81": this module has no net grant for a.b:81', "net", "a.b:81"],
];
const PLACE = {
  server: "mine",
  path: "/ws/mcp/mine.ts",
  workspace: "/ws",
  file: "/ws/.pml.json",
  permissions: { ...NO_PERMISSIONS, read: ["docs"], net: ["a.b:443", "c.d"] },
  granted: { net: ["c.d"] },
};

Deno.test("missingIn() finds the permission in the message of an error", () => {
  for (const [message, kind, item] of SAID) {
    const { kind: found, item: named } = missingPermission(message) ?? {};
    assert.deepEqual([found, named], [kind, item], message);
  }
  assert.equal(missingPermission("No such file or directory"), undefined);
});

Deno.test("adviceOn() returns the missing grants of the file, merged with its own, and of __meta__", () => {
  const net = { kind: "net", item: "a.b", isProtected: false } as const;
  const config = {
    private_mcps: undefined,
    grants: { mine: { net: ["c.d", "a.b"] } },
  };
  assert.deepEqual(adviceOn(net, PLACE), { ask: undefined, file: PLACE.file, config });
  const inside = { kind: "read", item: "docs/a.md", isProtected: false } as const;
  assert.deepEqual(adviceOn(inside, PLACE), { ask: undefined });
  assert.deepEqual(adviceOn({ ...inside, item: "src/a.ts" }, PLACE), {
    ask: { read: ["src/a.ts"] },
  });
  assert.deepEqual(adviceOn({ ...inside, isProtected: true }, PLACE).config, {
    private_mcps: undefined,
    grants: { mine: { ...PLACE.granted, read: ["docs/a.md"] } },
  });
  assert.deepEqual(adviceOn(inside, { ...PLACE, granted: undefined }).config, {
    private_mcps: { mine: { type: "deno", path: "./mcp/mine.ts" } },
    grants: undefined,
  });
});
