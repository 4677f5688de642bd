import assert from "node:assert/strict";
import { NO_PERMISSIONS } from "../core/tool.ts";
import { fileAccess } from "./grants.ts";

Deno.test("fileAccess() gives what is asked inside the workspace and nothing outside", () => {
  const asked = { ...NO_PERMISSIONS, read: [".", "/", "..", "../ws-evil", "src"], write: ["out"] };
  assert.deepEqual(fileAccess(asked, { workspace: "/ws", grants: undefined }), {
    read: ["/ws", "/ws/src"],
    write: ["/ws/out"],
    granted: [],
  });
  assert.deepEqual(fileAccess(NO_PERMISSIONS, { workspace: "/ws", grants: undefined }), {
    read: [],
    write: [],
    granted: [],
  });
});

Deno.test("fileAccess() adds a grant only to tools that read or write at all", () => {
  const grants = { read: ["../docs"], write: ["../out"] };
  const reader = { ...NO_PERMISSIONS, read: ["."] };
  assert.deepEqual(fileAccess(reader, { workspace: "/ws", grants }), {
    read: ["/docs", "/ws"],
    write: [],
    granted: ["/docs", "/out"],
  });
  assert.deepEqual(fileAccess(NO_PERMISSIONS, { workspace: "/ws", grants }).read, []);
});

Deno.test("fileAccess() drops a grant within the workspace that a link leads out of it", async () => {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const workspace = `${root}/ws`;
  await Deno.mkdir(`${workspace}/plain`, { recursive: true });
  await Deno.mkdir(`${root}/outside`);
  await Deno.symlink(`${root}/outside`, `${workspace}/docs`);
  const asked = { ...NO_PERMISSIONS, read: ["."] };
  const grants = { read: ["docs", "plain", "../outside"] };
  const { granted } = fileAccess(asked, { workspace, grants });
  assert.deepEqual(granted, [`${root}/outside`, `${workspace}/plain`]);
  const only = fileAccess(asked, { workspace, grants: { read: ["docs"] } });
  assert.deepEqual(only.read, [workspace]);
  await Deno.remove(root, { recursive: true });
});
