/**
 * The only owner of keys: returns the value of a variable that a definition names, and its source.
 *
 * The environment comes first, then the keyring and the programs of the user, then the file of
 * `pml key set`, then `.env` in the root of a workspace whose file is trusted. PML looks up only
 * variables that a definition names, so no server gets other values of `.env`.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError, shownPlace } from "../core/errors.ts";
import type { Folders } from "../core/folder_variables.ts";
import { type JsonObject, quoted } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import { isOwnVariable, isSteering } from "../core/steering.ts";
import { stampAt } from "../io/path_info.ts";
import { readRegularText } from "../io/regular_file.ts";
import { parseDotenv } from "./dotenv.ts";
import type { Environment } from "./env.ts";
import { type FileVariables, readEnvFile } from "./env_file.ts";
import type { DefinitionTexts } from "../servers/kind.ts";
import { expand, referencesIn } from "./expand.ts";

/** A value of a variable, and its source. */
export interface Key {
  readonly value: string;
  readonly from: "the environment" | "the keyring" | "a command" | "the key file" | ".env";
}

/** The PML whose keys are looked up. Each lookup calls its methods. */
export interface KeysHost {
  environment(): Pick<Environment, "get" | "apiKey" | "home">;
  /** Returns the root of the workspace, if its file is trusted. */
  trustedRoot(): string | undefined;
  /** Returns the values of the folder variables. */
  folders?(): Folders;
  /**
   * Returns whether keys are withheld, because PML works for an identity that may not use them.
   * Then `environment()` has no variables and a home without keys, and `trustedRoot()` returns
   * undefined.
   */
  isWithheld?(): boolean;
  /** Registers a secret value, so that it is removed from logs and other texts. */
  register(value: string): void;
  warn(message: string): void;
}

/** The name of the file with the key of the user's cloud account, in the PML home. */
export const CLOUD_KEY_FILE = "api_key";
/** The name of the file with the keys of `pml key set`, in the PML home; written as `.env`. */
export const STORED_KEYS_FILE = "keys.env";
/** The name of the file that lists the keys outside of PML, and the source of each. */
export const SOURCES_FILE = "key_sources.json";

/** The maximum size of a file with keys, in bytes. */
export const MOST_BYTES = 65_536;
/** Matches a header value without spaces. */
const ONE_WORD = /^[\x21-\x7e]{1,4096}$/;
type Values = ReadonlyMap<string, string>;
/** Keys outside of PML: from the keyring or from programs of the user. */
type OutsideKeys = ReadonlyMap<string, Key>;

/** The values of a file, as it was at a stamp. */
interface FileOfValues {
  readonly stamp: string | undefined;
  readonly values: Values;
}

const NO_KEYS: OutsideKeys = new Map();
const NO_FILE: FileOfValues = { stamp: undefined, values: new Map() };
const NO_VARIABLES: FileVariables = new Map();

/** The values of a definition with variables replaced, and the state in which they were made. */
interface FilledValues {
  values?: DefinitionTexts | undefined;
  /**
   * The result of `#sources()` for these values. Undefined before the first fill, and if all values
   * came from the environment.
   */
  sources?: readonly object[] | undefined;
  /** Whether keys were withheld. */
  isWithheld?: boolean;
}

/** Looks up the values of variables. */
export class Keys {
  readonly #host: KeysHost;
  readonly #filled = memoized((_: DefinitionTexts): FilledValues => ({}));
  readonly #files = new Map<string, FileOfValues>();
  /**
   * The values of each `envFile`. A server gets all of its variables, so `readEnvFile()` throws if
   * one changes how programs run. `#files` may have such variables, because `find()` ignores them.
   */
  readonly #envFiles = new Map<string, FileOfValues>();
  #outsideKeys: OutsideKeys = NO_KEYS;
  /** The stamp of `SOURCES_FILE` when the last lookup began. */
  #outsideStamp: string | undefined;
  #lookUpOutside: (() => Promise<OutsideKeys>) | undefined;
  /** The last lookup; undefined before the first call of `waitForOutside()`. */
  #outsideLookup: Promise<void> | undefined;

  /** Takes the host; reads nothing yet. */
  constructor(host: KeysHost) {
    this.#host = host;
  }

