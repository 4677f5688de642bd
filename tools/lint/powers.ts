/**
 * Leaves each power (environment, processes, output, network) to the file that owns it.
 *
 * @module
 */

import { type Place, placeOf } from "./place.ts";
import { isReference, isShadowed, memberName } from "./references.ts";

/** Something that reaches outside the process, how it is spelled, and who may spell it. */
interface Power {
  readonly name: string;
  /** Files, or folders ending in a slash. */
  readonly owners: readonly string[];
  /** Members of `Deno`, `process` or the global object, and modules of Node. */
  readonly spelled: readonly string[];
}

const POWERS: readonly Power[] = [
  {
    name: "The environment",
    owners: ["src/config/env.ts", "hub/src/cli/hub_process.ts"],
    spelled: ["Deno.env", "process.env"],
  },
  {
    name: "Reading a file",
    // All but the first read process information of the kernel.
    owners: [
      "src/io/regular_file.ts",
      "src/sandbox/process.ts",
      "src/sandbox/reaper.ts",
    ],
    spelled: ["Deno.readFile", "Deno.readFileSync", "Deno.readTextFile", "Deno.readTextFileSync"],
  },
  {
    name: "Opening a file",
    // All but the first write or lock PML's own files.
    owners: [
      "src/io/regular_file.ts",
      "src/audit/_journal_file.ts",
      "src/io/private_files.ts",
      "src/io/folder_lock.ts",
      "src/sandbox/_private.ts",
      "hub/src/store/backup.ts",
    ],
    spelled: ["Deno.open", "Deno.openSync"],
  },
  {
    name: "Files of Node",
    // One reads the free disk space, the other a terminal without waiting.
    owners: ["src/search/embedding/model_hub.ts", "src/cli/_terminal_input.ts"],
    spelled: ["node:fs", "node:fs/promises"],
  },
  {
    name: "Starting a Worker",
    owners: ["src/sandbox/"],
    spelled: ["Worker", "SharedWorker", "node:worker_threads"],
  },
  {
    name: "Starting a process",
    owners: [
      "src/sandbox/process.ts",
    ],
    spelled: [
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
      // The refresh answers the PML that started it.
      "src/oauth/refresh_child.ts",
      // It prints the version, for which nothing else is loaded.
      "src/cli/_version.ts",
    ],
    spelled: ["Deno.stdout", "process.stdout"],
  },
  {
    name: "The console",
    owners: ["src/audit/log.ts"],
    spelled: ["console", "node:console", "alert", "confirm", "prompt"],
  },
  {
    name: "The network",
    owners: [
      "src/registry/",
      "src/transport/http/client/",
      // It loads the imports of a module, and sends the module to a hub.
      "hub/src/publish/",
      // It compares addresses and opens nothing.
      "src/core/address.ts",
      // It reaches other processes of the same PML, at addresses in the PML home.
      "src/transport/replicas/_link.ts",
      // It is listened at, and reaches nothing.
      "src/io/listener.ts",
      // Nor does this: its sockets are the two pipes that were open.
      "src/transport/stdio/_sockets.ts",
      // Its sockets lie in the PML home.
      "src/transport/attach/window_socket.ts",
      // The names of its pipes lie there.
      "src/transport/attach/window_pipe.ts",
    ],
    spelled: [
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
    // It has servers as well as requests, and the listeners need servers.
    name: "HTTP of Node",
    owners: ["src/io/listener.ts", "src/oauth/_redirect_page.ts", "src/transport/http/client/"],
    spelled: ["node:http"],
  },
  {
    name: "Ending the process",
    owners: [],
    spelled: ["Deno.exit", "process.exit", "process.abort", "process.reallyExit"],
  },
];
const BY_SPELLING = new Map(
  POWERS.flatMap((power) => power.spelled.map((spelled) => [spelled, power] as const)),
);
const GLOBAL_NAMES = [...BY_SPELLING.keys()].filter((spelled) => /^\w+$/.test(spelled));
const GLOBALS = `Identifier[name=/^(${GLOBAL_NAMES.join("|")})$/]`;
const NAMESPACES = "Identifier[name=/^(Deno|process|globalThis|self|window)$/]";
const BOOT = "src/sandbox/boot/";

/** Reports the use of a power outside the file that owns it. */
export const powers: Deno.lint.Rule = {
  create(context) {
    const place = placeOf(context.filename);
    if (!isRuled(place)) return {};
    const use = (node: Deno.lint.Node, spelled: string) => {
      const found = offence(place, spelled);
      if (found !== undefined) context.report({ node, ...found });
    };
    return {
      [GLOBALS](node: Deno.lint.Identifier) {
        if (!isReference(node) || isShadowed(context.sourceCode.getAncestors(node), node.name)) {
          return;
        }
        use(node, node.name);
      },
      [NAMESPACES](node: Deno.lint.Identifier) {
        if (!isReference(node)) return;
        for (const spelled of spellings(node)) use(node, spelled);
      },
      ImportDeclaration(node) {
        if (node.importKind === "type") return;
        use(node, node.source.value);
        for (const spelled of importedMembers(node)) use(node, spelled);
      },
      ImportExpression(node) {
        if (node.source.type === "Literal") use(node, String(node.source.value));
      },
    };
  },
};

function isRuled({ path, module, inSource, isTest }: Place): boolean {
  // The code of the sandbox child runs where these powers are taken away or its own.
  return !isTest && !path.startsWith(BOOT) && (inSource || module === "mod.ts");
}

function offence(
  place: Place,
  spelled: string,
): { readonly message: string; readonly hint: string } | undefined {
  if (spelled.endsWith(".*")) {
    const message = `"${spelled.slice(0, -2)}" is handed on whole, with every power in it`;
    return { message, hint: "Name the member that is needed" };
  }
  const power = BY_SPELLING.get(spelled);
  if (power === undefined || isOwner(power, place.path)) return undefined;
  const message = power.owners.length === 0
    ? `No file may use this: ${power.name}: "${spelled}"`
    : `${power.name} belongs to ${power.owners.join(", ")}: "${spelled}"`;
  const hint = power.owners.length === 0
    ? "Return; mod.ts sets the exit code"
    : "Ask the owner, or let src/app/ hand it in";
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
