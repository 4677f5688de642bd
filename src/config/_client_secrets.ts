/**
 * Puts `${NAME}` in the place of what looks like a key, and knows where its value stands.
 *
 * @module
 */

import type { ClientDefinition } from "./_client_entry.ts";
import {
  isCode,
  isCodeAddress,
  isNoSecret,
  isRandom,
  isSecretName,
  variableName,
} from "./_secret_words.ts";
import { exists } from "./workspace.ts";

/** A variable that the person has to set, and where its value is found now. */
export interface Wanted {
  readonly name: string;
  /** Nothing where no file holds it. */
  readonly where: string | undefined;
  /** Whether the environment of this PML has it. */
  readonly isSet: boolean;
}

/** What tells keys from other texts, and what is in the environment. */
export interface Known {
  /** Takes out of a text what looks like a key of a known kind. */
  readonly redact: (text: string) => string;
  readonly get: (name: string) => string | undefined;
}

/** A server, and where it stands. */
interface Standing {
  readonly name: string;
  readonly at: string;
}

/** A place of a text: what it is called, and the name that a variable for it would have. */
interface Spot {
  readonly called: string;
  readonly wanted: string;
  readonly key: string;
}

const REFERENCE = /(\$\{\w+(?::-[^}]*)?\})/;
const SCHEME = /^(Bearer|Basic|Token|ApiKey)\s+/i;

/** The variables of one import: each has one value, and each value that is known one name. */
export class Variables {
  readonly #known: Known;
  readonly #values = new Map<string, string | undefined>();
  readonly #wanted = new Map<string, Wanted>();

  /** Starts with none. */
  constructor(known: Known) {
    this.#known = known;
  }

