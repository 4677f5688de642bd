/**
 * Replaces texts that look like keys by `${NAME}`, and remembers where their values are.
 *
 * @module
 */

import { variablesIn } from "../core/folder_variables.ts";
import { infoAt } from "../io/place.ts";
import type { ClientDefinition } from "./_client_entry.ts";
import { pathExists } from "./workspace.ts";
import {
  isAddress,
  isCode,
  isCodeAddress,
  isRandom,
  isSecretName,
  isTrivial,
  replaceRandom,
  variableNameFrom,
} from "../core/secret_words.ts";

/** A variable that the user has to set, and the place of its value now. */
export interface NeededVariable {
  readonly name: string;
  /** The place of the value; undefined if no file contains it. */
  readonly where: string | undefined;
  /** Whether the environment of this process has the variable. */
  readonly isSet: boolean;
}

/** The functions that find keys in texts, and variables in the environment. */
export interface SecretFinder {
  /** Returns a text without the keys of known kinds. */
  readonly redact: (text: string) => string;
  readonly get: (name: string) => string | undefined;
}

/** A server, and its place in a file. */
interface ServerPlace {
  readonly name: string;
  readonly at: string;
}

/** The place of a text: its name, the name for a variable in its place, and its key. */
interface SecretPlace {
  readonly called: string;
  readonly keyName: string;
  readonly key: string;
  /** Whether the value is only known as a part of a longer text. */
  readonly isPart?: boolean;
}

/** Bounded, so that an unclosed default is not searched again at each `$`. */
const REFERENCE = /(\$\{\w+(?::-[^}]{0,2000})?\})/;
const SCHEME = /^(Bearer|Basic|Token|ApiKey)\s+/i;

/** The variables of one import. Each variable has one value, and each known value one variable. */
export class ImportVariables {
  readonly #secrets: SecretFinder;
  readonly #values = new Map<string, string | undefined>();
  readonly #variables = new Map<string, NeededVariable>();
  /** The exactly known values of variables. They are never shown. */
  readonly exact: Map<string, string> = new Map();

  /** Starts without variables. */
  constructor(secrets: SecretFinder) {
    this.#secrets = secrets;
  }

  /** Reserves the names that a definition already uses, so that no key gets one of them. */
  reserve(definition: ClientDefinition): void {
    for (const name of variablesIn(JSON.stringify(definition))) {
      if (!this.#values.has(name)) this.#values.set(name, this.#secrets.get(name));
    }
  }

  /** Returns the variables that a definition needs. */
  of(definition: ClientDefinition): readonly NeededVariable[] {
    const { env = {}, args = [], ...rest } = definition;
    // The program itself replaces what its own variables define.
    const own = args.map((arg) =>
      arg.replace(/\$\{(\w+)\}/g, (text, name: string) => Object.hasOwn(env, name) ? "" : text)
    );
    const references = JSON.stringify([rest, own, env]).replace(/\$\{\w+:-/g, "");
    return [...new Set(variablesIn(references))].flatMap((name) => {
      const variable = this.#variables.get(name);
      const isSet = this.#secrets.get(name) !== undefined;
      // An unset name with a lower-case letter is text.
      if (variable === undefined && !isSet && /[a-z]/.test(name)) return [];
      return [variable ?? { name, where: undefined, isSet }];
    });
  }

  /** Returns the definition with its keys replaced by variables. */
  withoutSecrets(definition: ClientDefinition, server: ServerPlace): ClientDefinition {
    const { args, env, headers, url, oauth } = definition;
    const all = (values: Readonly<Record<string, string>>, kind: "env" | "headers") =>
      Object.fromEntries(
        Object.entries(values).map(([name, value]) => {
          const spot = { called: name, keyName: keyNameOf(name, kind), key: `${kind}.${name}` };
          return [name, this.#clean(value, { ...server, ...spot })];
        }),
      );
    // guard: login-import
    return {
      ...definition,
      ...(args && { args: args.map((arg, at) => this.#argument(arg, { args, at, server })) }),
      ...(env && { env: all(env, "env") }),
      ...(headers && { headers: all(headers, "headers") }),
      ...(url && {
        url: this.#clean(url, { ...server, called: "", keyName: "*KEY", key: "url" }),
      }),
      ...(typeof oauth?.client_secret === "string" && {
        oauth: {
          ...oauth,
          client_secret: this.#clean(oauth.client_secret, {
            ...server,
            called: "client_secret",
            keyName: "*CLIENT_SECRET",
            key: "oauth.client_secret",
          }),
        },
      }),
    };
  }

  /** Returns whether a text still contains something that looks like a key. */
  holdsSecret(text: string): boolean {
    const bare = text.replaceAll(new RegExp(REFERENCE, "g"), "");
    return this.#secrets.redact(bare) !== bare;
  }

  #argument(
    arg: string,
    { args, at, server }: {
      readonly args: readonly string[];
      readonly at: number;
      readonly server: ServerPlace;
    },
  ): string {
    const key = `args[${at}]`;
    const own = /^(-{0,2}[A-Za-z][\w.-]*)(=|:\s*)([^]+)$/.exec(arg);
    const flag = /^--?([A-Za-z][\w-]*)$/.exec(args[at - 1] ?? "")?.[1];
    const spot = (called: string, keyName = called.startsWith("-") ? `*${called}` : called) => ({
      ...server,
      called,
      keyName,
      key,
    });
    if (own !== null && !own[3]?.startsWith("//")) {
      const [, name = "", sign, value = ""] = own;
      const keyName = sign === "=" ? undefined : keyNameOf(name, "headers");
      return `${name}${sign}${this.#clean(value, spot(name, keyName))}`;
    }
    const called = flag !== undefined && !arg.startsWith("-") ? flag : "";
    return this.#clean(arg, spot(called, called === "" ? "*SECRET" : `*${called}`));
  }

  #clean(value: string, spot: ServerPlace & SecretPlace): string {
    const isNamed = isSecretName(spot.called) && !isCode(spot.called);
    // A user could not check code that is partly hidden.
    if (isCode(spot.called) && !isCodeAddress(spot.called)) return value;
    const parts = value.split(REFERENCE);
    const plain = parts.length === 1;
    return parts.map((part, at) => {
      // Every second part is a reference. Its default value may be a key.
      if (at % 2 === 1) return this.#reference(part, { isNamed, spot });
      const isWhole = plain && isNamed && !isAddress(part);
      return isWhole ? this.#whole(part, spot) : this.#kinds(part, spot);
    }).join("");
  }

  #reference(text: string, { isNamed, spot }: {
    readonly isNamed: boolean;
    readonly spot: ServerPlace & SecretPlace;
  }): string {
    const [, name = "", otherwise] = /^\$\{(\w+)(?::-([^}]*))?\}$/.exec(text) ?? [];
    if (otherwise === undefined || this.#isHarmless(otherwise, { isNamed, spot })) return text;
    this.#want(name, { value: otherwise, spot });
    return `\${${name}}`;
  }

