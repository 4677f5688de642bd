/**
 * What the system itself holds modules with, as a person may want it.
 *
 * @module
 */

/** Each choice: what there is, one of the two, none, or no module without one. */
export const OS_LAYERS = ["auto", "landlock", "bwrap", "off", "required"] as const;

/** One choice. */
export type OsLayer = typeof OS_LAYERS[number];
