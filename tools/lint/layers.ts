/**
 * Modules import only from modules in lower layers, and files that begin with `_` are private.
 *
 * @module
 */

import { type Place, placeOf, targetOf } from "./place.ts";

/**
 * The layers of `src/`, the lowest first, and the modules in each. A module imports from all
 * modules in lower layers.
 */
export const LAYERS: readonly (readonly string[])[] = [
  ["core"],
  ["io"],
  ["protocol"],
  ["kinds"],
  ["audit", "config", "sandbox", "transport"],
  ["policy"],
  ["oauth", "registry"],
  ["search"],
  ["servers"],
  ["calls"],
  ["workflow"],
  ["sampling"],
  ["gateway"],
  ["app"],
  ["authoring"],
  ["cli"],
];
/** Every module of `src/`. */
export const MODULES: readonly string[] = LAYERS.flat();
/** The layers of the hub, which is a separate package. */
export const HUB_LAYERS: typeof LAYERS = [
  ["http", "publish", "store"],
  ["mcp", "page"],
  ["write"],
  ["serve"],
  ["cli"],
];
/** Every module of `hub/src/`. */
export const HUB_MODULES: readonly string[] = HUB_LAYERS.flat();
/** The kinds whose folders another kind may import, because both use HTTP. */
const SHARED_KINDS: Readonly<Record<string, string>> = { "servers/cloud": "servers/http" };
/** The only part of PML that the hub imports. */
const FACE = "@casys/pml/registry";
/** The packages of the SDK, also as types. Tests compare PML with them. */
const SDK = /^(npm:)?@modelcontextprotocol\//;
/** The module that creates the parts of a running PML. */
const COMPOSITION = "app";
const BOOT = "src/sandbox/boot/";
/** The types of the host of a module's functions; they are erased. */
const HOST = "src/sandbox/host.ts";

/** One edge of the import graph. */
interface Edge {
  readonly specifier: string;
  readonly kind: "value" | "type" | "text" | "meta" | "reexport";
}

/** Reports an import from the same or a higher layer, or of another module's private file. */
export const layers: Deno.lint.Rule = {
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
  return from.inSource || from.module === "builtin" || from.module === "mod.ts";
}

function offence(from: Place, edge: Edge): string | undefined {
  if (from.project === "hub") return hubOffence(from, edge);
  if (/^(jsr:)?@casys\//.test(edge.specifier)) {
    return `PML knows no package like "${edge.specifier}"`;
  }
  if (SDK.test(edge.specifier)) {
    return `PML has its own protocol layer, so it cannot import "${edge.specifier}"`;
  }
  const path = targetOf(from, edge.specifier);
  if (from.module === "builtin") return builtinOffence(from, { path, edge });
  if (path === undefined) return undefined;
  const to = placeOf(path);
  if (to.inSource) return sourceOffence(from, to, edge);
  if (to.module === "config") return undefined;
  if (to.module === "builtin") {
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
  if (to.project !== "hub") return `The hub imports "${FACE}" of PML, not "${path}"`;
  if (to.isTest) return `Code cannot import the test "${path}"`;
  if (from.module !== "mod.ts") return orderOffence(HUB_LAYERS, from, to);
  const isAllowed = to.module === "cli" || edge.kind !== "value";
  return isAllowed ? undefined : `"mod.ts" of the hub cannot import from "${to.module}"`;
}

/** Returns why a module may not import from another one. */
function orderOffence(layers: typeof LAYERS, from: Place, to: Place): string | undefined {
  if (to.folder !== from.folder && to.path.split("/").at(-1)?.startsWith("_")) {
    return `"${to.path}" is private to "${to.folder}"`;
  }
  if (to.module === from.module) return undefined;
  return layerOf(layers, to.module) < layerOf(layers, from.module)
    ? undefined
    : `The module "${from.module}" cannot import from "${to.module}"`;
}

/** A built-in becomes one file: its imports are in its own folder and are bundled. */
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

function sourceOffence(from: Place, to: Place, edge: Edge): string | undefined {
  if (to.isTest) return `Code cannot import the test "${to.path}"`;
  if (from.path === "mod.ts") return faceOffence(to, edge);
  if (to.path.startsWith(BOOT) && !from.path.startsWith(BOOT)) {
    const harmless = edge.kind === "text" || edge.kind === "type";
    if (!harmless) return `Code for the sandbox child comes in as text only: "${to.path}"`;
  }
  const isOtherKind = isKindFolder(from) && isKindFolder(to) && from.folder !== to.folder;
  if (isOtherKind && SHARED_KINDS[from.folder] !== to.folder) {
    return `The server kind in "${from.folder}" cannot import from "${to.folder}"`;
  }
  return orderOffence(LAYERS, from, to);
}

/** Returns whether a file belongs to the runtime of one server kind. */
function isKindFolder({ module, folder }: Place): boolean {
  return module === "servers" && /^servers\/(?!client$|lists$|registries$|sources$)/.test(folder);
}

/** Returns the number of a module's layer. Files outside of the modules are above all layers. */
function layerOf(layers: typeof LAYERS, module: string): number {
  const layer = layers.findIndex((modules) => modules.includes(module));
  return layer < 0 ? layers.length : layer;
}

function faceOffence(to: Place, edge: Edge): string | undefined {
  if (to.module === COMPOSITION || to.module === "cli") return undefined;
  if (edge.kind === "type" || edge.kind === "reexport") return undefined;
  return `"mod.ts" uses only the composition and the command line, not "${to.path}"`;
}

function hintFor(from: Place): string {
  if (from.project === "hub") return "The layers are listed in tools/lint/layers.ts";
  if (from.module === "builtin") return "Use the second argument of the tool function, the host";
  if (from.path === "mod.ts") return "Import types, export the rest, or move it to src/app/";
  const below = LAYERS.slice(0, layerOf(LAYERS, from.module)).flat().join(", ") || "nothing";
  return `It may import from ${below}`;
}
