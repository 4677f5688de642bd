/**
 * The notifications of a running PML to its windows, in addition to MCP. Servers cannot cause them.
 *
 * @module
 */

/** The notification that an ending PML will not begin a request: `params.requestId`. */
export const NOT_BEGUN = "notifications/pml/not_begun";
