import assert from "node:assert/strict";
import { Notices } from "./_notices.ts";
import type { RunningTasks } from "./_tasks.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";

/** Returns the effects of a notification of a server. */
function taken(method: string): readonly unknown[] {
  const all: unknown[] = [];
  const note = (what: string) => (...args: unknown[]) => void all.push([what, ...args]);
  const clients = Object.fromEntries(
    ["onListChanged", "onLog", "onResourceUpdated", "onNotification"].map((
      what,
    ) => [what, note(what)]),
  );
  const host = { clients, logServer: note("log") } as unknown as UpstreamsHost;
  const notices = new Notices(host, {} as RunningTasks, note("forgotten")); // nothing else is used
  notices.take("s", { method, params: { uri: "a:b" } });
  return all;
}

Deno.test("a list that changed is forgotten and passed on", () => {
  assert.deepEqual(taken("notifications/prompts/list_changed"), [
    ["forgotten", "s", ["prompts"]],
    ["onListChanged", "s", "prompts", { params: { uri: "a:b" } }],
  ]);
  const [, resources, templates] = taken("notifications/resources/list_changed");
  assert.deepEqual(resources, ["onListChanged", "s", "resources", { params: { uri: "a:b" } }]);
  assert.deepEqual(templates, ["onListChanged", "s", "resourceTemplates", undefined]);
});

Deno.test("a notification that PML does not know is passed on", () => {
  const client = undefined;
  const params = { uri: "a:b" };
  const notification = { method: "notifications/later", params, members: undefined, client };
  assert.deepEqual(taken("notifications/later"), [["onNotification", "s", notification]]);
  assert.deepEqual(taken("notifications/subscriptions/acknowledged"), []);
  assert.deepEqual(taken("notifications/resources/updated"), [[
    "onResourceUpdated",
    "s",
    "a:b",
    undefined,
  ]]);
});
