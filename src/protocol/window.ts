/**
 * What a running PML tells its windows, beside MCP. No server can have it tell this.
 *
 * @module
 */

/** The notification that a PML which ends will not begin a request: `params.requestId`. */
export const NOT_BEGUN = "notifications/pml/not_begun";
