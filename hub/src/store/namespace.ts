/**
 * Which part of a name an organisation owns, and which names look like others.
 *
 * @module
 */

/** Characters that are taken for others, in the order in which they are replaced. */
const ALIKE: readonly (readonly [from: string, to: string])[] = [
  ...["_", "-", "."].map((mark) => [mark, ""] as const),
  ...[["0", "o"], ["1", "l"], ["i", "l"], ["5", "s"], ["rn", "m"], ["vv", "w"]] as const,
  ["cl", "d"],
];
const LETTERS = "abcdefghjklmnopqrstuvwxyz2346789";
/** The fewest characters of names that are compared letter by letter, as PML compares them. */
const LONG = 5;
/** The first part of a name with dots that is no organisation. */
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

/** Returns the namespaces in which a name can be, the longest first. */
export function namespacesOf(fqdn: string): readonly string[] {
  const [base = ""] = fqdn.split(":", 1);
  const parts = base.split(".");
  return parts.map((_, at) => parts.slice(0, parts.length - at).join("."));
}

/** Returns the domain such as `com` in which a name is; empty if it is in none. */
export function domainOf(fqdn: string): string {
  const first = namespacesOf(fqdn).at(-1) ?? "";
  return fqdn.startsWith(`${first}.`) && TOP_LEVEL.test(first) ? first : "";
}

/** Returns whether all names of a domain such as `com` would be in the namespace of a name. */
export function isTooWide(fqdn: string): boolean {
  return namespaceOf(fqdn) === domainOf(fqdn);
}

/** Returns what of a namespace the eye sees: two that look the same have the same. */
export function shapeOf(namespace: string): string {
  return ALIKE.reduce((text, [from, to]) => text.replaceAll(from, to), namespace);
}

/**
 * Returns the shapes of all namespaces that look like a namespace of a name: the owner of such a
 * namespace owns all names below it.
 */
export function shapesLike(fqdn: string): readonly string[] {
  const domain = domainOf(fqdn);
  const all = namespacesOf(namespaceOf(fqdn)).filter((one) => one !== domain);
  return [...new Set(all.flatMap(shapesNear))];
}

/** Returns the shapes with one letter more, less or another. */
function shapesNear(namespace: string): readonly string[] {
  const shape = shapeOf(namespace);
  if (shape.length < LONG) return [shape];
  const shapes = new Set([shape]);
  for (let at = 0; at <= shape.length; at++) {
    const [left, right] = [shape.slice(0, at), shape.slice(at)];
    const [first = "", second = ""] = right;
    if (first !== "" && shape.length > LONG) shapes.add(left + right.slice(1));
    if (second !== "") shapes.add(left + second + first + right.slice(2));
    for (const letter of LETTERS) {
      shapes.add(left + letter + right);
      if (first !== "") shapes.add(left + letter + right.slice(1));
    }
  }
  return [...shapes];
}
