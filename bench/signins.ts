/**
 * `deno task bench:signins`: many PML processes share one home with a sign-in to one server. Its
 * refresh tokens rotate and its access tokens expire again and again while processes are killed.
 *
 *     deno task bench:signins [--processes N] [--expiries N] [--kills N]
 *
 * @module
 */

import { parseArgs } from "node:util";
import { storm } from "../tests/sign_in_storm.ts";

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      processes: { type: "string", default: "32" },
      expiries: { type: "string", default: "1000" },
      kills: { type: "string", default: "50" },
    },
  });
  const [processes, expiries, kills] = [values.processes, values.expiries, values.kills].map(
    Number,
  );
  const onRound = (round: number) => {
    if (round % 50 === 0) console.error(`${round} expiries`);
  };
  const result = await storm({
    processes: processes ?? 32,
    expiries: expiries ?? 1_000,
    kills: kills ?? 50,
    onRound,
  });
  console.log(JSON.stringify(result, null, 2));
  const isAsExpected = result.refreshes === expiries && result.reuses === 0 && !result.isRevoked &&
    result.violations.length === 0;
  Deno.exitCode = isAsExpected ? 0 : 1;
}
