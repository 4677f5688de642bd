import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { textOf } from "./attacks/oracles.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";
import { type ScriptScene, scriptScene } from "./script_scene.ts";

const ROOTS = { roots: { listChanged: true } };
const ASK_ROOTS = { steps: [{ ask: { method: "roots/list", params: {} } }] };

/** Returns the addresses of the roots that the server sees. */
async function rootsOf({ call }: ScriptScene): Promise<readonly string[]> {
  const [{ result }] = JSON.parse(textOf(await call(ASK_ROOTS)));
  return result.roots.map(({ uri }: { readonly uri: string }) => uri);
}

function uriOf(...path: readonly string[]): string {
  return pathToFileURL(join(...path)).href;
}

/** Creates a scene whose client names roots: two in the workspace, and one outside of it. */
async function rootsScene(options: Parameters<typeof scriptScene>[1] = {}) {
  const shown: { uris: readonly string[] } = { uris: [] };
  let asked = 0;
  const scene = await scriptScene("2025-11-25", {
    capabilities: ROOTS,
    answer: (method) => {
      assert.equal(method, "roots/list");
      asked++;
      return { roots: shown.uris.map((uri) => ({ uri, name: "r" })) };
    },
    ...options,
    prepare: async (ws) => {
      const folder = ws.file("part");
      await mkdir(folder);
      shown.uris = [uriOf(ws.file(".")), uriOf(folder), uriOf(ws.root, "other"), "https://x.test/"];
      await options.prepare?.(ws);
    },
  });
  return { scene, shown, asked: () => asked };
}

Deno.test("servers see the roots of the client in the workspace, and their changes", async () => {
  const { scene, shown, asked } = await rootsScene();
  await using _ = scene;
  const [ws = "", part = ""] = shown.uris;
  assert.deepEqual(await rootsOf(scene), [ws, part]);
  const before = asked();
  assert.deepEqual(await rootsOf(scene), [ws, part]);
  assert.equal(asked(), before, "the roots are cached");
  shown.uris = [part];
  await scene.pml.notify("notifications/roots/list_changed");
  await until(async () => (await scene.ledger()).includes("roots changed"));
  assert.deepEqual(await rootsOf(scene), [part]);
  shown.uris = [uriOf("/")];
  await scene.pml.notify("notifications/roots/list_changed");
  // The server may see none of these roots, so its root is the workspace.
  await until(async () => (await rootsOf(scene))[0] === ws.replace(/\/\.?$/, ""));
});

Deno.test("a server sees roots outside of the workspace by a rule with its name, and none by a deny", async () => {
  const named = await rootsScene({ rules: { allow: ["s:*", "s:@roots"] } });
  await using _ = named.scene;
  assert.deepEqual(await rootsOf(named.scene), named.shown.uris);
  const denied = await rootsScene({ rules: { allow: ["s:*"], deny: ["s:@roots"] } });
  await using _denied = denied.scene;
  assert.deepEqual(await rootsOf(denied.scene), []);
  assert.equal(denied.asked(), 0);
});

Deno.test("the only root is the workspace that PML_WORKSPACE names", async () => {
  const env: Record<string, string> = {};
  const prepare = (ws: Workspace) => {
    env.PML_WORKSPACE = ws.file(".");
    return Promise.resolve();
  };
  const rules = { allow: ["s:*", "s:@roots"] };
  const { scene, asked } = await rootsScene({ env, prepare, rules });
  await using _ = scene;
  assert.deepEqual(await rootsOf(scene), [uriOf(scene.ws.file("."))]);
  assert.equal(asked(), 0);
});
