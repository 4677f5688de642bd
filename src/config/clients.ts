/**
 * The files in which clients keep their MCP servers, and the servers in them.
 *
 * @module
 */

import { isUtf8 } from "node:buffer";
import {
  basename,
  dirname,
  extname,
  isAbsolute,
  join,
  type PlatformPath,
  posix,
  win32,
} from "node:path";
import { placeAt, PmlError, shownPlace } from "../core/errors.ts";
import { isObject, listOf, objectOf, quoted, textOf } from "../core/json.ts";
import { isInside, namesInFolder, realPathOf } from "../io/path_info.ts";
import { readRegular, whyUnread } from "../io/regular_file.ts";
import { parseJsonc } from "./_syntax.ts";
import type { Environment } from "./env.ts";
import { withoutCmd } from "./windows_command.ts";
import { pathExists } from "./workspace.ts";
import { loadYaml } from "./yaml.ts";

/** The clients whose files PML knows. */
export const CLIENTS = [
  "claude-code",
  "claude-desktop",
  "cline",
  "codex",
  "continue",
  "copilot",
  "cursor",
  "gemini",
  "opencode",
  "qwen",
  "vscode",
  "windsurf",
  "zed",
] as const;

/** A client whose files PML knows. */
export type ClientName = typeof CLIENTS[number];

/** Where to look for the files of clients. */
export interface ClientPlace {
  readonly environment: Environment;
  /** The workspace, a real path. */
  readonly root: string;
  /** The operating system; by default this one. */
  readonly os?: typeof Deno.build.os;
  /** Lists a folder; by default one of this machine. */
  readonly namesIn?: (folder: string) => readonly string[];
}

/** A file of a client, or a file that the user named. */
export interface ClientFile {
  readonly client: ClientName | undefined;
  readonly path: string;
  /**
   * The folder that the real path of the file must be in. Set for files that came with that folder.
   */
  readonly inside?: string;
}

/** A server in a client's file. */
export interface ClientEntry {
  readonly client: ClientName | undefined;
  readonly path: string;
  /** The path of keys of the server in the file. */
  readonly key: readonly string[];
  readonly name: string;
  readonly fields: Readonly<Record<string, unknown>>;
  /** The client's preference among several servers with one name: the smallest number wins. */
  readonly rank: number;
  readonly disabled: boolean;
  /** The defaults of the inputs that VS Code asks for, by their ids. Those of passwords are missing. */
  readonly defaults?: ReadonlyMap<string, string>;
}

/** A `.claude.json` contains everything that was ever typed, so it can be large. */
const MOST_BYTES = 50_000_000;
const CODE_EDITIONS = ["Code", "Code - Insiders", "VSCodium"];
/** The key of the servers in a client's file, where it is not `mcpServers`. */
const TABLES: Partial<Record<ClientName, string>> = {
  codex: "mcp_servers",
  opencode: "mcp",
  vscode: "servers",
  zed: "context_servers",
};
const OPENCODE = ["opencode.json", "opencode.jsonc"];
const OPENCODE_SHARED = [...OPENCODE, ...OPENCODE.map((name) => join(".opencode", name))];

/** Returns the key of the servers in a client's file. */
export function tableOf(client: ClientName): string {
  return TABLES[client] ?? "mcpServers";
}

/** Returns every path at which a client may have a file, whether or not there is one. */
export function clientFiles(client: ClientName, place: ClientPlace): readonly ClientFile[] {
  const { root } = place;
  const { own, shared } = pathsOf(client, place);
  return [
    ...shared.map((path) => ({ client, path: pathRules(place).join(root, path), inside: root })),
    ...own.map((path) => ({ client, path })),
  ];
}

/**
 * Returns the files in which the user permits a client to run tools, if they are not the files with
 * servers: first the file for the workspace, then the file for all workspaces.
 */
export function permissionFiles(client: ClientName, place: ClientPlace): readonly ClientFile[] {
  if (client !== "claude-code") return [];
  const { root } = place;
  const { home, folder } = foldersOf(place);
  const { join } = pathRules(place);
  return [
    { client, path: join(root, ".claude", "settings.local.json"), inside: root },
    { client, path: join(folder("CLAUDE_CONFIG_DIR", home(".claude")), "settings.json") },
  ];
}

