import assert from "node:assert/strict";
import { FakeKeyring } from "./kit/fake_keyring.ts";
import { storm } from "./sign_in_storm.ts";

Deno.test("many PMLs refresh once each time the tokens expire, also when some are killed in a refresh", async () => {
  const options = { processes: 5, expiries: 24, kills: 4 };
  const came = await storm(options);
  assert.deepEqual(
    [came.refreshes, came.reuses, came.isRevoked, came.violations],
    [24, 0, false, []],
  );
  assert.deepEqual([came.kills, came.killsInRefresh], [4, 2]);
  assert.ok(came.calls >= 25 * 5 - 4 && came.calls <= 25 * 5, `${came.calls} calls`);
});

Deno.test("many PMLs whose tokens are in the keyring refresh once each time, too", async () => {
  await using keyring = await FakeKeyring.make();
  const env = { PATH: keyring.path };
  const came = await storm({ processes: 3, expiries: 6, kills: 2, env });
  assert.deepEqual(
    [came.refreshes, came.reuses, came.isRevoked, came.violations],
    [6, 0, false, []],
  );
  assert.equal(came.killsInRefresh, 1);
  assert.equal(Object.keys(await keyring.kept()).length, 1);
});
