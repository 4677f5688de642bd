/**
 * Caches the result of a function for as long as its argument exists, and bounded caches by key.
 *
 * @module
 */

/**
 * Returns a function that computes its result once for each object. After an error it tries again.
 */
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

/** Drops the oldest of the keys if there are more than `most`. */
export function dropOldest<K>(kept: Map<K, unknown> | Set<K>, most: number): void {
  const [oldest] = kept.keys();
  if (kept.size > most && oldest !== undefined) kept.delete(oldest);
}
