/**
 * The addresses of servers over HTTP, with variables. In scheme, host and port a variable is shown
 * and approved with its value, so it must be no key. In path and query it is a key: only requests
 * contain its value.
 *
 * @module
 */

import { PmlError } from "./errors.ts";
import { quoted } from "./json.ts";
import { isSecretName } from "./secret_words.ts";

/** An address, once with the values of its keys and twice without. */
export interface FilledAddress {
  /** The address that requests are sent to. Nothing else may contain it. */
  readonly requestUrl: string;
  /** The address up to the first key: what errors, files and sign-ins contain. */
  readonly url: string;
  /** The address with the names of its keys, as it is shown and approved. */
  readonly displayUrl: string;
}

/** Where the values of the variables of an address come from. */
export interface AddressValues {
  /** The values in scheme, host and port, by name. */
  readonly plain: ReadonlyMap<string, string>;
  /** The values in path and query, in their order; undefined to show the address only. */
  readonly keys?: readonly string[] | undefined;
}

/** The variables of an address as written. */
export interface AddressVariables {
  /** The names in scheme, host and port, and of whole addresses. */
  readonly plain: readonly string[];
  /** The references in path and query, such as `${KEY}` and `${VERSION:-v1}`. */
  readonly keys: readonly string[];
}

/** A piece of an address: text, or a variable at a place. */
interface Piece {
  readonly text: string;
  readonly name?: string;
  readonly otherwise?: string | undefined;
  readonly place: "base" | "host" | "path" | "query";
}

const REFERENCE = /(\$\{\w+(?::-[^}]*)?\})/;
const PARTS = /^\$\{(\w+)(?::-([^}]*))?\}$/;
/** A scheme, a host or a port, or a part of one. */
const HOST = /^[\w.:[\]+-]+$/;
/** The ends of names of addresses. Such a name is no key, whatever else it contains. */
const ADDRESS_NAME = /(?:^|_)(?:URL|URI|BASE|HOST|HOSTNAME|DOMAIN|PORT|ENDPOINT|ADDRESS|ORIGIN)$/i;
/** The required form of an address. */
const WANTED = "a URL that begins with https:// or http://, without a user name or password";

/** Returns the variables of an address as written. */
export function variablesOfAddress(written: string): AddressVariables {
  const named = piecesOf(written).filter(({ name }) => name !== undefined);
  const isPlain = ({ place }: Piece) => place === "base" || place === "host";
  return {
    plain: [...new Set(named.filter(isPlain).map(({ name = "" }) => name))],
    keys: named.filter((piece) => !isPlain(piece)).map(({ text }) => text),
  };
}

/** Returns the host of an address, if its definition writes it out. */
export function writtenHost(written: string): string | undefined {
  const pieces = piecesOf(written);
  const isWritten = pieces.every(({ name, place }) =>
    name === undefined || place === "path" || place === "query"
  );
  return isWritten ? URL.parse(pieces.map(({ text }) => text).join(""))?.hostname : undefined;
}

/** Returns the values of the variables in the host of an address, as far as they are set. */
export function plainValuesOf(
  written: string,
  get: (name: string) => string | undefined,
): ReadonlyMap<string, string> {
  const names = variablesOfAddress(written).plain.filter((name) => !isKeyName(name));
  return new Map(
    names.map((name) => [name, get(name)] as const)
      .filter((one): one is [string, string] => one[1] !== undefined),
  );
}

/**
 * Returns an address as it is shown and approved: with the values of its host, and the names of its
 * keys. Returns it as written if no such address can be made.
 */
export function shownAddress(
  written: string,
  get: (name: string) => string | undefined,
): string {
  if (!written.includes("${")) return written;
  try {
    return filledAddress(written, { server: "", plain: plainValuesOf(written, get) }).displayUrl;
  } catch {
    return written; // reaching the server reports it
  }
}

/** Returns the required form of an address if no values of its variables could make it valid. */
export function addressProblem(written: string): string | undefined {
  const pieces = piecesOf(written);
  const text = pieces.map(({ text, name, place }, at) =>
    name === undefined ? text : place === "base" ? "https://a" : pieces[at - 1] ? "1" : "https"
  ).join("");
  return isAddress(text) ? undefined : WANTED;
}

/**
 * Returns an address with its variables replaced. Throws CONFIG_INVALID if the result is no address,
 * and KEY_MISSING if a variable of its host is not set. Errors contain no value.
 */
