/**
 * Replaces the variables in the addresses of HTTP servers. The value of a variable in scheme, host
 * or port is shown and approved, so it must not be a key. A variable in path or query counts as a
 * key: only requests contain its value.
 *
 * @module
 */

import { PmlError } from "./errors.ts";
import { quoted } from "./json.ts";
import { isSecretName } from "./secret_words.ts";

/** An address in three forms. Only `requestUrl` contains the values of keys. */
export interface FilledAddress {
  /** The address that requests are sent to. Nothing else may contain it. */
  readonly requestUrl: string;
  /** The address up to the first key, for errors, files and sign-ins. */
  readonly url: string;
  /** The address with the names of its keys, for the user. Approvals contain this form. */
  readonly displayUrl: string;
}

/** The values of the variables of an address. */
export interface AddressValues {
  /** The values in scheme, host and port, by name. */
  readonly plain: ReadonlyMap<string, string>;
  /** The values in path and query, in their order; undefined if only `displayUrl` is needed. */
  readonly keys?: readonly string[] | undefined;
}

/** The variables of an address in a definition. */
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
  readonly defaultValue?: string | undefined;
  readonly place: "base" | "host" | "path" | "query";
}

const REFERENCE = /(\$\{\w+(?::-[^}]*)?\})/;
const REFERENCE_PARTS = /^\$\{(\w+)(?::-([^}]*))?\}$/;
/** A scheme, a host or a port, or a part of one. */
const HOST_OR_PORT = /^[\w.:[\]+-]+$/;
/** The ends of names for addresses. A name with such an end is never the name of a key. */
const ADDRESS_NAME = /(?:^|_)(?:URL|URI|BASE|HOST|HOSTNAME|DOMAIN|PORT|ENDPOINT|ADDRESS|ORIGIN)$/i;
/** The required form of an address. */
const REQUIRED_FORM = "a URL that begins with https:// or http://, without a user name or password";

/** Returns the variables of an address as written. */
export function variablesOfAddress(written: string): AddressVariables {
  const references = splitAddress(written).filter(({ name }) => name !== undefined);
  const isPlain = ({ place }: Piece) => place === "base" || place === "host";
  return {
    plain: [...new Set(references.filter(isPlain).map(({ name = "" }) => name))],
    keys: references.filter((piece) => !isPlain(piece)).map(({ text }) => text),
  };
}

