/**
 * The files in which clients keep their MCP servers, and the servers that stand there.
 *
 * @module
 */

import { isUtf8 } from "node:buffer";
import { basename, dirname, extname, isAbsolute, join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { isObject, quoted } from "../core/json.ts";
import { isInside } from "../io/place.ts";
import { readRegular, whyUnread } from "../io/regular_file.ts";
import { parseJsonc } from "./_syntax.ts";
import type { Environment } from "./env.ts";
import { exists, realPathOf } from "./workspace.ts";

/** The clients whose files are known. */
export const CLIENTS = [
  "claude-code",
  "claude-desktop",
  "codex",
  "cursor",
  "gemini",
  "vscode",
  "windsurf",
] as const;

/** A client whose files are known. */
export type Client = typeof CLIENTS[number];

/** Where a client is looked for. */
export interface ClientPlace {
  readonly environment: Environment;
  /** The workspace, a real path. */
  readonly root: string;
  /** The system; this one unless told. */
  readonly os?: typeof Deno.build.os;
}

/** A file of a client, or of one that the person named. */
export interface ClientFile {
  readonly client: Client | undefined;
  readonly path: string;
  /** The folder that its real path has to lie in, where whoever wrote that folder wrote the file. */
  readonly inside?: string;
}

/** A server as a client's file has it. */
export interface ClientEntry {
  readonly client: Client | undefined;
  readonly path: string;
  /** Where it stands in the file. */
  readonly key: readonly string[];
  readonly name: string;
  readonly said: Readonly<Record<string, unknown>>;
  /** What the client takes of several with one name: the smallest. */
  readonly near: number;
  readonly disabled: boolean;
}

/** A `.claude.json` holds all that was ever typed. */
const MOST_BYTES = 50_000_000;
const CODES = ["Code", "Code - Insiders", "VSCodium"];
/** Those that take comments; the others read strict JSON. */
const WITH_COMMENTS: readonly (Client | undefined)[] = ["cursor", "gemini", "vscode", undefined];

/** Gives every path at which a client may have a file, whether there is one or not. */
export function clientFiles(client: Client, place: ClientPlace): readonly ClientFile[] {
  const { root } = place;
  const { own, shared } = pathsOf(client, place);
  return [
    ...shared.map((path) => ({ client, path: join(root, path), inside: root })),
    ...own.map((path) => ({ client, path })),
  ];
}

/** Reads the servers of a file; throws what is wrong with it, and never what stands in it. */
export async function readClientFile(
  file: ClientFile,
  { root }: ClientPlace,
): Promise<readonly ClientEntry[]> {
  const { client, path, inside } = file;
  const text = readText(file);
  const isToml = extname(path) === ".toml";
  const value = isToml ? await parseToml(text, path) : await parseJson(text, file);
  if (!isObject(value)) throw bad(path, "it holds no object");
  const tables = isToml ? ["mcp_servers"] : client === "vscode" ? ["servers"] : ["mcpServers"];
  // A file that was named may be any client's.
  if (client === undefined && !isToml) tables.push("servers");
  const near = inside === undefined ? 2 : 1;
  const { excluded } = isObject(value.mcp) ? value.mcp : {};
  const off = Array.isArray(excluded) ? excluded : [];
  return [
    ...projectsOf(value, root).flatMap(([name, project]) =>
      entriesOf(project, { file, key: ["projects", name, "mcpServers"], near: 0, off })
    ),
    ...tables.flatMap((table) => entriesOf(value, { file, key: [table], near, off })),
  ];
}

function pathsOf(
  client: Client,
  { environment, os = Deno.build.os }: ClientPlace,
): { readonly own: readonly string[]; readonly shared: readonly string[] } {
  const home = (...parts: string[]) => join(environment.userHome, ...parts);
  const folder = (variable: string, otherwise: string) => {
    const said = environment.get(variable) ?? "";
    return isAbsolute(said) ? said : otherwise;
  };
  const support = () => {
    if (os === "darwin") return home("Library", "Application Support");
    if (os === "windows") return folder("APPDATA", home("AppData", "Roaming"));
    return folder("XDG_CONFIG_HOME", home(".config"));
  };
  switch (client) {
    case "claude-code": {
      const own = [join(folder("CLAUDE_CONFIG_DIR", home()), ".claude.json")];
      return { own, shared: [".mcp.json"] };
    }
    case "claude-desktop":
      return { own: [join(support(), "Claude", "claude_desktop_config.json")], shared: [] };
    case "codex": {
      const own = [join(folder("CODEX_HOME", home(".codex")), "config.toml")];
      return { own, shared: [".codex/config.toml"] };
    }
    case "cursor":
      return { own: [home(".cursor", "mcp.json")], shared: [".cursor/mcp.json"] };
    case "gemini":
      return { own: [home(".gemini", "settings.json")], shared: [".gemini/settings.json"] };
    case "vscode": {
      const users = CODES.map((code) => join(support(), code, "User"));
      const own = users.flatMap((user) => [user, ...foldersIn(join(user, "profiles"))])
        .map((user) => join(user, "mcp.json"));
      return { own, shared: [".vscode/mcp.json"] };
    }
    case "windsurf":
      return { own: [home(".codeium", "windsurf", "mcp_config.json")], shared: [] };
  }
}

function foldersIn(folder: string): readonly string[] {
  try {
    return [...Deno.readDirSync(folder)].map(({ name }) => join(folder, name)).sort();
  } catch {
    return []; // most people have no profiles
  }
}

function readText({ path, inside }: ClientFile): string {
  const real = join(realPathOf(dirname(path)), basename(path));
  try {
    if (inside !== undefined && !isInside(inside, real)) throw bad(path, "it lies elsewhere");
    if (Deno.lstatSync(real).isSymlink) throw bad(path, "it is a link");
    const { bytes } = readRegular(real, { most: MOST_BYTES });
    if (!isUtf8(bytes)) throw bad(path, "it is no UTF-8 text");
    return new TextDecoder().decode(bytes);
  } catch (error) {
    throw bad(path, whyUnread(error));
  }
}

async function parseJson(text: string, { client, path }: ClientFile): Promise<unknown> {
  const strict = !WITH_COMMENTS.includes(client);
  const syntax = await parseJsonc(text, (offset, { found, wanted }) => {
    const line = text.slice(0, offset).split("\n").length;
    throw bad(path, `line ${line}: found ${found}, wanted ${strict ? "JSON" : wanted}`);
  }, { strict });
  return syntax?.value;
}

async function parseToml(text: string, path: string): Promise<unknown> {
  const { parse, TomlError } = await import("smol-toml");
  try {
    // Through JSON, dates are texts and no object has a prototype of its own.
    return JSON.parse(JSON.stringify(parse(text)));
  } catch (error) {
    // Its message repeats the line, which may hold a key.
    const line = error instanceof TomlError ? `line ${error.line} is` : "it is";
    throw bad(path, `${line} no TOML`);
  }
}

/** The projects of a `.claude.json` that are this workspace. */
function projectsOf(
  { projects }: Record<string, unknown>,
  root: string,
): readonly (readonly [string, Record<string, unknown>])[] {
  return Object.entries(isObject(projects) ? projects : {}).flatMap(([path, project]) =>
    isAbsolute(path) && realPathOf(path) === root && isObject(project) ? [[path, project]] : []
  );
}

function entriesOf(
  holder: Record<string, unknown>,
  { file: { client, path }, key, near, off }: {
    readonly file: ClientFile;
    readonly key: readonly string[];
    readonly near: number;
    readonly off: readonly unknown[];
  },
): readonly ClientEntry[] {
  const table = holder[key.at(-1) ?? ""] ?? {};
  if (!isObject(table)) throw bad(path, `${quoted(key.join("."))} is no object`);
  return Object.entries(table).map(([name, entry]) => {
    const said = isObject(entry) ? entry : {};
    const disabled = said.disabled === true || said.enabled === false || off.includes(name);
    return { client, path, key: [...key, name], name, said, near, disabled };
  });
}

/** Tells whether there is such a file. */
export function isThere({ path }: ClientFile): boolean {
  return exists(path);
}

function bad(path: string, why: string): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot read ${quoted(path, 400)}: ${why}`, {
    hint: "Mend it, or name another file",
  });
}
