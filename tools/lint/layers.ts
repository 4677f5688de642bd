/**
 * Reports imports from the same or a higher layer, and imports of a file `_name.ts` from outside its
 * folder.
 *
 * @module
 */

import { ENTRIES, type Place, placeOf, targetOf } from "./place.ts";

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
  ["authoring", "control"],
  ["page"],
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
/** The server kinds that may import another server kind, because both use HTTP. */
const SHARED_KINDS: Readonly<Record<string, string>> = { "servers/cloud": "servers/http" };
/** The only part of PML that the hub imports. */
const REGISTRY_PACKAGE = "@casys/pml/registry";
/** The packages of the MCP SDK. Only tests import them, to compare PML with the SDK. */
const SDK = /^(npm:)?@modelcontextprotocol\//;
/** The module that creates the parts of a running PML. */
const COMPOSITION = "app";
const BOOT = "src/sandbox/boot/";
/** PML's own process uses the path checks of the sandbox child in this file only, for its messages. */
const PATH_REFUSAL = "src/sandbox/path_refusal.ts";
const PATH_GUARD = ["names", "path_guard", "refusal"].map((name) => `${BOOT}${name}.ts`);
/** The type of the host that functions of tools get as argument. Built-ins may import it. */
const HOST = "src/sandbox/host.ts";

/** An import or export of another file. */
interface Edge {
  readonly specifier: string;
  /**
   * How the file is used. `text`: as text, or by a dynamic import with options; `meta`: only its
   * `__meta__`, which describes the tools of a module; `reexport`: values that are exported again.
   */
  readonly kind: "value" | "type" | "text" | "meta" | "reexport";
}

/** Reports an import from the same or a higher layer, or of a file that is private to a folder. */
export const layers: Deno.lint.Rule = {
  create(context) {
    const from = placeOf(context.filename);
    if (from.isTest || !hasLayer(from)) return {};
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

function hasLayer(from: Place): boolean {
  return from.inSource || from.module === "builtin" || ENTRIES.includes(from.module);
}

/** Returns why an import is not allowed; undefined if it is allowed. */
function offence(from: Place, edge: Edge): string | undefined {
  if (from.project === "hub") return hubOffence(from, edge);
  if (/^(jsr:)?@casys\//.test(edge.specifier)) {
    return `PML does not use the package "${edge.specifier}"`;
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
    return harmless
      ? undefined
      : `A built-in may be imported only as text, as a type, or for its __meta__: "${path}"`;
  }
  return path === "deno.json" ? undefined : `Shipped code cannot import "${path}"`;
}

function hubOffence(from: Place, edge: Edge): string | undefined {
  const path = targetOf(from, edge.specifier);
  if (path === undefined) {
    const isAllowed = edge.specifier === REGISTRY_PACKAGE ||
      !/^(jsr:)?@casys\//.test(edge.specifier);
    return isAllowed
      ? undefined
      : `The hub imports "${REGISTRY_PACKAGE}" of PML, not "${edge.specifier}"`;
  }
  const to = placeOf(path);
  if (to.project !== "hub") return `The hub imports "${REGISTRY_PACKAGE}" of PML, not "${path}"`;
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

/** Checks the imports of a built-in, which is bundled into one file from its own folder. */
function builtinOffence(
  from: Place,
  { path, edge }: { readonly path: string | undefined; readonly edge: Edge },
): string | undefined {
  const folder = from.path.slice(0, from.path.lastIndexOf("/") + 1);
  const isOwnFile = folder !== "builtin/" && path?.startsWith(folder) === true;
  const isHost = edge.kind === "type" && path === HOST;
  return isOwnFile || isHost
    ? undefined
    : `A built-in cannot import "${edge.specifier}" from outside its folder`;
}

function sourceOffence(from: Place, to: Place, edge: Edge): string | undefined {
  if (to.isTest) return `Code cannot import the test "${to.path}"`;
  if (from.path === "mod.ts") return modOffence(to, edge);
  if (to.path.startsWith(BOOT) && !from.path.startsWith(BOOT)) {
    const harmless = edge.kind === "text" || edge.kind === "type";
    const isShared = from.path === PATH_REFUSAL && PATH_GUARD.includes(to.path);
    if (!harmless && !isShared) {
      return `Code of the sandbox child may be imported only as text or a type: "${to.path}"`;
    }
  }
  const isOtherKind = isKindFolder(from) && isKindFolder(to) && from.folder !== to.folder;
  if (isOtherKind && SHARED_KINDS[from.folder] !== to.folder) {
    return `The server kind in "${from.folder}" cannot import from "${to.folder}"`;
  }
  // `registry.ts` may import the same modules as the composition.
  const isEntry = ENTRIES.includes(from.module);
  return orderOffence(LAYERS, isEntry ? { ...from, module: COMPOSITION } : from, to);
}

/** Returns whether a file belongs to the runtime of one server kind. */
function isKindFolder({ module, folder }: Place): boolean {
  return module === "servers" && /^servers\/(?!client$|lists$|registries$|sources$)/.test(folder);
}

/** Returns the number of a module's layer. Files outside of modules are above all layers. */
function layerOf(layers: typeof LAYERS, module: string): number {
  const layer = layers.findIndex((modules) => modules.includes(module));
  return layer < 0 ? layers.length : layer;
}

function modOffence(to: Place, edge: Edge): string | undefined {
  if (to.module === COMPOSITION || to.module === "cli") return undefined;
  if (edge.kind === "type" || edge.kind === "reexport") return undefined;
  return `"mod.ts" uses only the composition and the command line, not "${to.path}"`;
}

function hintFor(from: Place): string {
  if (from.project === "hub") return "The layers are listed in tools/lint/layers.ts";
  if (from.module === "builtin") return "Use the second argument of the tool function, the host";
  if (from.path === "mod.ts") {
    return "Import only types, re-export values, or move the code to src/app/";
  }
  const below = LAYERS.slice(0, layerOf(LAYERS, from.module)).flat().join(", ") || "nothing";
  return `The module may import from ${below}`;
}
