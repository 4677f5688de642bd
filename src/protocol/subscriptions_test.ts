import assert from "node:assert/strict";
import { ListenRequests } from "./subscriptions.ts";

const ID = "io.modelcontextprotocol/subscriptionId";

function subscriptions() {
  return new ListenRequests((id) => id === "known");
}

Deno.test("a request is acknowledged with the notifications that it will get", () => {
  const all = subscriptions();
  const notifications = {
    toolsListChanged: true,
    promptsListChanged: false,
    resourceSubscriptions: ["a:b"],
    taskIds: ["known", "unknown"],
    later: 1,
  };
  assert.equal(all.open("7", { notifications }), undefined);
  assert.deepEqual(all.acknowledgement("7"), {
    method: "notifications/subscriptions/acknowledged",
    params: {
      notifications: {
        toolsListChanged: true,
        resourceSubscriptions: ["a:b"],
        taskIds: ["known"],
      },
      _meta: { [ID]: 7 },
    },
  });
  assert.deepEqual(all.listened, { uris: ["a:b"], tasks: ["known", "unknown"] });
});

Deno.test("a notification is copied for each request that listens for it, until that is closed", () => {
  const all = subscriptions();
  all.open("1", { notifications: { toolsListChanged: true } });
  all.open('"x"', { notifications: { toolsListChanged: true, resourceSubscriptions: ["a:b"] } });
  const idsOf = (method: string, params?: object) =>
    all.copiesOf({ method, params }).map((one) => (one.params as never)?.["_meta"]?.[ID]);
  assert.deepEqual(idsOf("notifications/tools/list_changed"), [1, "x"]);
  assert.deepEqual(idsOf("notifications/prompts/list_changed"), []);
  assert.deepEqual(idsOf("notifications/resources/updated", { uri: "a:b", _meta: { k: 1 } }), [
    "x",
  ]);
  assert.deepEqual(idsOf("notifications/resources/updated", { uri: "a:c" }), []);
  assert.deepEqual(idsOf("notifications/progress"), [undefined], "needs no request");
  assert.equal(all.close("1"), true);
  assert.equal(all.close("1"), false);
  assert.deepEqual(idsOf("notifications/tools/list_changed"), ["x"]);
});

Deno.test("a request with an invalid filter, and one of too many, is refused", () => {
  const all = subscriptions();
  for (const notifications of [undefined, 1, { toolsListChanged: 1 }, { taskIds: [1] }]) {
    assert.equal(all.open("1", { notifications } as never)?.code, -32602);
  }
  for (let at = 0; at < 1_024; at++) {
    assert.equal(all.open(`${at}`, { notifications: {} }), undefined);
  }
  assert.equal(all.open("1024", { notifications: {} })?.code, -32603);
});
