/**
 * A value that is there now or comes later.
 *
 * @module
 */

/** A value, or a promise of it. */
export type Maybe<T> = T | Promise<T>;
