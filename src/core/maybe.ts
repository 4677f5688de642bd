/**
 * The type of a result that is either available now or comes later.
 *
 * @module
 */

/** A value, or a promise of it. */
export type Maybe<T> = T | Promise<T>;