export function filledAddress(
  written: string,
  { server, plain, keys }: AddressValues & { readonly server: string },
): FilledAddress {
  const pieces = piecesOf(written);
  const wrong = failing(server);
  let [requestUrl, displayUrl, cut, used] = ["", "", -1, 0];
  for (const [at, piece] of pieces.entries()) {
    const { text, name, place } = piece;
    if (name === undefined) {
      requestUrl += text;
      displayUrl += text;
    } else if (place === "path" || place === "query") {
      if (cut < 0) cut = displayUrl.length;
      const value = keys?.[used++] ?? text;
      if (/^\.+$/.test(value)) throw wrong(`${name} consists of dots, which change the path`);
      requestUrl += encodeURIComponent(value);
      displayUrl += text;
    } else {
      const next = pieces[at + 1]?.text ?? "";
      const value = plainValue(piece, { value: plain.get(name), next, wrong });
      requestUrl += value;
      displayUrl += value.replace(/\?.*$/s, "");
    }
  }
  if (!isAddress(requestUrl)) throw wrong(`it is not ${WANTED}`);
  const literal = pieces.every(({ name }) => name === undefined);
  return {
    requestUrl,
    displayUrl,
    url: literal ? written : publicUrl(displayUrl, cut),
  };
}

/** Returns an address without its query and without the path segments from the first key on. */
function publicUrl(url: string, cut: number): string {
  const text = (cut < 0 ? url : url.slice(0, cut)).replace(/[?#].*$/s, "");
  const isInPath = cut >= 0 && text.length === cut;
  const { href } = new URL(isInPath ? text.replace(/[^/]*$/, "") : text);
  return href;
}

function plainValue(
  { name = "", otherwise, place }: Piece,
  { value: match, next, wrong }: {
    readonly value: string | undefined;
    readonly next: string;
    readonly wrong: ReturnType<typeof failing>;
  },
): string {
  if (isKeyName(name)) {
    throw wrong(`${name} is the name of a key, which a host must not contain: name servers see it`);
  }
  const value = match ?? otherwise;
  if (value === undefined) throw wrong(`${name} is not set`, "KEY_MISSING", name);
  if (place === "host") {
    if (!HOST.test(value)) throw wrong(`the value of ${name} is no host or port`);
    return value;
  }
  if (!isAddress(value)) throw wrong(`the value of ${name} is not ${WANTED}`);
  const [base = ""] = value.split("#", 1);
  if (base.includes("?") && next !== "") {
    throw wrong(`the value of ${name} has a query, behind which no path can follow`);
  }
  return next.startsWith("/") ? base.replace(/\/+$/, "") : base;
}

function isKeyName(name: string): boolean {
  return isSecretName(name) && !ADDRESS_NAME.test(name);
}

function failing(server: string) {
  return (why: string, code: "CONFIG_INVALID" | "KEY_MISSING" = "CONFIG_INVALID", name?: string) =>
    new PmlError(code, `Cannot reach ${quoted(server)}: in its url, ${why}`, {
      hint: name === undefined
        ? "Correct `url` in the definition, or the variable that it names"
        : `Set ${name} in the environment of PML, or write \${${name}:-default} in the url`,
      ...(name !== undefined && { detail: { missing: [name] } }),
    });
}

/** Splits an address into text and variables, each with its place. */
function piecesOf(written: string): readonly Piece[] {
  const parts = written.split(REFERENCE).filter((part) => part !== "");
  let place: Piece["place"] = "base";
  return parts.map((text, at) => {
    const [isReference, name = "", otherwise] = PARTS.exec(text) ?? [];
    if (isReference === undefined) {
      place = placeBehind(text, place);
      return { text, place };
    }
    if (place !== "base") return { text, name, otherwise, place };
    // A variable in front of `://` is a scheme.
    place = "host";
    const own = parts[at + 1]?.startsWith("://") || at > 0 ? "host" : "base";
    return { text, name, otherwise, place: own };
  });
}

/** Returns the part of an address that follows a text. */
function placeBehind(text: string, place: Piece["place"]): Piece["place"] {
  if (place === "query" || /[?#]/.test(text)) return "query";
  if (place === "path") return "path";
  return text.replace(/^[a-z][\w+.-]*:\/\/|^:\/\//i, "").includes("/") ? "path" : "host";
}

function isAddress(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.username + url.password === "";
}
