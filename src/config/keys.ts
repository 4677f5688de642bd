/**
 * The only owner of keys: returns the value of a variable that a definition names, and its source.
 *
 * The environment comes first, then keys outside of PML, then the file of `pml key set`, then
 * `.env` in the root of a workspace whose file is trusted. PML looks up only variables that a
 * definition names, so no server gets other values of `.env`.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError, shownPlace } from "../core/errors.ts";
import type { Folders } from "../core/folder_variables.ts";
import { type JsonObject, quoted } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import { isOwnVariable, isSteering } from "../core/steering.ts";
import { stampAt } from "../io/place.ts";
import { readRegularText } from "../io/regular_file.ts";
import { parseDotenv } from "./dotenv.ts";
import type { Environment } from "./env.ts";
import { type FileVariables, readEnvFile } from "./env_file.ts";
import type { DefinitionTexts } from "../servers/kind.ts";
import { expanded, referencesIn } from "./expand.ts";

/** A value of a variable, and its source. */
export interface Key {
  readonly value: string;
  readonly from: "the environment" | "the keyring" | "a command" | "the key file" | ".env";
}

/** The PML whose keys are looked up. Its methods are called at each look-up. */
export interface KeysHost {
  environment(): Pick<Environment, "get" | "apiKey" | "home">;
  /** Returns the root of the workspace, if its file is trusted. */
  trusted(): string | undefined;
  /** Returns the values of the folder variables. */
  folders?(): Folders;
  /** Returns whether keys are withheld, because PML works for an identity that may not use them. */
  isWithheld?(): boolean;
  /** Registers a secret value. From then on it is removed from every text. */
  register(value: string): void;
  warn(message: string): void;
}

/** The name of the file with the user's key, in the PML home. */
export const KEY_FILE = "api_key";
/** The name of the file with the other keys of the user, in the PML home; written as `.env`. */
export const KEYS_FILE = "keys.env";
/** The name of the file that lists the keys that are stored outside of PML, and their sources. */
export const SOURCES_FILE = "key_sources.json";

/** The maximum size of a file with keys. */
export const MOST_BYTES = 65_536;
/** The characters of a header value without blanks. */
const ONE_WORD = /^[\x21-\x7e]{1,4096}$/;
type Values = ReadonlyMap<string, string>;
/** Keys that the keyring or programs of the user gave. */
type OutsideKeys = ReadonlyMap<string, Key>;

/** The values of a file, as it was at a stamp. */
interface FileOfValues {
  readonly stamp: string | undefined;
  readonly values: Values;
}

const NO_KEYS: OutsideKeys = new Map();
const NO_FILE: FileOfValues = { stamp: undefined, values: new Map() };
const NO_VARIABLES: FileVariables = new Map();

/**
 * The values of a definition with variables replaced, and the files that they came from.
 */
interface FilledValues {
  values?: DefinitionTexts | undefined;
  files?: readonly object[] | undefined;
  /** Whether keys were withheld. */
  isWithheld?: boolean;
}

/** Looks up the values of variables. */
export class Keys {
  readonly #host: KeysHost;
  readonly #filled = memoized((_: DefinitionTexts): FilledValues => ({}));
  readonly #files = new Map<string, FileOfValues>();
  /** The `envFile` of each server. A file with the same path that is read as `.env` has no checks. */
  readonly #envFiles = new Map<string, FileOfValues>();
  #outside: OutsideKeys = NO_KEYS;
  #outsideStamp: string | undefined;
  #lookOutside: (() => Promise<OutsideKeys>) | undefined;
  #looking: Promise<void> | undefined;

  /** Takes the host; reads nothing yet. */
  constructor(host: KeysHost) {
    this.#host = host;
  }

  /**
   * Returns the values of a definition with variables replaced. It is the same object as long as no
   * value changes.
   */
  filled<T extends DefinitionTexts>(definition: T, server: string): T {
    const filledValues = this.#filled(definition);
    // Keys of the environment need no file.
    const now = filledValues.files && this.#sources();
    const isWithheld = this.#host.isWithheld?.() === true;
    const isSame = filledValues.isWithheld === isWithheld &&
      (filledValues.files?.every((one, at) => one === now?.[at]) ?? true);
    if (filledValues.values !== undefined && isSame) return filledValues.values as T; // the values of this object, so of its type
    const folders = this.#host.folders?.();
    const values = expanded(definition, { get: (name) => this.get(name), server, folders });
    const isPlain = referencesIn(definition).every(({ name }) =>
      this.find(name)?.from === "the environment"
    );
    // Values from the environment alone cannot change, so they need not be looked up again.
    filledValues.files = isPlain ? undefined : now ?? this.#sources();
    filledValues.isWithheld = isWithheld;
    if (JSON.stringify(filledValues.values) !== JSON.stringify(values)) {
      filledValues.values = values;
    }
    return filledValues.values as T; // see above
  }

