/**
 * Tests which workspaces of the page stay open.
 *
 * @module
 */

import assert from "node:assert/strict";
import { type App, openApp } from "../app/app.ts";
import { readEnvironment } from "../config/env.ts";
import { PmlError } from "../core/errors.ts";
import { makeWorkspace, type Workspace } from "../../tests/kit/workspace.ts";
import { WorkspaceApps } from "./_workspace_apps.ts";

async function openHere(ws: Workspace): Promise<App> {
  const environment = readEnvironment(ws.env, ws.path);
  return await openApp({ cwd: ws.path, environment, write: () => {} });
}

Deno.test("the page closes the workspace that was not used for the longest time", async () => {
  await using ws = await makeWorkspace();
  await using one = await makeWorkspace();
  await using two = await makeWorkspace();
  await using three = await makeWorkspace();
  await using here = await openHere(ws);
  await using apps = new WorkspaceApps(here, new AbortController().signal, 2);
  const appOf = (root: string) => apps.use(root, ({ app }) => app);
  const [first, second] = [await appOf(one.path), await appOf(two.path)];
  assert.equal(await appOf(one.path), first);
  await appOf(three.path);
  assert.equal(apps.size, 2);
  assert.equal(await appOf(one.path), first, "it was used later than the second one");
  assert.notEqual(await appOf(two.path), second, "it was opened again");
  assert.equal(await appOf(ws.path), here);
});

Deno.test("the page closes no workspace that an action or a plan uses", async () => {
  await using ws = await makeWorkspace();
  await using one = await makeWorkspace();
  await using two = await makeWorkspace();
  await using three = await makeWorkspace();
  await using here = await openHere(ws);
  await using apps = new WorkspaceApps(here, new AbortController().signal, 2);
  const use = await apps.use(one.path, (at) => apps.hold(at));
  const running = Promise.withResolvers<void>();
  const action = apps.use(two.path, () => running.promise);
  await assert.rejects(
    apps.use(three.path, () => {}),
    (error) => error instanceof PmlError && error.code === "BAD_ARGUMENTS",
  );
  use[Symbol.dispose]();
  await Promise.all([1, 2].map(() => apps.use(three.path, () => {})));
  running.resolve();
  await action;
  await apps.use(one.path, () => {});
  assert.equal(apps.size, 2);
});
