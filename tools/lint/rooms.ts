/**
 * Lets a room import values only from the rooms that the plan of the house names beside it, and
 * types only from the floors below.
 *
 * @module
 */

import { type Place, placeOf, targetOf } from "./place.ts";

/**
 * The floors of the house, the lowest first, and the rooms on each. A room imports values from the
 * rooms named beside it, and types from any room on a floor below.
 */
export const FLOORS: readonly Readonly<Record<string, readonly string[]>>[] = [
  { core: [] },
  { io: ["core"] },
  { kinds: ["core"], protocol: ["core", "io"] },
  {
    audit: ["core", "io"],
    config: ["core", "io", "kinds"],
    mcp_client: ["core", "io", "protocol"],
    permissions: ["core", "io", "kinds"],
    registry: ["core", "io", "kinds"],
    sandbox: ["core", "io"],
    search: ["core", "io"],
  },
  {
    embedding: ["core", "io", "sandbox"],
    modules: ["core", "io", "permissions", "registry", "sandbox"],
    oauth: ["core", "io", "sandbox"],
    policy: ["core", "io", "config", "kinds", "permissions", "registry"],
    remote: ["core", "io", "kinds", "mcp_client", "protocol"],
    sampling: ["core", "io"],
    stdio: ["core", "io", "mcp_client", "permissions", "protocol", "sandbox"],
    transport: ["core", "io", "protocol"],
    workflow: ["core", "io", "sandbox", "search"],
  },
  {
    calls: ["core", "io", "audit", "permissions"],
    servers: ["core", "io", "kinds", "mcp_client", "modules", "remote"],
  },
  { gateway: ["core", "io", "protocol", "search", "workflow"] },
  {
    authoring: ["core", "io", "modules", "permissions", "registry", "sandbox"],
  },
  { app: [] },
  { cli: ["core", "io", "app", "config", "kinds", "transport"] },
];
const ALLOWED = new Map(FLOORS.flatMap((floor) => Object.entries(floor)));
/** Every room of `src/`. */
export const ROOMS: readonly string[] = [...ALLOWED.keys()];
/** The floors of the hub, which is a package of its own. */
export const HUB_FLOORS: typeof FLOORS = [
  { http: [], publish: [], store: [] },
  { mcp: ["http", "store"], page: ["store"] },
  { write: ["http", "mcp", "store"] },
  { serve: ["http", "mcp", "page", "store", "write"] },
  { cli: ["publish", "store", "write", "serve"] },
];
const HUB_ALLOWED = new Map(HUB_FLOORS.flatMap((floor) => Object.entries(floor)));
/** Every room of `hub/src/`. */
export const HUB_ROOMS: readonly string[] = [...HUB_ALLOWED.keys()];
/** The only part of PML that the hub imports. */
const FACE = "@casys/pml/registry";
/** The packages of the SDK, also as types. Tests compare PML with them. */
const SDK = /^(npm:)?@modelcontextprotocol\//;
/** The room that puts the house together: it may import from every floor below. */
const COMPOSITION = "app";
const BOOT = "src/sandbox/boot/";
/** The types of what a module's function gets; they are erased. */
const HOST = "src/core/host.ts";

/** One edge of the import graph. */
interface Edge {
  readonly specifier: string;
  readonly kind: "value" | "type" | "text" | "meta" | "reexport";
}

/** Reports an import against the direction of the rooms, or of another room's private file. */
export const rooms: Deno.lint.Rule = {
  create(context) {
    const from = placeOf(context.filename);
    if (from.isTest || !isRuled(from)) return {};
    const check = (node: Deno.lint.Node, edge: Edge) => {
      const message = offence(from, edge);
      if (message !== undefined) context.report({ node, message, hint: hintFor(from) });
    };
    return importVisitor(check);
  },
};

function importVisitor(check: (node: Deno.lint.Node, edge: Edge) => void): Deno.lint.LintVisitor {
  return {
    ImportDeclaration(node) {
      check(node, { specifier: node.source.value, kind: importKind(node) });
    },
    ExportNamedDeclaration(node) {
      if (node.source === null) return;
      check(node, { specifier: node.source.value, kind: exportKind(node) });
    },
    ExportAllDeclaration(node) {
      check(node, { specifier: node.source.value, kind: exportKind(node) });
    },
    ImportExpression(node) {
      if (node.source.type !== "Literal" || typeof node.source.value !== "string") return;
      const kind = node.options === null || node.options === undefined ? "value" : "text";
      check(node, { specifier: node.source.value, kind });
    },
    TSImportType(node) {
      const { argument } = node;
      if (argument.type !== "TSLiteralType" || argument.literal.type !== "Literal") return;
      check(node, { specifier: String(argument.literal.value), kind: "type" });
    },
  };
}

function importKind(node: Deno.lint.ImportDeclaration): Edge["kind"] {
  if (node.importKind === "type") return "type";
  if (node.attributes.some(({ value }) => value.value === "text")) return "text";
  const [first, ...others] = node.specifiers;
  const isMeta = first?.type === "ImportSpecifier" && first.imported.type === "Identifier" &&
    first.imported.name === "__meta__";
  return isMeta && others.length === 0 ? "meta" : "value";
}

