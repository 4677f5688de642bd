/**
 * Notifications that a running PML sends, in addition to MCP, to other `pml stdio` processes that use
 * it (windows). Servers cannot cause them.
 *
 * @module
 */

/** The notification that an ending PML will not begin a request: `params.requestId`. */
export const NOT_BEGUN = "notifications/pml/not_begun";
