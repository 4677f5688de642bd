/**
 * Caches the result of a function for as long as its argument exists, and bounded caches by key.
 *
 * @module
 */

/**
 * Returns a function that computes its result once for each object. After an error it tries again.
 */
export function memoized<K extends object, V extends object | string | boolean>(
  compute: (from: K) => V,
): (from: K) => V {
  const cache = new WeakMap<K, V>();
  return (from) => {
    const entry = cache.get(from);
    if (entry !== undefined) return entry;
    const value = compute(from);
    cache.set(from, value);
    return value;
  };
}

/** Removes the oldest key if there are more than `most` keys. */
export function dropOldest<K>(entries: Map<K, unknown> | Set<K>, most: number): void {
  const [oldest] = entries.keys();
  if (entries.size > most && oldest !== undefined) entries.delete(oldest);
}
