/**
 * A folder of modules and manifests as the content of a registry. Each request checks the folder
 * for changes.
 *
 * @module
 */

import { basename, join } from "node:path";
import { messageOf, PmlError } from "../core/errors.ts";
import { isObject, type JsonObject, objectOf, quoted, textOf, visible } from "../core/json.ts";
import type { ModuleMeta } from "../protocol/tool.ts";
import { parseJsonBytes } from "../core/utf8.ts";
import { parseExact } from "../core/exact_json.ts";
import { numberText } from "../core/exact_number.ts";
import { parseJson } from "../core/parse_json.ts";
import { namesInFolder, stampOf } from "../io/path_info.ts";
import type { WarningLog } from "../io/private_files.ts";
import { readRegular } from "../io/regular_file.ts";
import type { Manifest } from "../servers/manifest.ts";
import { findKind, KINDS } from "../servers/kinds.ts";
import { entryName, type Fqdn, parseFqdn } from "./fqdn.ts";
import { integrityOf } from "../core/hash.ts";
import { type OmittedTool, parseManifest } from "./manifest.ts";
import {
  capabilityManifest,
  type CatalogQuery,
  chooseVersion,
  entriesPage,
  type EntryVersion,
  moduleManifest,
  type RegistryStore,
  type SavedCapability,
  type Versions,
  versionsOf,
} from "./registry_store.ts";

/** Reads the content of files. */
export interface FolderReader {
  /** The real path of the folder. */
  readonly path: string;
  /** The largest size of a file, in bytes. */
  readonly maxBytes: number;
  /** Reads the metadata of a module without running any of it in this process. */
  describe(path: string, code: Uint8Array): Promise<ModuleMeta>;
  /** Reads the JSON of an exported capability. */
  parseCapability(json: JsonObject): SavedCapability;
}

/** Signs the manifests of a folder. */
export interface FolderSigner {
  /** Signs a manifest with this time. */
  sign(manifest: JsonObject, issued: Date): Promise<JsonObject>;
}

/** A file in its last checked state. */
interface FolderItem {
  /** Identifies the state of the file. Each change of the file changes the stamp. */
  readonly stamp: string;
  /** The name of the entry in the file's name, without the version. */
  readonly name: string;
  /** The entry; undefined if the file is invalid, after a warning was logged. */
  readonly entry: Promise<EntryVersion | undefined>;
}

/** A file that was read. */
interface FileRead {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly changedAt: Date;
  readonly fqdn: string;
  readonly version: string | undefined;
}

type Tags = Readonly<Record<string, Versions["tags"]>>;

const FILE = /^([^.].*)\.(ts|js|json)$/;
const TAGS = "tags.json";
/** The maximum number of modules that are read at the same time. */
const SLOTS = 3;
/** The types that a JSON manifest may have: servers without code. A module is a file with code. */
const TYPES = KINDS.filter(({ manifest }) => manifest !== undefined && manifest.code === undefined)
  .map(({ name }) => name);
const MEMBERS = [
  ...["fqdn", "type", "version", "description", "install", "proxy_to", "url", "headers"],
  ...["permissions", "tools", "env_required", "warnings", "routing", "integrity"],
];

/** Reads and caches the entries of a folder. */
export class Folder implements RegistryStore {
  readonly #path: string;
  readonly #reader: FolderReader;
  readonly #log: WarningLog;
  readonly #signer: FolderSigner | undefined;
  /** The last message that was logged about each file. */
  readonly #reported = new Map<string, string>();
  readonly #slots: Promise<unknown>[] = Array.from({ length: SLOTS }, () => Promise.resolve());
  #items = new Map<string, FolderItem>();

  /** Creates an instance. `log` receives the reason why a file is omitted. Reads nothing yet. */
  constructor(reader: FolderReader, log: WarningLog, signer?: FolderSigner) {
    this.#path = reader.path;
    this.#reader = reader;
    this.#log = log;
    this.#signer = signer;
  }

  /** Returns the entry of a version or a tag of a name. */
  async entry(fqdn: string, version: string | undefined): Promise<EntryVersion | undefined> {
    const versions = await this.find(fqdn);
    return versions && chooseVersion(versions, version);
  }

  /** Returns a page of the newest entries. */
  async page(query: CatalogQuery): Promise<readonly EntryVersion[]> {
    return entriesPage(await this.all(), query);
  }

