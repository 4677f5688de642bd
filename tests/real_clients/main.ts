/**
 * `deno task clients`: runs real clients from npm with PML and a fake model, and prints the
 * results. `--write` puts the table into docs/clients.md.
 *
 *     deno task clients [--only NAME]... [--write]
 *
 * @module
 */

import { parseArgs } from "node:util";
import { REAL_CLIENTS } from "./clients.ts";
import { NpmUnreachable } from "./install.ts";
import { type ClientReport, reportOf, tableOf, writeTable } from "./report.ts";
import { runSession } from "./session.ts";

if (import.meta.main) Deno.exit(await main(Deno.args));

/** Runs the chosen clients, one after the other; returns 1 if one of them failed. */
async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string", multiple: true },
      write: { type: "boolean", default: false },
    },
  });
  const chosen = REAL_CLIENTS.filter(({ name }) => values.only?.includes(name) ?? true);
  if (chosen.length === 0) {
    const names = REAL_CLIENTS.map(({ name }) => name).join(", ");
    console.error(`Cannot drive ${values.only?.join(", ")}: the clients are ${names}`);
    return 2;
  }
  if (values.write && values.only !== undefined) {
    console.error("Cannot write a part of the table: use --write without --only");
    return 2;
  }
  const reports: ClientReport[] = [];
  for (const client of chosen) {
    console.error(`${client.title} ${client.version} …`);
    try {
      const session = await runSession(client);
      const report = reportOf(client, session);
      reports.push(report);
      if (report.failure !== undefined) console.error(`${report.failure}\n${session.output}`);
    } catch (error) {
      if (!(error instanceof NpmUnreachable)) throw error;
      console.error(`Skipped, nothing is written: ${error.message}`);
      return 0;
    }
  }
  console.log(tableOf(reports));
  if (values.write) await writeTable(reports);
  return reports.every(({ failure }) => failure === undefined) ? 0 : 1;
}