  #isHarmless(value: string, { isNamed, spot }: {
    readonly isNamed: boolean;
    readonly spot: SecretPlace;
  }): boolean {
    if (isNamed) return isNoSecret(value);
    return this.#secrets.redact(value) === value && (isCode(spot.called) || !isRandom(value));
  }

  /**
   * A value whose name is that of a secret is secret as a whole, except for a scheme such as
   * `Bearer`.
   */
  #whole(value: string, spot: ServerPlace & SecretPlace): string {
    if (isNoSecret(value)) return value;
    const scheme = SCHEME.exec(value)?.[0] ?? "";
    return `${scheme}${this.#take(value.slice(scheme.length), spot)}`;
  }

  #kinds(value: string, spot: ServerPlace & SecretPlace): string {
    const parts = this.#secrets.redact(value).split("[redacted]");
    if (parts.length === 1) {
      return isRandom(value) && !isCode(spot.called) && infoAt(value) === undefined
        ? this.#random(value, spot)
        : value;
    }
    const [before = "", after = ""] = parts;
    const isOne = parts.length === 2 && value.startsWith(before) && value.endsWith(after);
    if (isOne) {
      const secret = value.slice(before.length, value.length - after.length);
      return `${before}${this.#take(secret, spot)}${after}`;
    }
    return parts.map((text, at) =>
      at === 0 ? text : `${this.#take(`${value}#${at}`, { ...spot, isPart: true })}${text}`
    ).join("");
  }

  #random(value: string, spot: ServerPlace & SecretPlace): string {
    return replaceRandom(value, (run) => this.#take(run, spot));
  }

  #take(value: string, spot: ServerPlace & SecretPlace): string {
    const own = variableNameFrom(spot.keyName.replace(/^\*-*/, `${spot.name}_`));
    const full = variableNameFrom(`${spot.name}_${spot.keyName.replace(/^\*-*/, "")}`);
    for (let number = 0;; number++) {
      const name = number === 0 ? own : number === 1 ? full : `${full}_${number}`;
      if (!this.#isFree(name, value)) continue;
      this.#want(name, { value, spot });
      return `\${${name}}`;
    }
  }

  #isFree(name: string, value: string): boolean {
    if (this.#values.has(name)) return this.#values.get(name) === value;
    const set = this.#secrets.get(name);
    return set === undefined || set === value;
  }

  #want(name: string, { value, spot }: {
    readonly value: string;
    readonly spot: ServerPlace & SecretPlace;
  }): void {
    this.#values.set(name, value);
    if (spot.isPart !== true) this.exact.set(name, value);
    const where = `${spot.at}.${spot.key}`;
    const isSet = this.#secrets.get(name) === value;
    if (!this.#variables.has(name)) this.#variables.set(name, { name, where, isSet });
  }
}

function keyNameOf(name: string, kind: "env" | "headers"): string {
  if (kind === "env") return name;
  return /^authorization$/i.test(name) ? "*TOKEN" : `*${name.replace(/^x-/i, "")}`;
}

/**
 * Returns whether a value is certainly no secret: empty, a switch, a number, or an existing file.
 */
function isNoSecret(value: string): boolean {
  return isTrivial(value) || /^(\/|[A-Za-z]:\\)/.test(value) && pathExists(value);
}
