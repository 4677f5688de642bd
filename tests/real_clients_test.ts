/**
 * Real clients from npm use PML as `pml init` configures it, with a fake of their model. The task
 * `clients` tests more of them.
 *
 * @module
 */

import assert from "node:assert/strict";
import { OPEN_CLIENTS } from "./real_clients/clients.ts";
import { reasonNotToRun } from "./real_clients/install.ts";
import { runSession } from "./real_clients/session.ts";

const reason = await reasonNotToRun(OPEN_CLIENTS);

for (const client of OPEN_CLIENTS) {
  const title = `${client.title} searches and calls a tool through PML`;
  const name = reason === undefined ? title : `${title} (not run: ${reason})`;
  Deno.test({ name, ignore: reason !== undefined }, async () => {
    const { offered, results, secret, output } = await runSession(client);
    const names = offered[0]?.map(({ name }) => name) ?? [];
    for (const tool of ["search", "call"]) {
      const { name } = client.toolName(tool);
      assert.ok(names.includes(name), `${name} is not among ${names}: ${output}`);
    }
    const [found = "", read = ""] = results;
    assert.match(found, /filesystem:read_file/, output);
    assert.ok(read.includes(secret), `${read}\n${output}`);
    assert.equal(results.length, 2);
  });
}
