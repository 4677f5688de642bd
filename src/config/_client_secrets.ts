/**
 * Replaces texts that look like keys by `${NAME}`, and remembers where their values are.
 *
 * @module
 */

import { variablesIn } from "../core/folder_variables.ts";
import { withoutUndefined } from "../core/json.ts";
import { infoAt } from "../io/path_info.ts";
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
  /** Whether the variable has a value. */
  readonly isSet: boolean;
  /** The name that the variable would have if no other value had that name. */
  readonly otherValueOf?: string;
}

/** The functions that find keys in texts, and the values of variables. */
export interface SecretFinder {
  /** Returns a text without the keys of known kinds. */
  readonly redact: (text: string) => string;
  readonly get: (name: string) => string | undefined;
}

/** A server, and the place of its definition: a file with the path of keys. */
interface ServerPlace {
  readonly name: string;
  readonly at: string;
}

/** The place of a text in a definition. */
interface SecretPlace {
  /** The name of the variable, header or option that has the text as its value; may be empty. */
  readonly label: string;
  /** The name for the variable that replaces the text. The server's name replaces a leading `*`. */
  readonly keyName: string;
  /** The path of the text in the definition, such as `env.TOKEN`. */
  readonly key: string;
  /** Whether the value is only known as a part of a longer text. */
  readonly isPart?: boolean;
}