  /** Returns the versions of a name. Does not wait for other modules, which may be slow. */
  async find(fqdn: string): Promise<Versions | undefined> {
    this.#scan();
    const items = [...this.#items].filter(([file, item]) =>
      item.name === fqdn || file.endsWith(".json")
    );
    return (await this.#readVersions(items)).find((one) => one.fqdn === fqdn);
  }

  /** Returns the versions of all names. */
  all(): Promise<readonly Versions[]> {
    this.#scan();
    return this.#readVersions([...this.#items]);
  }

  async #readVersions(
    items: readonly (readonly [string, FolderItem])[],
  ): Promise<readonly Versions[]> {
    const entries = new Map<string, EntryVersion>();
    for (const [file, item] of items) {
      const entry = await item.entry;
      if (entry === undefined) continue;
      const key = `${entry.fqdn}@${entry.version}`;
      if (entries.has(key)) this.#leaveOut(file, `${quoted(key)} is defined twice`);
      else entries.set(key, entry);
    }
    return versionsOf([...entries.values()], this.#tags());
  }

  /** Finds new, changed and removed files. */
  #scan(): void {
    const items = namesInFolder(this.#path).toSorted().flatMap(
      (file): readonly [string, FolderItem][] => {
        const [, stem, kind] = FILE.exec(file) ?? [];
        if (stem === undefined || file === TAGS) return [];
        try {
          return [[file, this.#item(file, { stem, kind })]];
        } catch (error) {
          this.#leaveOut(file, error);
          return [];
        }
      },
    );
    this.#items = new Map(items);
  }

  #item(
    file: string,
    { stem, kind }: { readonly stem: string; readonly kind: string | undefined },
  ): FolderItem {
    // Some file systems do not allow a colon in names, so file names contain `__` instead. No valid
    // name contains `__`.
    const parsedName = parseFqdn(stem.replace("__", ":"));
    const { version } = parsedName;
    const fqdn = entryName(parsedName);
    const path = join(this.#path, file);
    const info = assertRegular(path, Deno.lstatSync(path));
    const stamp = stampOf(info);
    const item = this.#items.get(file);
    if (item?.stamp === stamp) return item;
    if (item !== undefined && version !== undefined) {
      this.#log.warn(
        `${quoted(file)} changed, but a version must not change: give it a new version`,
      );
    }
    const read = { path, ...this.#read(path, stamp), fqdn, version };
    const parsing = kind === "json" ? this.#manifestEntry(read) : this.#moduleEntry(read);
    const entry = parsing.then((entry) => {
      this.#reported.delete(file);
      return entry;
    }, (error) => this.#leaveOut(file, error));
    return { stamp, name: fqdn, entry };
  }

  /** Reads a file. Throws if it was replaced or changed after its stamp was taken. */
  #read(path: string, stamp: string): Pick<FileRead, "bytes" | "changedAt"> {
    const { bytes, info } = readRegular(path, { most: this.#reader.maxBytes });
    const isWhole = stampOf(info) === stamp && bytes.length === info.size;
    if (!isWhole) throw invalidError("another process is changing it");
    return { bytes, changedAt: info.mtime ?? new Date(0) };
  }

  async #moduleEntry(file: FileRead): Promise<EntryVersion> {
    const { path, bytes, fqdn } = file;
    const meta = await this.#runLimited(() => this.#reader.describe(path, bytes));
    const version = versionOf(file.version, meta.version);
    const integrity = integrityOf(bytes);
    const manifest = moduleManifest({ fqdn, version, meta, integrity });
    return await this.#entry(manifest, { ...file, code: bytes });
  }

  async #manifestEntry(file: FileRead): Promise<EntryVersion> {
    const { bytes } = file;
    const json = parseJsonBytes(bytes, parseExact);
    if (!isObject(json)) throw invalidError("it is not an object");
    if (json.kind !== undefined) return await this.#capabilityEntry(json as JsonObject, file);
    const type = textOf(json.type);
    if (!TYPES.includes(type)) {
      throw invalidError(`its type is ${quoted(type)}, wanted one of ${TYPES.join(", ")}`);
    }
    const unknown = Object.keys(json).find((key) => !MEMBERS.includes(key));
    if (unknown !== undefined) throw invalidError(`its key ${quoted(unknown)} is unknown`);
    const fqdn = textOf(json.fqdn ?? file.fqdn);
    if (parseFqdn(fqdn).version !== undefined) throw invalidError("its fqdn has a version");
    const filled: Record<string, unknown> = {
      ...json,
      fqdn,
      version: versionOf(file.version, json.version),
      tools: json.tools ?? [],
      env_required: json.env_required ?? objectOf(json.install).env_required ?? [],
      warnings: json.warnings ?? [],
      routing: json.routing ?? (findKind(type)?.isInCloud ? "cloud" : "local"),
    };
    const manifest = Object.fromEntries(
      MEMBERS.flatMap((key) => filled[key] === undefined ? [] : [[key, filled[key]]]),
    ) as JsonObject; // its members were JSON
    return await this.#entry(manifest, file);
  }

  async #capabilityEntry(json: JsonObject, file: FileRead): Promise<EntryVersion> {
    const saved = this.#reader.parseCapability(json);
    const version = versionOf(file.version, undefined);
    const fqdn = textOf(json.name ?? file.fqdn);
    const manifest = capabilityManifest({ fqdn, version, saved });
    return await this.#entry(manifest, { ...file, code: saved.code });
  }

  async #entry(
    manifest: JsonObject,
    { path, version, changedAt, code }: Pick<FileRead, "path" | "version" | "changedAt"> & {
      readonly code?: Uint8Array;
    },
  ): Promise<EntryVersion> {
    const file = basename(path);
    const name = parseFqdn(textOf(manifest.fqdn));
    const read = this.#parse(manifest, { url: file, asked: name });
    return {
      fqdn: read.fqdn,
      version: read.version,
      // The time of the file is signed, so that clients recognize an older file.
      manifest: await this.#signer?.sign(manifest, changedAt) ?? manifest,
      immutable: version !== undefined,
      ...(code && { code }),
    };
  }

