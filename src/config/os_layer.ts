/**
 * The choices for the layer of the operating system that confines modules and confined servers.
 *
 * @module
 */

/** The choices: any layer, one of the two, no layer, or no module without a layer. */
export type OsLayer = "auto" | "landlock" | "bwrap" | "off" | "required";