  /**
   * Returns the values of a definition with variables replaced. It is the same object as long as no
   * value changes.
   */
  fill<T extends DefinitionTexts>(definition: T, server: string): T {
    const filledValues = this.#filled(definition);
    // Without `sources`, all values came from the environment, so the sources need not be read.
    const sources = filledValues.sources && this.#sources();
    const isWithheld = this.#host.isWithheld?.() === true;
    const isSame = filledValues.isWithheld === isWithheld &&
      (filledValues.sources?.every((source, index) => source === sources?.[index]) ?? true);
    if (filledValues.values !== undefined && isSame) return filledValues.values as T; // they were made from this definition
    const folders = this.#host.folders?.();
    const values = expand(definition, { get: (name) => this.get(name), server, folders });
    const isPlain = referencesIn(definition).every(({ name }) =>
      this.find(name)?.from === "the environment"
    );
    // Values from the environment alone cannot change, so they need not be looked up again.
    filledValues.sources = isPlain ? undefined : sources ?? this.#sources();
    filledValues.isWithheld = isWithheld;
    if (JSON.stringify(filledValues.values) !== JSON.stringify(values)) {
      filledValues.values = values;
    }
    return filledValues.values as T; // see above
  }

  /**
   * Returns a memoized function that calls `make` with a definition, the filled `textsOf` the
   * definition, and the result of `moreOf`. The function calls `make` again only for another
   * definition, after a value in the texts changed, or if `moreOf` returns another object.
   */
  maker<
    Definition extends { readonly name: string },
    Texts extends DefinitionTexts,
    More extends object,
    Made extends object,
  >(
    textsOf: (definition: Definition) => Texts,
    make: (definition: Definition, filled: Texts, more: More) => Made,
    moreOf: (definition: Definition) => More,
  ): (definition: Definition) => Made {
    const parts = memoized((definition: Definition) => ({
      texts: textsOf(definition),
      makeFor: memoized((filled: Texts) =>
        memoized((more: More) => make(definition, filled, more))
      ),
    }));
    return (definition) => {
      const { texts, makeFor } = parts(definition);
      const filled = this.fill(texts, definition.name);
      return makeFor(filled)(moreOf(definition));
    };
  }