  /**
   * Returns a function that makes a server from a definition, its filled values and what `moreOf`
   * returns. It returns the same server for the same definition, as long as no value in it changes
   * and `moreOf` returns the same object.
   */
  maker<
    D extends { readonly name: string },
    G extends DefinitionTexts,
    M extends object,
    S extends object,
  >(
    givenOf: (own: D) => G,
    make: (own: D, filled: G, more: M) => S,
    moreOf: (own: D) => M,
  ): (own: D) => S {
    const parts = memoized((own: D) => ({
      given: givenOf(own),
      of: memoized((filled: G) => memoized((more: M) => make(own, filled, more))),
    }));
    return (own) => {
      const { given, of } = parts(own);
      const filled = this.filled(given, own.name);
      return of(filled)(moreOf(own));
    };
  }

  /**
   * Returns the arguments that a definition fixes for a tool, as they are sent and as they are
   * shown.
   */
  async fixed(
    written: JsonObject,
    of: Pick<FixedOptions, "server" | "isOfUser">,
  ): Promise<FixedValues> {
    const { fixedArguments } = await import("./fixed_arguments.ts");
    return fixedArguments(written, {
      ...of,
      keys: this,
      register: (value) => this.#host.register(value),
    });
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
   * Returns the value of a variable that is no key, such as a host. It is not removed from texts.
   * The workspace's `.env` is left out: the question about a file that is not trusted shows the
   * value.
   */
  plain(name: string): string | undefined {
    return this.#lookUp(name)?.value;
  }

  #lookUp(name: string): Key | undefined {
    if (isOwnVariable(name)) return undefined;
    const { value, from = "the environment" } = this.#outsideNow().get(name) ?? {};
    return keyOf(this.#host.environment().get(name), "the environment") ??
      (isSteering(name)
        ? undefined
        : keyOf(value, from) ?? keyOf(this.storedValues().get(name), "the key file"));
  }

  /** The folder with the files of keys. */
  get home(): string {
    return this.#host.environment().home;
  }

  /** Takes the function that looks up keys outside of PML. */
  useOutside(look: () => Promise<OutsideKeys>): void {
    this.#lookOutside = look;
  }

  /** Resolves when the keys outside of PML were looked up; until then they count as not set. */
  async looked(): Promise<void> {
    this.#looking ??= this.#refreshed(stampAt(join(this.home, SOURCES_FILE)));
    // Begins another look if the stored keys changed since the last one.
    this.#outsideNow();
    await this.#looking;
  }

  #outsideNow(): OutsideKeys {
    const stamp = this.#looking && stampAt(join(this.home, SOURCES_FILE));
    if (stamp !== this.#outsideStamp) this.#looking = this.#refreshed(stamp);
    return this.#outside;
  }

  async #refreshed(stamp: string | undefined): Promise<void> {
    this.#outsideStamp = stamp;
    const outside = stamp === undefined ? undefined : await this.#lookOutside?.();
    // Another look may have begun meanwhile.
    if (stamp === this.#outsideStamp) this.#outside = outside ?? NO_KEYS;
  }

  /** Returns the keys that `pml key set` keeps, by their names. */
  storedValues(): Values {
    return this.#valuesIn(join(this.home, KEYS_FILE));
  }

  /** Returns the key of the user's cloud account. Throws CONFIG_INVALID if it is not one word. */
  cloud(): Key | undefined {
    const { apiKey, home } = this.#host.environment();
    const path = join(home, KEY_FILE);
    const key = this.#keyOf(apiKey, "the environment") ??
      this.#keyOf(readPlain(path)?.trim(), "the key file");
    if (key === undefined || ONE_WORD.test(key.value)) return key;
    const name = key.from === "the key file" ? path : "PML_API_KEY";
    throw new PmlError("CONFIG_INVALID", `Cannot use ${name}: it contains no valid key`, {
      hint: "A key is one word; copy all of it",
    });
  }

  /**
   * Returns the variables of a server's file: the same map as long as the file is unchanged; none
   * without a path.
   */
  variablesOf(path: string | undefined, server: string): FileVariables {
    if (path === undefined || this.#host.isWithheld?.()) return NO_VARIABLES;
    const stamp = stampAt(path);
    const file = this.#envFiles.get(path);
    if (file !== undefined && stamp !== undefined && stamp === file.stamp) return file.values;
    const { values, odd } = readEnvFile(path, server);
    this.#warnOf(odd.map((line) => shownPlace(path, { line })), "it is not NAME=value");
    for (const value of values.values()) this.#host.register(value);
    this.#envFiles.set(path, { stamp, values });
    return values;
  }

  #sources(): readonly object[] {
    return [this.#outsideNow(), this.storedValues(), this.#dotenv()];
  }

  #dotenv(): Values {
    const root = this.#host.trusted();
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
    const { values, odd } = parseDotenv(text ?? "");
    if (text === undefined) this.#warnOf([path], "it is no plain file of at most 64 KB");
    this.#warnOf(odd.map((line) => shownPlace(path, { line })), "it is not NAME=value");
    return values;
  }

  #warnOf(places: readonly string[], why: string): void {
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

/** Reads a file; undefined if it is a link, no plain file, or too long. */
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

/** The options of `fixedArguments`. */
export interface FixedOptions {
  /** The name of the server. */
  readonly server: string;
  readonly keys: Pick<Keys, "filled">;
  /** Whether the user's own file fixes the arguments. */
  readonly isOfUser: boolean;
  /** Registers a secret value. From then on it is removed from logs and the journal. */
  readonly register: (value: string) => void;
}