function exportKind(node: { readonly exportKind: string }): Edge["kind"] {
  return node.exportKind === "type" ? "type" : "reexport";
}

function isRuled(from: Place): boolean {
  return from.inSource || from.room === "builtin" || from.room === "mod.ts";
}

function offence(from: Place, edge: Edge): string | undefined {
  if (from.house === "hub") return hubOffence(from, edge);
  if (/^(jsr:)?@casys\//.test(edge.specifier)) {
    return `PML knows no package like "${edge.specifier}"`;
  }
  if (SDK.test(edge.specifier)) {
    return `PML has its own protocol layer, so it cannot import "${edge.specifier}"`;
  }
  const path = targetOf(from, edge.specifier);
  if (from.room === "builtin") return builtinOffence(from, { path, edge });
  if (path === undefined) return undefined;
  const to = placeOf(path);
  if (to.inSource) return roomOffence(from, to, edge);
  if (to.room === "config") return undefined;
  if (to.room === "builtin") {
    const harmless = edge.kind === "text" || edge.kind === "meta" || edge.kind === "type";
    return harmless ? undefined : `A built-in comes in as text or as its __meta__: "${path}"`;
  }
  return path === "deno.json" ? undefined : `Shipped code cannot import "${path}"`;
}

function hubOffence(from: Place, edge: Edge): string | undefined {
  const path = targetOf(from, edge.specifier);
  if (path === undefined) {
    const isFace = edge.specifier === FACE || !/^(jsr:)?@casys\//.test(edge.specifier);
    return isFace ? undefined : `The hub imports "${FACE}" of PML, not "${edge.specifier}"`;
  }
  const to = placeOf(path);
  if (to.house !== "hub") return `The hub imports "${FACE}" of PML, not "${path}"`;
  if (to.isTest) return `Code cannot import the test "${path}"`;
  if (to.room === from.room) return undefined;
  if (to.path.split("/").at(-1)?.startsWith("_")) {
    return `"${to.path}" is private to the room "${to.room}"`;
  }
  if (from.room === "mod.ts" && (to.room === "cli" || edge.kind !== "value")) return undefined;
  return HUB_ALLOWED.get(from.room)?.includes(to.room)
    ? undefined
    : `The room "${from.room}" of the hub cannot import from "${to.room}"`;
}

/** A built-in becomes one file: what it imports lies in its own folder and is bundled in. */
function builtinOffence(
  from: Place,
  { path, edge }: { readonly path: string | undefined; readonly edge: Edge },
): string | undefined {
  const folder = from.path.slice(0, from.path.lastIndexOf("/") + 1);
  const own = folder !== "builtin/" && path?.startsWith(folder) === true;
  const isHost = edge.kind === "type" && path === HOST;
  return own || isHost
    ? undefined
    : `A built-in imports nothing from outside, not "${edge.specifier}"`;
}

function roomOffence(from: Place, to: Place, edge: Edge): string | undefined {
  if (to.isTest) return `Code cannot import the test "${to.path}"`;
  if (from.path === "mod.ts") return faceOffence(to, edge);
  if (to.path.startsWith(BOOT) && !from.path.startsWith(BOOT)) {
    const harmless = edge.kind === "text" || edge.kind === "type";
    if (!harmless) return `Code for the sandbox child comes in as text only: "${to.path}"`;
  }
  if (to.room === from.room) return undefined;
  const name = to.path.split("/").at(-1) ?? "";
  if (name.startsWith("_")) return `"${to.path}" is private to the room "${to.room}"`;
  const isBelow = floorOf(to.room) < floorOf(from.room);
  if (edge.kind === "type") {
    return isBelow ? undefined : `A type comes from a floor below, not from "${to.room}"`;
  }
  const isNamed = from.room === COMPOSITION || ALLOWED.get(from.room)?.includes(to.room);
  return isBelow && isNamed ? undefined : `The room "${from.room}" cannot import from "${to.room}"`;
}

/** Gives the number of a room's floor; what is no room lies above all. */
function floorOf(room: string): number {
  const floor = FLOORS.findIndex((rooms) => Object.hasOwn(rooms, room));
  return floor < 0 ? FLOORS.length : floor;
}

function faceOffence(to: Place, edge: Edge): string | undefined {
  if (to.room === COMPOSITION || to.room === "cli") return undefined;
  if (edge.kind === "type" || edge.kind === "reexport") return undefined;
  return `"mod.ts" uses only the composition and the command line, not "${to.path}"`;
}

function hintFor(from: Place): string {
  if (from.house === "hub") return "The floors of the hub stand in tools/lint/rooms.ts";
  if (from.room === "builtin") return "Ask the second argument of the tool function, the host";
  if (from.path === "mod.ts") return "Import types, pass the rest on, or move it to src/app/";
  if (from.room === COMPOSITION) return "It may import from every floor below";
  const names = ALLOWED.get(from.room)?.join(", ") || "nothing";
  return `It may import values from ${names}, and types from any floor below`;
}
