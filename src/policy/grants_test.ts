import assert from "node:assert/strict";
import { NO_PERMISSIONS, type Permissions } from "../protocol/tool.ts";
import { accessOf, type ServerGrants } from "./grants.ts";

const NOTHING = { net: [], run: [], env: [] };

Deno.test("accessOf() includes requested paths inside the workspace and none outside", () => {
  const asked = { ...NO_PERMISSIONS, read: [".", "/", "..", "../ws-evil", "src"], write: ["out"] };
  assert.deepEqual(accessOf(asked, { workspace: "/ws", grants: undefined }), {
    read: ["/ws", "/ws/src"],
    write: ["/ws/out"],
    ...NOTHING,
    granted: [],
  });
  assert.deepEqual(accessOf(NO_PERMISSIONS, { workspace: "/ws", grants: undefined }), {
    read: [],
    write: [],
    ...NOTHING,
    granted: [],
  });
});

Deno.test("accessOf() applies path grants only to tools that read or write", () => {
  const grants = { read: ["../docs"], write: ["../out"] };
  const reader = { ...NO_PERMISSIONS, read: ["."] };
  assert.deepEqual(accessOf(reader, { workspace: "/ws", grants }), {
    read: ["/docs", "/ws"],
    write: [],
    ...NOTHING,
    granted: ["/docs", "/out"],
  });
  assert.deepEqual(accessOf(NO_PERMISSIONS, { workspace: "/ws", grants }).read, []);
});

Deno.test("accessOf() omits a grant inside the workspace that a link leads outside", async () => {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const workspace = `${root}/ws`;
  await Deno.mkdir(`${workspace}/plain`, { recursive: true });
  await Deno.mkdir(`${root}/outside`);
  await Deno.symlink(`${root}/outside`, `${workspace}/docs`);
  const asked = { ...NO_PERMISSIONS, read: ["."] };
  const grants = { read: ["docs", "plain", "../outside"] };
  const { granted } = accessOf(asked, { workspace, grants });
  assert.deepEqual(granted, [`${root}/outside`, `${workspace}/plain`]);
  const only = accessOf(asked, { workspace, grants: { read: ["docs"] } });
  assert.deepEqual(only.read, [workspace]);
  await Deno.remove(root, { recursive: true });
});

Deno.test("accessOf() includes hosts, programs and variables that are both requested and granted", () => {
  const access = (asked: Partial<Permissions>, grants: ServerGrants) => {
    const { net, run, env } = accessOf({ ...NO_PERMISSIONS, ...asked }, {
      workspace: "/ws",
      grants,
    });
    return { net, run, env };
  };
  const asked = { net: ["API.example.com", "b:8080"], run: ["git"], env: ["TOKEN", "PML_API_KEY"] };
  assert.deepEqual(access(asked, {}), NOTHING);
  assert.deepEqual(
    access(asked, { net: ["api.example.com:443"], run: ["ls"], env: ["TOKEN", "PML_API_KEY"] }),
    { net: ["api.example.com:443"], run: [], env: ["TOKEN"] },
  );
  assert.deepEqual(access(asked, { net: ["*"], run: ["*"], env: ["*"] }), {
    net: ["api.example.com:443", "b:8080"],
    run: ["git"],
    env: ["TOKEN"],
  });
  const all = { net: ["*"], run: ["*"], env: ["*"] };
  assert.deepEqual(access(all, { net: ["a"], run: ["git"], env: ["T"] }), {
    net: ["a:443"],
    run: ["git"],
    env: ["T"],
  });
  assert.deepEqual(access(all, all), { net: ["*"], run: ["*"], env: [] });
});

Deno.test("accessOf() throws for addresses next to names, which could resolve to them", () => {
  const asked = { ...NO_PERMISSIONS, net: ["127.0.0.1:8080", "api.example.com"] };
  const grants = { net: ["127.0.0.1:8080", "api.example.com"] };
  assert.throws(() => accessOf(asked, { workspace: "/ws", grants }), { code: "SANDBOX_DENIED" });
  const alone = accessOf({ ...asked, net: ["*"] }, {
    workspace: "/ws",
    grants: { net: ["[::1]:80"] },
  });
  assert.deepEqual(alone.net, ["[::1]:80"]);
});