  /** Keeps the names that a definition uses already, so that no key takes one of them. */
  reserve(definition: ClientDefinition): void {
    for (const [, name = ""] of JSON.stringify(definition).matchAll(/\$\{(\w+)/g)) {
      if (!this.#values.has(name)) this.#values.set(name, this.#known.get(name));
    }
  }

  /** Gives what has to be set for a definition. */
  of(definition: ClientDefinition): readonly Wanted[] {
    const names = [...JSON.stringify(definition).matchAll(/\$\{(\w+)(?!\w*:-)/g)];
    return [...new Set(names.map(([, name = ""]) => name))].map((name) =>
      this.#wanted.get(name) ??
        { name, where: undefined, isSet: this.#known.get(name) !== undefined }
    );
  }

  /** Gives the definition without the keys in it. */
  withoutSecrets(definition: ClientDefinition, server: Standing): ClientDefinition {
    const { args, env, headers, url } = definition;
    const all = (values: Readonly<Record<string, string>>, kind: "env" | "headers") =>
      Object.fromEntries(
        Object.entries(values).map(([name, value]) => {
          const spot = { called: name, wanted: wantedName(name, kind), key: `${kind}.${name}` };
          return [name, this.#clean(value, { ...server, ...spot })];
        }),
      );
    return {
      ...definition,
      ...(args && { args: args.map((arg, at) => this.#argument(arg, { args, at, server })) }),
      ...(env && { env: all(env, "env") }),
      ...(headers && { headers: all(headers, "headers") }),
      ...(url && {
        url: this.#clean(url, { ...server, called: "", wanted: "*KEY", key: "url" }),
      }),
    };
  }

  /** Tells whether something that looks like a key is left in a text. */
  holdsSecret(text: string): boolean {
    const bare = text.replaceAll(new RegExp(REFERENCE, "g"), "");
    return this.#known.redact(bare) !== bare;
  }

  #argument(
    arg: string,
    { args, at, server }: {
      readonly args: readonly string[];
      readonly at: number;
      readonly server: Standing;
    },
  ): string {
    const key = `args[${at}]`;
    const own = /^(-{0,2}[A-Za-z][\w.-]*)(=|:\s*)([^]+)$/.exec(arg);
    const flag = /^--?([A-Za-z][\w-]*)$/.exec(args[at - 1] ?? "")?.[1];
    const spot = (called: string, wanted = called.startsWith("-") ? `*${called}` : called) => ({
      ...server,
      called,
      wanted,
      key,
    });
    if (own !== null && !own[3]?.startsWith("//")) {
      const [, name = "", sign, value = ""] = own;
      const wanted = sign === "=" ? undefined : wantedName(name, "headers");
      return `${name}${sign}${this.#clean(value, spot(name, wanted))}`;
    }
    const called = flag !== undefined && !arg.startsWith("-") ? flag : "";
    return this.#clean(arg, spot(called, called === "" ? "*SECRET" : `*${called}`));
  }

  #clean(value: string, spot: Standing & Spot): string {
    const isNamed = isSecretName(spot.called) && !isCode(spot.called);
    // Half of a code would tell nobody what it does.
    if (isCode(spot.called) && !isCodeAddress(spot.called)) return value;
    const parts = value.split(REFERENCE);
    const plain = parts.length === 1;
    return parts.map((part, at) => {
      // Every second part is a reference, whose default may be a key.
      if (at % 2 === 1) return this.#reference(part, { isNamed, spot });
      return plain && isNamed ? this.#whole(part, spot) : this.#kinds(part, spot);
    }).join("");
  }

  #reference(text: string, { isNamed, spot }: {
    readonly isNamed: boolean;
    readonly spot: Standing & Spot;
  }): string {
    const [, name = "", otherwise] = /^\$\{(\w+)(?::-([^}]*))?\}$/.exec(text) ?? [];
    if (otherwise === undefined || this.#isHarmless(otherwise, { isNamed, spot })) return text;
    this.#want(name, { value: otherwise, spot });
    return `\${${name}}`;
  }

  #isHarmless(value: string, { isNamed, spot }: {
    readonly isNamed: boolean;
    readonly spot: Spot;
  }): boolean {
    if (isNamed) return isNoSecret(value);
    return this.#known.redact(value) === value && (isCode(spot.called) || !isRandom(value));
  }

  /** What has the name of a secret is one, but for the scheme before it. */
  #whole(value: string, spot: Standing & Spot): string {
    if (isNoSecret(value)) return value;
    const scheme = SCHEME.exec(value)?.[0] ?? "";
    return `${scheme}${this.#take(value.slice(scheme.length), spot)}`;
  }

  #kinds(value: string, spot: Standing & Spot): string {
    const kept = this.#known.redact(value).split("[redacted]");
    if (kept.length === 1) {
      return isRandom(value) && !isCode(spot.called) && !exists(value)
        ? this.#random(value, spot)
        : value;
    }
    const isAll = kept.length === 2 && kept.join("") === "";
    return kept.map((text, at) =>
      at === 0 ? text : `${this.#take(isAll ? value : `${value}#${at}`, spot)}${text}`
    ).join("");
  }

  #random(value: string, spot: Standing & Spot): string {
    return value.replace(/[^\s:@?&=,;]+/g, (run) => isRandom(run) ? this.#take(run, spot) : run);
  }

  #take(value: string, spot: Standing & Spot): string {
    const own = variableName(spot.wanted.replace(/^\*-*/, `${spot.name}_`));
    const full = variableName(`${spot.name}_${spot.wanted.replace(/^\*-*/, "")}`);
    for (let number = 0;; number++) {
      const name = number === 0 ? own : number === 1 ? full : `${full}_${number}`;
      if (!this.#isFree(name, value)) continue;
      this.#want(name, { value, spot });
      return `\${${name}}`;
    }
  }

  #isFree(name: string, value: string): boolean {
    if (this.#values.has(name)) return this.#values.get(name) === value;
    const set = this.#known.get(name);
    return set === undefined || set === value;
  }

  #want(name: string, { value, spot }: {
    readonly value: string;
    readonly spot: Standing & Spot;
  }): void {
    this.#values.set(name, value);
    const where = `${spot.at}.${spot.key}`;
    const isSet = this.#known.get(name) === value;
    if (!this.#wanted.has(name)) this.#wanted.set(name, { name, where, isSet });
  }
}

function wantedName(name: string, kind: "env" | "headers"): string {
  if (kind === "env") return name;
  return /^authorization$/i.test(name) ? "*TOKEN" : `*${name.replace(/^x-/i, "")}`;
}