  /**
   * Returns the arguments that a definition fixes for a tool, as they are sent and as they are
   * shown.
   */
  async fillArguments(
    written: JsonObject,
    { server, isOfUser }: { readonly server: string; readonly isOfUser: boolean },
  ): Promise<FixedValues> {
    const { argumentTexts, sentArguments, shownArguments } = await import("./fixed_arguments.ts");
    const filled = this.fill({ arguments: argumentTexts(written) }, server).arguments;
    return {
      sent: sentArguments(written, filled),
      shown: shownArguments(written, isOfUser, (value) => this.#host.register(value)),
    };
  }

  /** Returns the value of a variable that a server's definition names. */
  get(name: string): string | undefined {
    return this.find(name)?.value;
  }

  /**
   * Returns the value of a variable and its source. A value that is empty or still contains `${`
   * counts as unset.
   */
  find(name: string): Key | undefined {
    const key = this.#lookUp(name) ??
      (isOwnVariable(name) || isSteering(name)
        ? undefined
        : keyOf(this.#dotenv().get(name), ".env"));
    if (key !== undefined) this.#host.register(key.value);
    return key;
  }

  /**
   * Returns the value of a variable that is not a key, such as a host. The value is not removed
   * from texts. Ignores the workspace's `.env`: PML reads it only after the user trusts the
   * workspace file, so the value could differ from the one in the question about this file.
   */
  plain(name: string): string | undefined {
    return this.#lookUp(name)?.value;
  }

  #lookUp(name: string): Key | undefined {
    if (isOwnVariable(name)) return undefined;
    const { value, from = "the environment" } = this.#currentOutsideKeys().get(name) ?? {};
    return keyOf(this.#host.environment().get(name), "the environment") ??
      (isSteering(name)
        ? undefined
        : keyOf(value, from) ?? keyOf(this.storedValues().get(name), "the key file"));
  }

  /** The folder with the files of keys. */
  get home(): string {
    return this.#host.environment().home;
  }

  /** Sets the function that looks up keys outside of PML. */
  useOutside(look: () => Promise<OutsideKeys>): void {
    this.#lookUpOutside = look;
  }

  /** Waits until the keys outside of PML are looked up. Before that, they count as not set. */
  async waitForOutside(): Promise<void> {
    this.#outsideLookup ??= this.#refreshOutside(stampAt(join(this.home, SOURCES_FILE)));
    // Begins another lookup if the list of sources changed since the last one.
    this.#currentOutsideKeys();
    await this.#outsideLookup;
  }

  /**
   * Returns the keys of the last finished lookup. Begins another one if the list of sources
   * changed, but none before the first call of `waitForOutside()`.
   */
  #currentOutsideKeys(): OutsideKeys {
    const stamp = this.#outsideLookup && stampAt(join(this.home, SOURCES_FILE));
    if (stamp !== this.#outsideStamp) this.#outsideLookup = this.#refreshOutside(stamp);
    return this.#outsideKeys;
  }

  async #refreshOutside(stamp: string | undefined): Promise<void> {
    this.#outsideStamp = stamp;
    const keys = stamp === undefined ? undefined : await this.#lookUpOutside?.();
    // Another lookup may have begun meanwhile.
    if (stamp === this.#outsideStamp) this.#outsideKeys = keys ?? NO_KEYS;
  }

  /** Returns the keys that `pml key set` keeps, by their names. */
  storedValues(): Values {
    return this.#valuesIn(join(this.home, STORED_KEYS_FILE));
  }

  /** Returns the key of the user's cloud account. Throws CONFIG_INVALID if it is not one word. */
  cloud(): Key | undefined {
    const { apiKey, home } = this.#host.environment();
    const path = join(home, CLOUD_KEY_FILE);
    const key = this.#keyOf(apiKey, "the environment") ??
      this.#keyOf(readPlain(path)?.trim(), "the key file");
    if (key === undefined || ONE_WORD.test(key.value)) return key;
    const name = key.from === "the key file" ? path : "PML_API_KEY";
    throw new PmlError("CONFIG_INVALID", `Cannot use ${name}: it contains no valid key`, {
      hint: "A key is one word; copy all of it",
    });
  }

  /**
   * Returns the variables of a server's `envFile`: the same map as long as the file is unchanged;
   * an empty map without a path, or if keys are withheld.
   */
  variablesOf(path: string | undefined, server: string): FileVariables {
    if (path === undefined || this.#host.isWithheld?.()) return NO_VARIABLES;
    const stamp = stampAt(path);
    const file = this.#envFiles.get(path);
    if (file !== undefined && stamp !== undefined && stamp === file.stamp) return file.values;
    const { values, invalid } = readEnvFile(path, server);
    this.#warnAbout(invalid.map((line) => shownPlace(path, { line })), "it is not NAME=value");
    for (const value of values.values()) this.#host.register(value);
    this.#envFiles.set(path, { stamp, values });
    return values;
  }

  /** Returns the keys of each source other than the environment: the same maps until one changes. */
  #sources(): readonly object[] {
    return [this.#currentOutsideKeys(), this.storedValues(), this.#dotenv()];
  }

  #dotenv(): Values {
    const root = this.#host.trustedRoot();
    return root === undefined ? NO_FILE.values : this.#valuesIn(join(root, ".env"));
  }

  /** Returns the values of a file: the same map as long as the file is unchanged. */
  #valuesIn(path: string): Values {
    const stamp = stampAt(path);
    const file = this.#files.get(path) ?? NO_FILE;
    if (stamp === file.stamp) return file.values;
    const values = stamp === undefined ? NO_FILE.values : this.#read(path);
    this.#files.set(path, { stamp, values });
    return values;
  }

  #read(path: string): Values {
    const text = readPlain(path);
    const { values, invalid } = parseDotenv(text ?? "");
    if (text === undefined) this.#warnAbout([path], "it is not a plain file of at most 64 KB");
    this.#warnAbout(invalid.map((line) => shownPlace(path, { line })), "it is not NAME=value");
    return values;
  }

  #warnAbout(places: readonly string[], why: string): void {
    const list = places.slice(0, 5).map((place) => quoted(place, 200));
    if (list.length > 0) this.#host.warn(`Cannot read ${list.join(", ")}: ${why}`);
  }

  #keyOf(value: string | undefined, from: Key["from"]): Key | undefined {
    const key = keyOf(value, from);
    if (key !== undefined) this.#host.register(key.value);
    return key;
  }
}

/** Returns a value with its source; undefined if it is empty or still contains `${`. */
function keyOf(value: string | undefined, from: Key["from"]): Key | undefined {
  const isUnset = value === undefined || value.trim() === "" || value.includes("${");
  return isUnset ? undefined : { value, from };
}

/** Reads a file; undefined if it is a link, not a plain file, or too long. */
function readPlain(path: string): string | undefined {
  try {
    return readRegularText(path, { most: MOST_BYTES });
  } catch {
    // A file that cannot be opened contains no key.
    return undefined;
  }
}

/** The fixed arguments of a tool, as they are sent and as they are shown. */
export interface FixedValues {
  /** With the values of the variables. */
  readonly sent: JsonObject;
  /**
   * With the names of the variables. Values of the user's own file that look like secrets are
   * redacted; those of a workspace file are shown in full.
   */
  readonly shown: JsonObject;
}
