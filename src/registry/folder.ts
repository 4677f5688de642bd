/**
 * A folder of modules and manifests as what a registry has: looked at anew for each request.
 *
 * @module
 */

import { basename, join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { isObject, type JsonObject, objectOf, quoted, textOf, visible } from "../core/json.ts";
import type { ModuleMeta } from "../core/tool.ts";
import { stampOf } from "../io/place.ts";
import { readRegular } from "../io/regular_file.ts";
import { entryName, parseFqdn } from "./fqdn.ts";
import { integrityOf } from "./integrity.ts";
import { parseManifest } from "./manifest.ts";
import {
  type Entry,
  moduleManifest,
  type RegistryStore,
  type Versions,
  versionsOf,
} from "./registry_store.ts";

/** What a folder needs from outside. */
export interface FolderOptions {
  /** Its real path. */
  readonly path: string;
  /** The most bytes a file may have. */
  readonly maxBytes: number;
  /** Reads what a module says of itself, without running anything of it here. */
  readonly describe: (path: string, code: Uint8Array) => Promise<ModuleMeta>;
  /** Signs a manifest, where there is a key. */
  readonly sign?: ((manifest: JsonObject, issued: Date) => Promise<JsonObject>) | undefined;
  /** Is told what is left out, and why. */
  readonly warn: (message: string) => void;
}

/** A file as it was when it was looked at. */
interface Item {
  readonly stamp: string;
  /** The name that the file has for its server, and the version. */
  readonly name: string;
  /** Its entry; undefined where it is broken, which was told. */
  readonly entry: Promise<Entry | undefined>;
}

/** A file that was read. */
interface Read {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly changed: Date;
  readonly fqdn: string;
  readonly version: string | undefined;
}

type Tags = Readonly<Record<string, Versions["tags"]>>;

const FILE = /^([^.].*)\.(ts|js|json)$/;
const TAGS = "tags.json";
const LANES = 3;
const KINDS = ["stdio", "http", "cloud"];
const MEMBERS = [
  ...["fqdn", "type", "version", "description", "install", "proxy_to", "url", "headers"],
  ...["permissions", "tools", "env_required", "warnings", "routing", "integrity"],
];

/** Knows the entries of a folder. */
export class Folder implements RegistryStore {
  readonly #options: FolderOptions;
  readonly #told = new Map<string, string>();
  readonly #lanes: Promise<unknown>[] = Array.from({ length: LANES }, () => Promise.resolve());
  #items = new Map<string, Item>();

  /** Takes a folder; nothing is read yet. */
  constructor(options: FolderOptions) {
    this.#options = options;
  }

  /** Gives what there is of a name; other modules, which may take time, are not waited for. */
  readonly find = async (fqdn: string): Promise<Versions | undefined> => {
    this.#look();
    const items = [...this.#items].filter(([file, item]) =>
      item.name === fqdn || file.endsWith(".json")
    );
    return (await this.#together(items)).find((one) => one.fqdn === fqdn);
  };

  /** Gives everything. */
  readonly all = (): Promise<readonly Versions[]> => {
    this.#look();
    return this.#together([...this.#items]);
  };

  async #together(items: readonly (readonly [string, Item])[]): Promise<readonly Versions[]> {
    const found = new Map<string, Entry>();
    for (const [file, item] of items) {
      const entry = await item.entry;
      if (entry === undefined) continue;
      const key = `${entry.fqdn}@${entry.version}`;
      if (found.has(key)) this.#leaveOut(file, `${quoted(key)} is there already`);
      else found.set(key, entry);
    }
    return versionsOf([...found.values()], this.#tags());
  }

  /** Sees what is new, what changed and what is gone. */
  #look(): void {
    const { path } = this.#options;
    const names = [...Deno.readDirSync(path)].map(({ name }) => name).sort();
    const items = names.flatMap((file): readonly [string, Item][] => {
      const [, stem, kind] = FILE.exec(file) ?? [];
      if (stem === undefined || file === TAGS) return [];
      try {
        return [[file, this.#item(file, { stem, kind })]];
      } catch (error) {
        this.#leaveOut(file, error);
        return [];
      }
    });
    this.#items = new Map(items);
  }

  #item(
    file: string,
    { stem, kind }: { readonly stem: string; readonly kind: string | undefined },
  ): Item {
    // A colon is no part of a file's name everywhere, and two `_` are in no name.
    const named = parseFqdn(stem.replace("__", ":"));
    const { version } = named;
    const fqdn = entryName(named);
    const path = join(this.#options.path, file);
    const info = regular(path, Deno.lstatSync(path));
    const stamp = stampOf(info);
    const known = this.#items.get(file);
    if (known?.stamp === stamp) return known;
    if (known !== undefined && version !== undefined) {
      this.#options.warn(`${quoted(file)} changed, and a version is for ever: give it another`);
    }
    const read = { path, ...this.#read(path, stamp), fqdn, version };
    const made = kind === "json" ? this.#manifestEntry(read) : this.#moduleEntry(read);
    const entry = made.then((entry) => {
      this.#told.delete(file);
      return entry;
    }, (error) => this.#leaveOut(file, error));
    return { stamp, name: fqdn, entry };
  }

  /** Reads the very file that was looked at: it may have been put in the place of another since. */
  #read(path: string, stamp: string): Pick<Read, "bytes" | "changed"> {
    const { bytes, info } = readRegular(path, { most: this.#options.maxBytes });
    const isWhole = stampOf(info) === stamp && bytes.length === info.size;
    if (!isWhole) throw broken("it is being changed");
    return { bytes, changed: info.mtime ?? new Date(0) };
  }

  async #moduleEntry(read: Read): Promise<Entry> {
    const { path, bytes, fqdn } = read;
    const meta = await this.#inTurn(() => this.#options.describe(path, bytes));
    const version = versionOf(read.version, meta.version);
    const integrity = integrityOf(bytes);
    const manifest = moduleManifest({ fqdn, version, meta, integrity });
    return await this.#entry(manifest, { ...read, code: bytes });
  }

  async #manifestEntry(read: Read): Promise<Entry> {
    const { bytes } = read;
    const said = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (!isObject(said)) throw broken("it is no object");
    const type = textOf(said.type);
    if (!KINDS.includes(type)) {
      throw broken(`its type is ${quoted(type)}, and it may be ${KINDS.join(", ")}`);
    }
    const unknown = Object.keys(said).find((key) => !MEMBERS.includes(key));
    if (unknown !== undefined) throw broken(`its key ${quoted(unknown)} is none of a manifest`);
    const fqdn = textOf(said.fqdn ?? read.fqdn);
    if (parseFqdn(fqdn).version !== undefined) throw broken("its fqdn has a version");
    const filled: Record<string, unknown> = {
      ...said,
      fqdn,
      version: versionOf(read.version, said.version),
      tools: said.tools ?? [],
      env_required: said.env_required ?? objectOf(said.install).env_required ?? [],
      warnings: said.warnings ?? [],
      routing: said.routing ?? (type === "cloud" ? "cloud" : "local"),
    };
    const manifest = Object.fromEntries(
      MEMBERS.flatMap((key) => filled[key] === undefined ? [] : [[key, filled[key]]]),
    ) as JsonObject; // its members were JSON
    return await this.#entry(manifest, read);
  }

  async #entry(
    manifest: JsonObject,
    { path, version, changed, code }: Pick<Read, "path" | "version" | "changed"> & {
      readonly code?: Uint8Array;
    },
  ): Promise<Entry> {
    const file = basename(path);
    // What clients would refuse is better told here.
    const read = parseManifest(manifest, {
      url: file,
      asked: parseFqdn(textOf(manifest.fqdn)),
      onLeftOut: (tool, why) =>
        this.#options.warn(`Clients leave out the tool ${quoted(tool)} of ${quoted(file)}: ${why}`),
    });
    return {
      fqdn: read.fqdn,
      version: read.version,
      // The time of the file, so that an older one put back is seen to be older.
      manifest: await this.#options.sign?.(manifest, changed) ?? manifest,
      immutable: version !== undefined,
      ...(code && { code }),
    };
  }

  #tags(): Tags {
    const path = join(this.#options.path, TAGS);
    try {
      const { bytes } = this.#read(path, stampOf(regular(path, Deno.lstatSync(path))));
      const said = JSON.parse(new TextDecoder().decode(bytes));
      const isTags = isObject(said) &&
        Object.values(said).every((tags) =>
          isObject(tags) && Object.values(tags).every((version) => typeof version === "string")
        );
      if (isTags) return said as Tags; // as it was looked at
      throw broken('wanted {"NAME": {"TAG": "VERSION"}}');
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) this.#leaveOut(TAGS, error);
      return {};
    }
  }

  /** Tells once that a file does not count. */
  #leaveOut(file: string, why: unknown): undefined {
    const all = visible(why instanceof Error ? why.message : String(why), 600);
    const said = all.replace(
      /^Cannot (?:load|use) (?:(?:the module|what ".*?" says of) )?".*?": /,
      "",
    );
    if (this.#told.get(file) === said) return;
    this.#told.set(file, said);
    this.#options.warn(`Cannot serve ${quoted(file)}: ${said}`);
  }

  /** Some modules are read at once, and not all of them: each takes a child. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const lane = this.#lanes.shift() ?? Promise.resolve();
    const done = lane.then(work);
    this.#lanes.push(done.catch(() => {}));
    return done;
  }
}

function regular(path: string, info: Deno.FileInfo): Deno.FileInfo {
  if (info.isFile) return info;
  throw broken(info.isSymlink ? "it is a link" : `${quoted(path)} is no regular file`);
}

function versionOf(inName: string | undefined, said: unknown): string {
  if (inName !== undefined && said !== undefined && said !== inName) {
    throw broken(`its name says version ${quoted(inName)}, and it says ${quoted(String(said))}`);
  }
  const version = inName ?? said ?? "0.0.0";
  // What can be asked for by name.
  return parseFqdn(`x@${version}`).version ?? "";
}

function broken(why: string): PmlError {
  return new PmlError("CONFIG_INVALID", why);
}
