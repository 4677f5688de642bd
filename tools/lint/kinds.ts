/**
 * Forbids comparisons with the names of server kinds and of sources of servers outside
 * `src/servers/`.
 *
 * @module
 */

import { OWN_SOURCE } from "../../src/policy/server_identity.ts";
import { KINDS } from "../../src/servers/kinds.ts";
import type { SourceHost } from "../../src/servers/source.ts";
import { SOURCES } from "../../src/servers/sources.ts";
import { placeOf } from "./place.ts";

const SERVERS = "src/servers/";
/** The constructor of a source does not use its host. */
const NO_HOST = {} as SourceHost;

/** A table of names, and the variables and properties that may contain one. */
interface NameTable {
  readonly title: string;
  readonly names: ReadonlySet<unknown>;
  /** Matches the names of such variables and properties. */
  readonly valueNames: RegExp;
  readonly hint: string;
}

const TABLES: readonly NameTable[] = [
  {
    title: "server kind",
    // Lists show the last three as the kind of entries without a kind.
    names: new Set([...KINDS.map(({ name }) => name), "namespace", "unknown", "disabled"]),
    valueNames: /^(?:kind|type)$|(?:Kind|Type)$/,
    hint: "Use a trait of the kind, or a function of src/servers/kinds.ts",
  },
  {
    title: "source of servers",
    names: new Set([...SOURCES.map((Source) => new Source(NO_HOST).name), OWN_SOURCE]),
    valueNames: /^(?:origin|source)$|(?:Origin|Source)$/,
    hint: "Use a trait of `Origin` (src/servers/server.ts), or isOwnPin() for a pin",
  },
];

/**
 * Reports `own.kind === "stdio"`, `server.origin.name === "builtin"` and the like, also in the hub.
 */
export const kinds: Deno.lint.Rule = {
  create(context) {
    const place = placeOf(context.filename);
    if (!place.inSource || place.isTest || place.path.startsWith(SERVERS)) return {};
    const compare = (name: Deno.lint.Node | null, value: Deno.lint.Node | undefined) => {
      const table = TABLES.find((table) => isNameIn(table, name) && isValueOf(table, value));
      if (table === undefined || !isText(name)) return;
      const message = `A comparison with the ${table.title} "${name.value}" outside ${SERVERS}`;
      context.report({ node: name, message, hint: table.hint });
    };
    return {
      BinaryExpression(node) {
        if (!/^[!=]==?$/.test(node.operator)) return;
        compare(node.left, node.right);
        compare(node.right, node.left);
      },
      SwitchStatement(node) {
        for (const { test } of node.cases) compare(test, node.discriminant);
      },
      CallExpression(node) {
        const { callee, arguments: [value] } = node;
        if (callee.type !== "MemberExpression" || nameOf(callee) !== "includes") return;
        if (callee.object.type !== "ArrayExpression") return;
        for (const element of callee.object.elements) compare(element, value);
      },
    };
  },
};

function isText(node: Deno.lint.Node | null): node is Deno.lint.StringLiteral {
  return node?.type === "Literal" && typeof node.value === "string";
}

function isNameIn({ names }: NameTable, node: Deno.lint.Node | null): boolean {
  return isText(node) && names.has(node.value);
}

/** Returns whether an expression such as `kind` or `origin.name` may contain a name of a table. */
function isValueOf(table: NameTable, node: Deno.lint.Node | undefined): boolean {
  if (node === undefined) return false;
  if (node.type === "ChainExpression") return isValueOf(table, node.expression);
  const name = nameOf(node);
  if (name === "name" && node.type === "MemberExpression") return isValueOf(table, node.object);
  return table.valueNames.test(name);
}

/** Returns the last name of `a.b.c`; empty for other expressions. */
function nameOf(node: Deno.lint.Node): string {
  if (node.type === "Identifier") return node.name;
  if (node.type !== "MemberExpression" || node.property.type !== "Identifier") return "";
  return node.property.name;
}
