/**
 * Finds the namespace of a name, which an organisation owns, and names that look alike.
 *
 * @module
 */

/** Pairs of texts that look alike. `shapeOf()` replaces `from` by `to`, in this order. */
const ALIKE: readonly (readonly [from: string, to: string])[] = [
  ...["_", "-", "."].map((mark) => [mark, ""] as const),
  ...[["0", "o"], ["1", "l"], ["i", "l"], ["5", "s"], ["rn", "m"], ["vv", "w"]] as const,
  ["cl", "d"],
];
const LETTERS = "abcdefghjklmnopqrstuvwxyz2346789";
/** Names with at least this many characters look alike if one letter differs, as in PML. */
const MIN_COMPARED_LENGTH = 5;
/** The first parts of names that are top-level domains, not organisations. */
const TOP_LEVEL = /^([a-z]{2}|com|net|org|edu|gov|info|biz|dev|app|cloud|tech|xyz)$/;

/**
 * Returns the namespace of a name: the part before the colon, or before the last dot of a name with
 * dots (`fs:read` is in `fs`, `com.acme.maps` in `com.acme`).
 */
export function namespaceOf(fqdn: string): string {
  const [base = ""] = fqdn.split(":", 1);
  const at = base.lastIndexOf(".");
  return at < 0 ? base : base.slice(0, at);
}

/** Returns all namespaces that contain a name, the longest first. */
export function namespacesOf(fqdn: string): readonly string[] {
  const [base = ""] = fqdn.split(":", 1);
  const parts = base.split(".");
  return parts.map((_, at) => parts.slice(0, parts.length - at).join("."));
}

/** Returns the top-level domain, such as `com`, of a name; empty if the name has none. */
export function domainOf(fqdn: string): string {
  const first = namespacesOf(fqdn).at(-1) ?? "";
  return fqdn.startsWith(`${first}.`) && TOP_LEVEL.test(first) ? first : "";
}

/** Returns whether the namespace of a name would be a whole top-level domain such as `com`. */
export function isTooWide(fqdn: string): boolean {
  return namespaceOf(fqdn) === domainOf(fqdn);
}

/** Returns the shape of a namespace. Namespaces that look the same have the same shape. */
export function shapeOf(namespace: string): string {
  return ALIKE.reduce((text, [from, to]) => text.replaceAll(from, to), namespace);
}

/**
 * Returns the shapes of all namespaces that look like one of the namespaces of a name. Compares all
 * of them, because the owner of a namespace owns all names below it.
 */
export function shapesLike(fqdn: string): readonly string[] {
  const domain = domainOf(fqdn);
  const all = namespacesOf(namespaceOf(fqdn)).filter((namespace) => namespace !== domain);
  return [...new Set(all.flatMap(shapesNear))];
}

/** Returns the shape and all shapes that differ in one letter, or in the order of two letters. */
function shapesNear(namespace: string): readonly string[] {
  const shape = shapeOf(namespace);
  if (shape.length < MIN_COMPARED_LENGTH) return [shape];
  const shapes = new Set([shape]);
  for (let at = 0; at <= shape.length; at++) {
    const [left, right] = [shape.slice(0, at), shape.slice(at)];
    const [first = "", second = ""] = right;
    if (first !== "" && shape.length > MIN_COMPARED_LENGTH) shapes.add(left + right.slice(1));
    if (second !== "") shapes.add(left + second + first + right.slice(2));
    for (const letter of LETTERS) {
      shapes.add(left + letter + right);
      if (first !== "") shapes.add(left + letter + right.slice(1));
    }
  }
  return [...shapes];
}
