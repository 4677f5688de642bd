/**
 * What the system itself holds modules with, as a person may want it.
 *
 * @module
 */

/** What there is, one of the two, none, or no module without one. */
export type OsLayer = "auto" | "landlock" | "bwrap" | "off" | "required";

/** Each choice. */
export const OS_LAYERS: readonly OsLayer[] = ["auto", "landlock", "bwrap", "off", "required"];