/** Returns the host of an address, if its definition writes it out. */
export function writtenHost(written: string): string | undefined {
  const pieces = splitAddress(written);
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
 * Returns an address in the form that is shown and approved: with the values in its host, and the
 * names of its keys. Returns it unchanged if a value is missing or not valid.
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

/** Returns the required form of an address if no values of its variables can make it valid. */
export function addressProblem(written: string): string | undefined {
  const pieces = splitAddress(written);
  // Each variable gets a value that is valid at its place.
  const text = pieces.map(({ text, name, place }, index) =>
    name === undefined ? text : place === "base" ? "https://a" : pieces[index - 1] ? "1" : "https"
  ).join("");
  return isAddress(text) ? undefined : REQUIRED_FORM;
}

/**
 * Returns an address with its variables replaced. Throws CONFIG_INVALID if the result is not a
 * valid address, and KEY_MISSING if a variable of its host is not set. Errors contain no values.
 */
export function filledAddress(
  written: string,
  { server, plain, keys }: AddressValues & { readonly server: string },
): FilledAddress {
  const pieces = splitAddress(written);
  const errorFor = errorsFor(server);
  // `firstKeyAt` is where the first key begins in `displayUrl`; -1 without keys.
  let [requestUrl, displayUrl, firstKeyAt, keyCount] = ["", "", -1, 0];
  for (const [index, piece] of pieces.entries()) {
    const { text, name, place } = piece;
    if (name === undefined) {
      requestUrl += text;
      displayUrl += text;
    } else if (place === "path" || place === "query") {
      if (firstKeyAt < 0) firstKeyAt = displayUrl.length;
      const value = keys?.[keyCount++] ?? text;
      if (/^\.+$/.test(value)) throw errorFor(`${name} consists of dots, which change the path`);
      requestUrl += encodeURIComponent(value);
      displayUrl += text;
    } else {
      const next = pieces[index + 1]?.text ?? "";
      const value = plainValue(piece, { value: plain.get(name), next, errorFor });
      requestUrl += value;
      displayUrl += value.replace(/\?.*$/s, "");
    }
  }
  if (!isAddress(requestUrl)) throw errorFor(`it is not ${REQUIRED_FORM}`);
  const isLiteral = pieces.every(({ name }) => name === undefined);
  return {
    requestUrl,
    displayUrl,
    url: isLiteral ? written : publicUrl(displayUrl, firstKeyAt),
  };
}

/** Returns an address without its query and without the path segments from the first key on. */
function publicUrl(url: string, firstKeyAt: number): string {
  const text = (firstKeyAt < 0 ? url : url.slice(0, firstKeyAt)).replace(/[?#].*$/s, "");
  const isInPath = firstKeyAt >= 0 && text.length === firstKeyAt;
  const { href } = new URL(isInPath ? text.replace(/[^/]*$/, "") : text);
  return href;
}

function plainValue(
  { name = "", defaultValue, place }: Piece,
  { value: setValue, next, errorFor }: {
    readonly value: string | undefined;
    readonly next: string;
    readonly errorFor: ReturnType<typeof errorsFor>;
  },
): string {
  if (isKeyName(name)) {
    throw errorFor(
      `${name} is the name of a key, which a host must not contain: name servers see it`,
    );
  }
  const value = setValue ?? defaultValue;
  if (value === undefined) throw errorFor(`${name} is not set`, "KEY_MISSING", name);
  if (place === "host") {
    if (!HOST_OR_PORT.test(value)) throw errorFor(`the value of ${name} is no host or port`);
    return value;
  }
  if (!isAddress(value)) throw errorFor(`the value of ${name} is not ${REQUIRED_FORM}`);
  const [base = ""] = value.split("#", 1);
  if (base.includes("?") && next !== "") {
    throw errorFor(`the value of ${name} has a query, behind which no path can follow`);
  }
  return next.startsWith("/") ? base.replace(/\/+$/, "") : base;
}

function isKeyName(name: string): boolean {
  return isSecretName(name) && !ADDRESS_NAME.test(name);
}

function errorsFor(server: string) {
  return (why: string, code: "CONFIG_INVALID" | "KEY_MISSING" = "CONFIG_INVALID", name?: string) =>
    new PmlError(code, `Cannot reach ${quoted(server)}: in its url, ${why}`, {
      hint: name === undefined
        ? "Correct `url` in the definition, or the variable that it names"
        : `Set ${name} in the environment of PML, or write \${${name}:-default} in the url`,
      ...(name !== undefined && { detail: { missing: [name] } }),
    });
}

/** Splits an address into text and variables, each with its place. */
function splitAddress(written: string): readonly Piece[] {
  const parts = written.split(REFERENCE).filter((part) => part !== "");
  let place: Piece["place"] = "base";
  return parts.map((text, index) => {
    const [reference, name = "", defaultValue] = REFERENCE_PARTS.exec(text) ?? [];
    if (reference === undefined) {
      place = placeAfter(text, place);
      return { text, place };
    }
    if (place !== "base") return { text, name, defaultValue, place };
    // A variable in front of `://` is a scheme.
    place = "host";
    const variablePlace = parts[index + 1]?.startsWith("://") || index > 0 ? "host" : "base";
    return { text, name, defaultValue, place: variablePlace };
  });
}

/** Returns the part of an address that follows a text. */
function placeAfter(text: string, place: Piece["place"]): Piece["place"] {
  if (place === "query" || /[?#]/.test(text)) return "query";
  if (place === "path") return "path";
  return text.replace(/^[a-z][\w+.-]*:\/\/|^:\/\//i, "").includes("/") ? "path" : "host";
}

function isAddress(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.username + url.password === "";
}