/**
 * Reads the servers of a file. Throws CONFIG_INVALID if it is wrong; the error never repeats its
 * text.
 */
export async function readClientFile(
  file: ClientFile,
  { root }: ClientPlace,
): Promise<readonly ClientEntry[]> {
  const { client, path, inside } = file;
  const text = readText(file);
  const isToml = extname(path) === ".toml";
  const isYaml = /^\.ya?ml$/.test(extname(path));
  const value = await (isToml ? parseToml : isYaml ? parseClientYaml : parseClientJson)(text, path);
  if (!isObject(value)) throw readError(path, "it is not an object");
  // A file that the user named may belong to any client.
  const tables = isToml
    ? ["mcp_servers"]
    : client === undefined
    ? ["mcpServers", "servers", "context_servers", "mcp"]
    : [tableOf(client)];
  const rank = inside === undefined ? 2 : 1;
  const { excluded, allowed, servers } = objectOf(value.mcp);
  const isOff = (name: string) =>
    listOf(excluded).includes(name) || Array.isArray(allowed) && !allowed.includes(name);
  return [
    ...projectsOf(value, root).flatMap(([name, project]) =>
      entriesOf(project, { file, key: ["projects", name, "mcpServers"], rank: 0, isOff })
    ),
    ...tables.flatMap((table) => {
      // A later form of opencode's file has one level more.
      const isDeep = table === "mcp" && isObject(servers) && !isServer(servers);
      return isDeep
        ? entriesOf(objectOf(value.mcp), { file, key: ["mcp", "servers"], rank, isOff })
        : entriesOf(value, { file, key: [table], rank, isOff });
    }),
  ];
}

/** Returns the rules for paths of the system. */
export function pathRules({ os = Deno.build.os }: Pick<ClientPlace, "os">): PlatformPath {
  return os === "windows" ? win32 : posix;
}

/** Returns the home folder in which clients look for their files. */
export function clientHome({ environment, os = Deno.build.os }: ClientPlace): string {
  // Git Bash sets HOME on Windows, which clients ignore there.
  return os === "windows" && environment.get("USERPROFILE") || environment.userHome;
}

/** The folders in which clients look for their files. */
interface ClientFolders {
  /** Returns a path below the home folder. */
  readonly home: (...parts: string[]) => string;
  /** Returns the folder that a variable names, if its path is absolute. */
  readonly folder: (variable: string, otherwise: string) => string;
  /** Returns the folder of the settings of programs. */
  readonly support: () => string;
}

function foldersOf(place: ClientPlace): ClientFolders {
  const { environment, os = Deno.build.os } = place;
  const { isAbsolute, join } = pathRules(place);
  const home = (...parts: string[]) => join(clientHome(place), ...parts);
  const folder = (variable: string, otherwise: string) => {
    const path = environment.get(variable) ?? "";
    return isAbsolute(path) ? path : otherwise;
  };
  const support = () => {
    if (os === "darwin") return home("Library", "Application Support");
    if (os === "windows") return folder("APPDATA", home("AppData", "Roaming"));
    return folder("XDG_CONFIG_HOME", home(".config"));
  };
  return { home, folder, support };
}