/**
 * Matches a reference to a variable. The default value has a maximum length: otherwise a text with
 * many references that do not end would be searched to its end from each of them.
 */
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
  variablesOf(definition: ClientDefinition): readonly NeededVariable[] {
    const { env = {}, args = [], ...rest } = definition;
    // In `args`, the program itself replaces the variables that its `env` defines.
    const own = args.map((arg) =>
      arg.replace(/\$\{(\w+)\}/g, (text, name: string) => Object.hasOwn(env, name) ? "" : text)
    );
    const references = JSON.stringify([rest, own, env]).replace(/\$\{\w+:-/g, "");
    return [...new Set(variablesIn(references))].flatMap((name) => {
      const variable = this.#variables.get(name);
      const isSet = this.#secrets.get(name) !== undefined;
      // An unset name with a lower-case letter counts as text, not as a variable.
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
          const spot = { label: name, keyName: keyNameOf(name, kind), key: `${kind}.${name}` };
          return [name, this.#clean(value, { ...server, ...spot })];
        }),
      );
    // guard: login-import
    return {
      ...definition,
      ...(args && {
        args: args.map((arg, index) => this.#cleanArgument(arg, { args, index, server })),
      }),
      ...(env && { env: all(env, "env") }),
      ...(headers && { headers: all(headers, "headers") }),
      ...(url && {
        url: this.#clean(url, { ...server, label: "", keyName: "*KEY", key: "url" }),
      }),
      ...(typeof oauth?.client_secret === "string" && {
        oauth: {
          ...oauth,
          client_secret: this.#clean(oauth.client_secret, {
            ...server,
            label: "client_secret",
            keyName: "*CLIENT_SECRET",
            key: "oauth.client_secret",
          }),
        },
      }),
    };
  }

  /** Returns whether a text still contains something that looks like a key. */
  containsSecret(text: string): boolean {
    const bare = text.replaceAll(new RegExp(REFERENCE, "g"), "");
    return this.#secrets.redact(bare) !== bare;
  }

  #cleanArgument(
    arg: string,
    { args, index, server }: {
      readonly args: readonly string[];
      readonly index: number;
      readonly server: ServerPlace;
    },
  ): string {
    const key = `args[${index}]`;
    const assignment = /^(-{0,2}[A-Za-z][\w.-]*)(=|:\s*)([^]+)$/.exec(arg);
    const flag = /^--?([A-Za-z][\w-]*)$/.exec(args[index - 1] ?? "")?.[1];
    const spot = (label: string, keyName = label.startsWith("-") ? `*${label}` : label) => ({
      ...server,
      label,
      keyName,
      key,
    });
    const [, name = "", sign, value = ""] = assignment ?? [];
    if (assignment !== null && !value.startsWith("//")) {
      const keyName = sign === "=" ? undefined : keyNameOf(name, "headers");
      return `${name}${sign}${this.#clean(value, spot(name, keyName))}`;
    }
    const label = flag !== undefined && !arg.startsWith("-") ? flag : "";
    return this.#clean(arg, spot(label, label === "" ? "*SECRET" : `*${label}`));
  }

  #clean(value: string, spot: ServerPlace & SecretPlace): string {
    const isNamed = isSecretName(spot.label) && !isCode(spot.label);
    // Code is not changed, because a user could not check code that is partly hidden.
    if (isCode(spot.label) && !isCodeAddress(spot.label)) return value;
    const parts = value.split(REFERENCE);
    const hasNoReference = parts.length === 1;
    return parts.map((part, index) => {
      // Every second part is a reference. Its default value may be a key.
      if (index % 2 === 1) return this.#cleanReference(part, { isNamed, spot });
      const isWhole = hasNoReference && isNamed && !isAddress(part);
      return isWhole ? this.#cleanNamed(part, spot) : this.#cleanUnnamed(part, spot);
    }).join("");
  }

  #cleanReference(text: string, { isNamed, spot }: {
    readonly isNamed: boolean;
    readonly spot: ServerPlace & SecretPlace;
  }): string {
    const [, name = "", otherwise] = /^\$\{(\w+)(?::-([^}]*))?\}$/.exec(text) ?? [];
    if (otherwise === undefined || this.#isHarmless(otherwise, { isNamed, spot })) return text;
    this.#addVariable(name, { value: otherwise, spot });
    return `\${${name}}`;
  }

  #isHarmless(value: string, { isNamed, spot }: {
    readonly isNamed: boolean;
    readonly spot: SecretPlace;
  }): boolean {
    if (isNamed) return isNoSecret(value);
    return this.#secrets.redact(value) === value && (isCode(spot.label) || !isRandom(value));
  }

  /**
   * Replaces a value that has the name of a secret: all of it, except for a scheme such as
   * `Bearer`.
   */
  #cleanNamed(value: string, spot: ServerPlace & SecretPlace): string {
    if (isNoSecret(value)) return value;
    const scheme = SCHEME.exec(value)?.[0] ?? "";
    return `${scheme}${this.#toVariable(value.slice(scheme.length), spot)}`;
  }

  #cleanUnnamed(value: string, spot: ServerPlace & SecretPlace): string {
    const parts = this.#secrets.redact(value).split("[redacted]");
    if (parts.length === 1) {
      return isRandom(value) && !isCode(spot.label) && infoAt(value) === undefined
        ? this.#cleanRandom(value, spot)
        : value;
    }
    const [before = "", after = ""] = parts;
    const hasOneSecret = parts.length === 2 && value.startsWith(before) && value.endsWith(after);
    if (hasOneSecret) {
      const secret = value.slice(before.length, value.length - after.length);
      return `${before}${this.#toVariable(secret, spot)}${after}`;
    }
    return parts.map((text, index) =>
      index === 0
        ? text
        : `${this.#toVariable(`${value}#${index}`, { ...spot, isPart: true })}${text}`
    ).join("");
  }

  #cleanRandom(value: string, spot: ServerPlace & SecretPlace): string {
    return replaceRandom(value, (run) => this.#toVariable(run, spot));
  }

  #toVariable(value: string, spot: ServerPlace & SecretPlace): string {
    const shortName = variableNameFrom(spot.keyName.replace(/^\*-*/, `${spot.name}_`));
    const longName = variableNameFrom(`${spot.name}_${spot.keyName.replace(/^\*-*/, "")}`);
    for (let number = 0;; number++) {
      const name = number === 0 ? shortName : number === 1 ? longName : `${longName}_${number}`;
      if (!this.#isFree(name, value)) continue;
      this.#addVariable(name, {
        value,
        spot,
        otherValueOf: name === shortName ? undefined : shortName,
      });
      return `\${${name}}`;
    }
  }

  #isFree(name: string, value: string): boolean {
    if (this.#values.has(name)) return this.#values.get(name) === value;
    const currentValue = this.#secrets.get(name);
    // A server must not get the key of another server that uses the same name.
    // guard: import-other-key
    if (currentValue !== undefined && currentValue !== value) return false;
    return true;
  }

  #addVariable(name: string, { value, spot, otherValueOf }: {
    readonly value: string;
    readonly spot: ServerPlace & SecretPlace;
    readonly otherValueOf?: string | undefined;
  }): void {
    this.#values.set(name, value);
    if (spot.isPart !== true) this.exact.set(name, value);
    const where = `${spot.at}.${spot.key}`;
    const isSet = this.#secrets.get(name) !== undefined;
    if (this.#variables.has(name)) return;
    this.#variables.set(name, { name, where, isSet, ...withoutUndefined({ otherValueOf }) });
  }
}

function keyNameOf(name: string, kind: "env" | "headers"): string {
  if (kind === "env") return name;
  return /^authorization$/i.test(name) ? "*TOKEN" : `*${name.replace(/^x-/i, "")}`;
}

/**
 * Returns whether a value is certainly not a secret: empty, a switch, a number, or an existing
 * file.
 */
function isNoSecret(value: string): boolean {
  return isTrivial(value) || /^(\/|[A-Za-z]:\\)/.test(value) && pathExists(value);
}
