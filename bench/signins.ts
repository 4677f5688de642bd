/**
 * `deno task bench:signins`: many PMLs on one home, signed in at one server with rotating refresh
 * tokens, whose tokens expire again and again while processes are killed; and a call of a signed-in
 * server.
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
  const came = await storm({
    processes: processes ?? 32,
    expiries: expiries ?? 1_000,
    kills: kills ?? 50,
    onRound,
  });
  console.log(JSON.stringify(came, null, 2));
  const isRight = came.refreshes === expiries && came.reuses === 0 && !came.isRevoked &&
    came.violations.length === 0;
  Deno.exitCode = isRight ? 0 : 1;
}
