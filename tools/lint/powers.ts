/**
 * Allows each power (environment, processes, output, network) only in the files that own it.
 *
 * @module
 */

import { ENTRIES, type Place, placeOf } from "./place.ts";
import { isReference, isShadowed, memberName } from "./references.ts";

/** An ability to reach outside the process, the expressions for it, and the files that may use them. */
interface Power {
  readonly name: string;
  /** Files, or folders ending in a slash. */
  readonly owners: readonly string[];
  /** Members of `Deno`, `process` or the global object, and modules of Node. */
  readonly expressions: readonly string[];
}

const POWERS: readonly Power[] = [
  {
    name: "The environment",
    owners: ["src/config/env.ts", "hub/src/cli/hub_process.ts"],
    expressions: ["Deno.env", "process.env"],
  },
  {
    name: "Reading a file",
    // All files except the first read process information of the kernel.
    owners: [
      "src/io/regular_file.ts",
      "src/sandbox/process.ts",
      "src/sandbox/reaper.ts",
    ],
    expressions: [
      "Deno.readFile",
      "Deno.readFileSync",
      "Deno.readTextFile",
      "Deno.readTextFileSync",
    ],
  },
  {
    name: "Opening a file",
    // `_keeper.ts` opens the input of a process. The others, except the first, write or lock PML's
    // own files.
    owners: [
      "src/io/regular_file.ts",
      "src/audit/_journal_file.ts",
      "src/io/private_files.ts",
      "src/io/folder_lock.ts",
      "src/sandbox/_keeper.ts",
      "src/sandbox/_private_folder.ts",
      "hub/src/store/backup.ts",
    ],
    expressions: ["Deno.open", "Deno.openSync"],
  },
  {
    name: "Files of Node",
    // The first reads the free disk space, the second reads a terminal without waiting.
    owners: ["src/search/embedding/model_hub.ts", "src/cli/_terminal_input.ts"],
    expressions: ["node:fs", "node:fs/promises"],
  },
  {
    name: "Starting a Worker",
    owners: ["src/sandbox/"],
    expressions: ["Worker", "SharedWorker", "node:worker_threads"],
  },
  {
    name: "Starting a process",
    owners: [
      "src/sandbox/process.ts",
    ],
    expressions: [
      "Deno.Command",
      "Deno.spawn",
      "Deno.spawnAndWait",
      "Deno.spawnAndWaitSync",
      "node:child_process",
      "node:cluster",
    ],
  },
  {
    name: "Standard output",
    owners: [
      "src/transport/stdio/_pipes.ts",
      "src/cli/command_process.ts",
      "hub/src/cli/hub_process.ts",
      // It answers the PML process that started it.
      "src/oauth/refresh_child.ts",
      // It prints the version without loading anything else.
      "src/cli/_version.ts",
    ],
    expressions: ["Deno.stdout", "process.stdout"],
  },
  {
    name: "The console",
    owners: ["src/audit/log.ts"],
    expressions: ["console", "node:console", "alert", "confirm", "prompt"],
  },
  {
    name: "The network",
    owners: [
      "src/registry/",
      "src/transport/http/client/",
      // They fetch the imports of a module, and send the module to a hub.
      "hub/src/publish/",
      // It compares addresses, and opens no connections.
      "src/core/address.ts",
      // It reaches other processes of the same PML, at addresses in the PML home.
      "src/transport/replicas/_link.ts",
      // It listens, and opens no connections.
      "src/io/listener.ts",
      // Its sockets are the two open pipes of standard input and output.
      "src/transport/stdio/_sockets.ts",
      // Its sockets are files in the PML home.
      "src/transport/attach/private_socket.ts",
      // The names of its pipes are stored in the PML home.
      "src/transport/attach/window_pipe.ts",
    ],
    expressions: [
      "fetch",
      "WebSocket",
      "WebSocketStream",
      "EventSource",
      "WebTransport",
      "Deno.connect",
      "Deno.connectTls",
      "Deno.connectQuic",
      "Deno.startTls",
      "Deno.listenDatagram",
      "Deno.resolveDns",
      "Deno.createHttpClient",
      "node:https",
      "node:http2",
      "node:net",
      "node:tls",
      "node:dgram",
      "node:dns",
      "node:dns/promises",
    ],
  },
  {
    // The module has servers too, which listeners need.
    name: "HTTP of Node",
    owners: ["src/io/listener.ts", "src/oauth/_redirect_page.ts", "src/transport/http/client/"],
    expressions: ["node:http"],
  },
  {
    name: "Ending the process",
    owners: [],
    expressions: ["Deno.exit", "process.exit", "process.abort", "process.reallyExit"],
  },
];
const BY_SPELLING = new Map(
  POWERS.flatMap((power) => power.expressions.map((spelled) => [spelled, power] as const)),
);
const GLOBAL_NAMES = [...BY_SPELLING.keys()].filter((spelled) => /^\w+$/.test(spelled));
const GLOBALS = `Identifier[name=/^(${GLOBAL_NAMES.join("|")})$/]`;
const NAMESPACES = "Identifier[name=/^(Deno|process|globalThis|self|window)$/]";
const BOOT = "src/sandbox/boot/";