  /** Parses a manifest as clients do, and logs the tools that they would omit. */
  #parse(
    manifest: JsonObject,
    options: { readonly url: string; readonly asked: Fqdn },
  ): Manifest {
    const leftOut: OmittedTool[] = [];
    try {
      return parseManifest(manifest, { ...options, leftOut });
    } finally {
      for (const { name, reason } of leftOut) {
        const tool = `the tool ${quoted(name)} of ${quoted(options.url)}`;
        this.#log.warn(`Clients leave out ${tool}: ${reason}`);
      }
    }
  }

  #tags(): Tags {
    const path = join(this.#path, TAGS);
    try {
      const { bytes } = this.#read(path, stampOf(assertRegular(path, Deno.lstatSync(path))));
      const json = parseJson(new TextDecoder().decode(bytes));
      const isTags = isObject(json) &&
        Object.values(json).every((tags) =>
          isObject(tags) && Object.values(tags).every((version) => typeof version === "string")
        );
      if (isTags) return json as Tags; // its form was checked above
      throw invalidError('wanted {"NAME": {"TAG": "VERSION"}}');
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) this.#leaveOut(TAGS, error);
      return {};
    }
  }

  /** Logs once that a file is omitted. */
  #leaveOut(file: string, why: unknown): undefined {
    const all = visible(messageOf(why), 600);
    const [, place = "", reason = all] =
      /^Cannot (?:load|use) (?:the (?:module|entry) )?".*?((?::\d+)*)"(?: of ".*?")?: (.*)/
        .exec(all) ?? [];
    const message = `Cannot serve ${quoted(file + place)}: ${reason}`;
    if (this.#reported.get(file) === message) return;
    this.#reported.set(file, message);
    this.#log.warn(message);
  }

  /** Runs work with limited concurrency, because reading each module takes a child process. */
  #runLimited<T>(work: () => Promise<T>): Promise<T> {
    const slot = this.#slots.shift() ?? Promise.resolve();
    const result = slot.then(work);
    this.#slots.push(result.catch(() => {}));
    return result;
  }
}

function assertRegular(path: string, info: Deno.FileInfo): Deno.FileInfo {
  // guard: served-link
  if (info.isFile) return info;
  throw invalidError(info.isSymlink ? "it is a link" : `${quoted(path)} is not a regular file`);
}

function versionOf(inName: string | undefined, value: unknown): string {
  const content = numberText(value) ?? value;
  if (inName !== undefined && content !== undefined && content !== inName) {
    throw invalidError(
      `its name has version ${quoted(inName)}, but its content has ${quoted(String(content))}`,
    );
  }
  const version = inName ?? content ?? "0.0.0";
  // Throws for a version that clients could not ask for.
  return parseFqdn(`x@${version}`).version ?? "";
}

function invalidError(why: string): PmlError {
  return new PmlError("CONFIG_INVALID", why);
}
