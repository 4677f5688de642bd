/**
 * Reads members of objects whose keys come from outside.
 *
 * @module
 */

/** Returns an object's own member; undefined for what it inherits, such as `constructor`. */
export function memberOf<T>(object: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}
