import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import type { HubStore } from "../store/store.ts";
import { openMcp } from "./mcp.ts";

Deno.test("openMcp() answers other requests between the searches of a batch", async () => {
  const seen: string[] = [];
  const store: Pick<HubStore, "page" | "related"> = {
    page: () => {
      seen.push("search");
      return Promise.resolve([]);
    },
    related: () => Promise.resolve([]),
  };
  const mcp = openMcp(store);
  const search = { name: "pml__search_tools", arguments: { query: "weather" } };
  const batch = Array.from({ length: 20 }, (_, id) => ({
    ...{ jsonrpc: "2.0", id, method: "tools/call", params: search },
  }));
  const body = new TextEncoder().encode(JSON.stringify(batch));
  let isOver = false;
  const turns = (async () => {
    while (!isOver) {
      seen.push("turn");
      await new Promise<void>((resolve) => void setImmediate(resolve));
    }
  })();
  const answer = await mcp({
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: () => Promise.resolve(body),
    signal: new AbortController().signal,
  } as never) as Response;
  assert.equal((await answer.text()).match(/Nothing matches/g)?.length, batch.length);
  isOver = true;
  await turns;
  assert.equal(seen.filter((one) => one === "search").length, batch.length);
  assert.doesNotMatch(seen.join(" "), /search search/);
});
