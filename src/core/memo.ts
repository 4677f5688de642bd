/**
 * Keeps what was made of an object for as long as there is that object.
 *
 * @module
 */

/** Gives a function that makes its result once for each object; what throws is tried again. */
export function memoized<K extends object, V extends object | string | boolean>(
  make: (from: K) => V,
): (from: K) => V {
  const made = new WeakMap<K, V>();
  return (from) => {
    const known = made.get(from);
    if (known !== undefined) return known;
    const value = make(from);
    made.set(from, value);
    return value;
  };
}