function pathsOf(
  client: ClientName,
  place: ClientPlace,
): { readonly own: readonly string[]; readonly shared: readonly string[] } {
  const { environment, os = Deno.build.os } = place;
  const { join } = pathRules(place);
  const { home, folder, support } = foldersOf(place);
  switch (client) {
    case "claude-code": {
      const own = [join(folder("CLAUDE_CONFIG_DIR", home()), ".claude.json")];
      return { own, shared: [".mcp.json"] };
    }
    case "claude-desktop": {
      const local = folder("LOCALAPPDATA", home("AppData", "Local"));
      const packages = os === "windows" ? claudePackages(join(local, "Packages"), place) : [];
      const folders = [...packages, join(support(), "Claude")];
      return { own: folders.map((path) => join(path, "claude_desktop_config.json")), shared: [] };
    }
    case "cline": {
      const data = folder("CLINE_DATA_DIR", join(folder("CLINE_DIR", home(".cline")), "data"));
      return { own: [join(data, "settings", "cline_mcp_settings.json")], shared: [] };
    }
    case "continue": {
      const base = folder("CONTINUE_GLOBAL_DIR", home(".continue"));
      return { own: [join(base, "config.yaml")], shared: [] };
    }
    // Copilot also reads `.mcp.json`. That file is listed for Claude Code.
    case "copilot":
      return { own: [home(".copilot", "mcp-config.json")], shared: [] };
    case "qwen": {
      const own = [join(folder("QWEN_HOME", home(".qwen")), "settings.json")];
      return { own, shared: [".qwen/settings.json"] };
    }
    case "codex": {
      const own = [join(folder("CODEX_HOME", home(".codex")), "config.toml")];
      return { own, shared: [".codex/config.toml"] };
    }
    case "cursor":
      return { own: [home(".cursor", "mcp.json")], shared: [".cursor/mcp.json"] };
    case "gemini":
      return { own: [home(".gemini", "settings.json")], shared: [".gemini/settings.json"] };
    case "opencode": {
      // opencode uses this folder on every system.
      const folder = join(environment.get("XDG_CONFIG_HOME") || home(".config"), "opencode");
      return { own: OPENCODE.map((name) => join(folder, name)), shared: OPENCODE_SHARED };
    }
    case "vscode":
      return { own: codeFiles(support(), place), shared: [".vscode/mcp.json"] };
    case "windsurf":
      return { own: [home(".codeium", "windsurf", "mcp_config.json")], shared: [] };
    case "zed": {
      const base = os === "darwin" ? home(".config") : support();
      const folder = join(base, os === "windows" ? "Zed" : "zed");
      return { own: [join(folder, "settings.json")], shared: [".zed/settings.json"] };
    }
  }
}

/**
 * Returns the folders that Windows shows to packaged installs of Claude Desktop in place of
 * `%APPDATA%\\Claude`. A file in such a folder hides the file of the same name in `%APPDATA%`.
 */
function claudePackages(packages: string, place: ClientPlace): readonly string[] {
  const { basename, join } = pathRules(place);
  return foldersIn(packages, place).filter((path) => basename(path).startsWith("Claude_"))
    .map((path) => join(path, "LocalCache", "Roaming", "Claude"));
}

/** Returns the files of servers of each edition of VS Code, and of each of its profiles. */
function codeFiles(support: string, place: ClientPlace): readonly string[] {
  const { join } = pathRules(place);
  const users = CODE_EDITIONS.map((edition) => join(support, edition, "User"));
  return users.flatMap((user) => [user, ...foldersIn(join(user, "profiles"), place)])
    .map((user) => join(user, "mcp.json"));
}

function foldersIn(folder: string, place: ClientPlace): readonly string[] {
  const { namesIn = namesInFolder } = place;
  try {
    return namesIn(folder).map((name) => pathRules(place).join(folder, name)).sort();
  } catch {
    return []; // most users have no such folder
  }
}

function readText({ path, inside }: ClientFile): string {
  const real = join(realPathOf(dirname(path)), basename(path));
  try {
    if (inside !== undefined && !isInside(inside, real)) throw new Error("it lies elsewhere");
    if (Deno.lstatSync(real).isSymlink) throw new Error("it is a link");
    const { bytes } = readRegular(real, { most: MOST_BYTES });
    if (!isUtf8(bytes)) throw new Error("it is not UTF-8 text");
    return new TextDecoder().decode(bytes);
  } catch (error) {
    throw readError(path, whyUnread(error));
  }
}

/** Parses the text of a client's JSON file, with comments. Throws as `readClientFile` does. */
export async function parseClientJson(text: string, path: string): Promise<unknown> {
  return (await parseJsonc(text, (offset, { found, wanted }) => {
    throw readError(shownPlace(path, placeAt(text, offset)), `found ${found}, wanted ${wanted}`);
  }).catch((error) => {
    throw error instanceof RangeError ? readError(path, "it is too deep") : error;
  }))?.value;
}

/** Parses the text of a client's TOML file. Throws as `readClientFile` does. */
export async function parseToml(text: string, path: string): Promise<unknown> {
  const { parse, TomlError } = await import("smol-toml");
  try {
    // The conversion to JSON and back turns dates into texts and removes prototypes.
    return JSON.parse(JSON.stringify(parse(text.replace(/^\uFEFF/, ""))));
  } catch (error) {
    // The library's message repeats the line, which may contain a key.
    throw readError(shownPlace(path, error instanceof TomlError ? error : {}), "it is not TOML");
  }
}