/** Reports the use of a power outside the file that owns it. */
export const powers: Deno.lint.Rule = {
  create(context) {
    const place = placeOf(context.filename);
    if (!isChecked(place)) return {};
    const check = (node: Deno.lint.Node, spelled: string) => {
      const found = offence(place, spelled);
      if (found !== undefined) context.report({ node, ...found });
    };
    return {
      [GLOBALS](node: Deno.lint.Identifier) {
        if (!isReference(node) || isShadowed(context.sourceCode.getAncestors(node), node.name)) {
          return;
        }
        check(node, node.name);
      },
      [NAMESPACES](node: Deno.lint.Identifier) {
        if (!isReference(node)) return;
        for (const spelled of spellings(node)) check(node, spelled);
      },
      ImportDeclaration(node) {
        if (node.importKind === "type") return;
        check(node, node.source.value);
        for (const spelled of importedMembers(node)) check(node, spelled);
      },
      ImportExpression(node) {
        if (node.source.type === "Literal") check(node, String(node.source.value));
      },
    };
  },
};

function isChecked({ path, module, inSource, isTest }: Place): boolean {
  // The code of the sandbox child runs in a process where these powers are removed or confined.
  return !isTest && !path.startsWith(BOOT) && (inSource || ENTRIES.includes(module));
}

function offence(
  place: Place,
  spelled: string,
): { readonly message: string; readonly hint: string } | undefined {
  if (spelled.endsWith(".*")) {
    const message = `"${spelled.slice(0, -2)}" is passed on as a whole, with all its powers`;
    return { message, hint: "Use only the member that is needed" };
  }
  const power = BY_SPELLING.get(spelled);
  if (power === undefined || isOwner(power, place.path)) return undefined;
  const message = power.owners.length === 0
    ? `${power.name} is not allowed in any file: "${spelled}"`
    : `${power.name} belongs to ${power.owners.join(", ")}: "${spelled}"`;
  const hint = power.owners.length === 0
    ? "Return; mod.ts sets the exit code"
    : "Use a function of an owner, or let src/app/ pass it in";
  return { message, hint };
}

function isOwner(power: Power, path: string): boolean {
  return power.owners.some((owner) =>
    owner.endsWith("/") ? path.startsWith(owner) : path === owner
  );
}

/** Returns the spellings of a member of `Deno`, `process` or the global object. */
function spellings(node: Deno.lint.Identifier): string[] {
  const { parent } = node;
  if (parent.type === "MemberExpression") return memberSpellings(node.name, parent);
  if (parent.type === "UnaryExpression" && parent.operator === "typeof") return [];
  if (parent.type === "VariableDeclarator" && parent.id.type === "ObjectPattern") {
    return parent.id.properties.map((property) =>
      property.type === "Property" && property.key.type === "Identifier"
        ? spell(node.name, property.key.name)
        : `${node.name}.*`
    );
  }
  return [`${node.name}.*`];
}

function memberSpellings(name: string, parent: Deno.lint.MemberExpression): string[] {
  const member = memberName(parent);
  if (member === undefined) return [`${name}.*`];
  const outer = parent.parent;
  const isNamespace = member === "Deno" || member === "process";
  // `globalThis.Deno.env` spells `Deno.env`.
  if (isNamespace && outer.type === "MemberExpression") return memberSpellings(member, outer);
  return [spell(name, member)];
}

function spell(name: string, member: string): string {
  return name === "Deno" || name === "process" ? `${name}.${member}` : member;
}

/** Spells `import { env } from "node:process"` as `process.env`. */
function importedMembers(node: Deno.lint.ImportDeclaration): string[] {
  if (node.source.value !== "node:process") return [];
  return node.specifiers.flatMap((specifier) =>
    specifier.type === "ImportSpecifier" && specifier.imported.type === "Identifier"
      ? [`process.${specifier.imported.name}`]
      : []
  );
}
