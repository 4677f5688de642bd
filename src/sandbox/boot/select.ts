/**
 * The module that selects parts of results with JMESPath. It runs in a child without grants, because
 * an expression of a client can take forever or build very large values.
 *
 * @module
 */

import jmespath from "jmespath";

/** An expression, and the value from which it selects. */
export interface Selecting {
  readonly expression: string;
  readonly value?: unknown;
}

/** The selected value (null if nothing matches), or the reason why the expression is wrong. */
export type Selected = { readonly value: unknown } | { readonly wrong: string };

/** Parses an expression. */
export function parse({ expression }: Selecting): { readonly wrong?: string } {
  try {
    jmespath.compile(expression);
    return {};
  } catch (error) {
    return { wrong: messageOf(error) };
  }
}

/** Selects a part of a value. */
export function select({ expression, value }: Selecting): Selected {
  let selected: unknown;
  try {
    selected = jmespath.search(ownMembers(value), expression);
  } catch (error) {
    return { wrong: messageOf(error) };
  }
  // The value is undefined, or a function, if the expression selected an inherited member.
  return { value: typeof selected === "function" ? null : selected ?? null };
}

/** The prototype of copied objects. The library calls this method and reads inherited members. */
const PROTOTYPE: object = Object.create(null, {
  hasOwnProperty: { value: Object.prototype.hasOwnProperty },
});

/** Returns a copy of plain JSON whose objects inherit nothing that an expression can name. */
function ownMembers(root: unknown): unknown {
  const copies: { readonly from: object; readonly to: Record<string, unknown> }[] = [];
  const copyOf = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    const to = Array.isArray(value) ? new Array(value.length) : Object.create(PROTOTYPE);
    copies.push({ from: value, to });
    return to;
  };
  const copy = copyOf(root);
  // Not recursive, because JSON may be nested deeper than the stack.
  for (let next = copies.pop(); next !== undefined; next = copies.pop()) {
    for (const [name, member] of Object.entries(next.from)) next.to[name] = copyOf(member);
  }
  return copy;
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 300);
}
