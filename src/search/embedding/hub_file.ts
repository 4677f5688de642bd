/**
 * The description of a model's file at a hub.
 *
 * @module
 */

/** A file of the hub. */
export interface HubFile {
  readonly name: string;
  readonly bytes: number;
  /** The hash of its content, if the hub sends one. */
  readonly sha256: string | undefined;
}