/** Parses the text of a client's YAML file. Throws as `readClientFile` does. */
export async function parseClientYaml(text: string, path: string): Promise<unknown> {
  const { parse } = await loadYaml();
  try {
    return JSON.parse(JSON.stringify(parse(text.replace(/^\uFEFF/, "")) ?? {}));
  } catch {
    throw readError(path, "it is not YAML"); // the library's message repeats the text
  }
}

/** Returns the projects of a `.claude.json` that are this workspace. */
function projectsOf(
  { projects }: Record<string, unknown>,
  root: string,
): readonly (readonly [string, Record<string, unknown>])[] {
  return Object.entries(objectOf(projects)).flatMap(([path, project]) =>
    isAbsolute(path) && realPathOf(path) === root && isObject(project) ? [[path, project]] : []
  );
}

function entriesOf(
  holder: Record<string, unknown>,
  { file: { client, path }, key, rank, isOff }: {
    readonly file: ClientFile;
    readonly key: readonly string[];
    readonly rank: number;
    readonly isOff: (name: string) => boolean;
  },
): readonly ClientEntry[] {
  const servers = holder[key.at(-1) ?? ""] ?? {};
  // Continue has a list of servers, each with its name.
  const table = Array.isArray(servers) && client === "continue"
    ? Object.fromEntries(servers.map(objectOf).map(({ name, ...server }) => [textOf(name), server]))
    : servers;
  if (!isObject(table)) throw readError(path, `${quoted(key.join("."))} is not an object`);
  const isMixed = key[0] === "mcp"; // Gemini and opencode keep other settings there, too
  const entries = Object.entries(table).filter(([, entry]) => !isMixed || isServer(entry));
  const defaults = inputDefaults(holder);
  return entries.map(([name, entry]) => {
    const fields = isObject(entry) ? normalizeEntry(entry) : {};
    const disabled = fields.disabled === true || fields.enabled === false || isOff(name);
    return { client, path, key: [...key, name], name, fields, rank, disabled, defaults };
  });
}

/** Returns the defaults of a file's inputs that a definition can contain, by the ids of the inputs. */
function inputDefaults({ inputs }: Record<string, unknown>): ReadonlyMap<string, string> {
  const defaults = listOf(inputs).map(objectOf).filter(({ password }) => password !== true)
    .map(({ id, default: value }) => [textOf(id), textOf(value)] as const);
  return new Map(defaults.filter(([, value]) => /^[^${}]+$/.test(value)));
}

function isServer(entry: unknown): boolean {
  return isObject(entry) && (entry.command !== undefined || entry.url !== undefined);
}

/**
 * Returns an entry with the keys that most clients use, and a command without the wrapper that
 * Windows needs. opencode, Copilot, Cline and old versions of Zed use other keys.
 */
function normalizeEntry(entry: Record<string, unknown>): Record<string, unknown> {
  const fields = toCommonKeys(entry);
  const { command, args = [] } = fields;
  if (typeof command !== "string" || !isTexts(args)) return fields;
  const start = withoutCmd({ command, args });
  return start.command === command ? fields : { ...fields, ...start };
}

function toCommonKeys(entry: Record<string, unknown>): Record<string, unknown> {
  const { transport, ...outer } = entry;
  if (isObject(transport)) return toCommonKeys({ ...outer, ...transport });
  if (typeof transport === "string") return toCommonKeys({ type: transport, ...outer });
  const { command, type, environment, ...rest } = entry;
  const isOpencode = type === "local" || type === "remote";
  if (Array.isArray(command)) {
    return { command: command[0], args: command.slice(1), env: environment ?? {}, ...rest };
  }
  if (isOpencode) return { ...rest, ...typeof command === "string" && { command } };
  if (!isObject(command)) return entry;
  return { ...rest, command: command.path, args: command.args, env: command.env ?? {} };
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

/** Returns whether the file exists. */
export function clientFileExists({ path }: ClientFile): boolean {
  return pathExists(path);
}

function readError(path: string, why: string): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot read ${quoted(path, 400)}: ${why}`, {
    hint: "Fix it, then try again",
  });
}
