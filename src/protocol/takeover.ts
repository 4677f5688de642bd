/**
 * Notifications that a running `pml serve` sends, in addition to MCP, to the `pml stdio` processes
 * that use it (windows). Servers cannot send them.
 *
 * @module
 */

/** Reports that an ending PML will not begin a request. `params.requestId` is its id. */
export const NOT_BEGUN = "notifications/pml/not_begun";
