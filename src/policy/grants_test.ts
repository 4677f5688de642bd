import assert from "node:assert/strict";
import { NO_PERMISSIONS, type Permissions } from "../protocol/tool.ts";
import { accessOf, type ServerGrants } from "./grants.ts";

const NOTHING = { net: [], run: [], env: [] };

Deno.test("accessOf() includes requested paths inside the workspace and none outside", () => {
  const requested = {
    ...NO_PERMISSIONS,
    read: [".", "/", "..", "../ws-evil", "src"],
    write: ["out"],
  };
  assert.deepEqual(accessOf(requested, { workspace: "/ws", grants: undefined }), {
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
  const requested = { ...NO_PERMISSIONS, read: ["."] };
  const grants = { read: ["docs", "plain", "../outside"] };
  const { granted } = accessOf(requested, { workspace, grants });
  assert.deepEqual(granted, [`${root}/outside`, `${workspace}/plain`]);
  const only = accessOf(requested, { workspace, grants: { read: ["docs"] } });
  assert.deepEqual(only.read, [workspace]);
  await Deno.remove(root, { recursive: true });
});

Deno.test("accessOf() includes hosts, programs and variables that are both requested and granted", () => {
  const access = (permissions: Partial<Permissions>, grants: ServerGrants) => {
    const { net, run, env } = accessOf({ ...NO_PERMISSIONS, ...permissions }, {
      workspace: "/ws",
      grants,
    });
    return { net, run, env };
  };
  const requested = {
    net: ["API.example.com", "b:8080"],
    run: ["git"],
    env: ["TOKEN", "PML_API_KEY"],
  };
  assert.deepEqual(access(requested, {}), NOTHING);
  assert.deepEqual(
    access(requested, { net: ["api.example.com:443"], run: ["ls"], env: ["TOKEN", "PML_API_KEY"] }),
    { net: ["api.example.com:443"], run: [], env: ["TOKEN"] },
  );
  assert.deepEqual(access(requested, { net: ["*"], run: ["*"], env: ["*"] }), {
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
  // `*` matches the names next to a `*` of the other side, too.
  const named = { net: ["b:8080", "*"], run: ["git", "*"], env: ["A", "*"] };
  const both = { net: ["*", "b:8080"], run: ["*", "git"], env: ["A"] };
  assert.deepEqual([access(named, all), access(all, named)], [both, both]);
});

Deno.test("accessOf() throws for addresses next to names, which could resolve to them", () => {
  const requested = { ...NO_PERMISSIONS, net: ["127.0.0.1:8080", "api.example.com"] };
  const grants = { net: ["127.0.0.1:8080", "api.example.com"] };
  assert.throws(() => accessOf(requested, { workspace: "/ws", grants }), {
    code: "SANDBOX_DENIED",
  });
  const alone = accessOf({ ...requested, net: ["*"] }, {
    workspace: "/ws",
    grants: { net: ["[::1]:80"] },
  });
  assert.deepEqual(alone.net, ["[::1]:80"]);
});

Deno.test("accessOf() includes IP addresses only if a grant contains them", () => {
  const netOf = (net: readonly string[], granted: readonly string[]) =>
    accessOf({ ...NO_PERMISSIONS, net }, { workspace: "/ws", grants: { net: granted } }).net;
  const addresses = ["127.0.0.1:8080", "[::1]:80"];
  assert.deepEqual(netOf(addresses, ["*"]), []);
  assert.deepEqual(netOf([...addresses, "api.example.com"], ["*"]), ["api.example.com:443"]);
  assert.deepEqual(netOf([...addresses, "*"], ["*"]), ["*"]);
  assert.deepEqual(netOf(addresses, addresses), addresses);
});
