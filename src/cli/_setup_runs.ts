/**
 * The commands that set PML up for clients and servers.
 *
 * @module
 */

import { add, listServers, remove } from "./_add.ts";
import { doctor } from "./_doctor.ts";
import { importServers } from "./_import.ts";
import { init } from "./_init.ts";
import { status } from "./_status.ts";
import { uninstall } from "./_uninstall.ts";

/** The commands by their names; the empty name is `pml` without a command. */
export const SETUP = {
  add,
  doctor,
  init,
  list: listServers,
  remove,
  uninstall,
  "": status,
  import: importServers,
};
