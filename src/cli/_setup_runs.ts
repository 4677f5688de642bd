/**
 * The commands that set PML up for clients and servers.
 *
 * @module
 */

export { add, list, remove } from "./_add.ts";
export { doctor } from "./_doctor.ts";
export { importServers as imports } from "./_import.ts";
export { init } from "./_init.ts";
export { status } from "./_status.ts";
export { uninstall } from "./_uninstall.ts";
