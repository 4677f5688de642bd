import assert from "node:assert/strict";
import { storm } from "./sign_in_storm.ts";

Deno.test("Many PMLs refresh once each time the tokens expire, also when some are killed in a refresh", async () => {
  const options = { processes: 6, expiries: 60, kills: 8 };
  const came = await storm(options);
  assert.deepEqual(
    [came.refreshes, came.reuses, came.isRevoked, came.violations],
    [60, 0, false, []],
  );
  assert.equal(came.kills, 8);
  assert.ok(came.killsInRefresh >= 3, `${came.killsInRefresh} kills while a refresh was held`);
  assert.ok(came.calls >= 61 * 6 - 8 && came.calls <= 61 * 6, `${came.calls} calls`);
});
