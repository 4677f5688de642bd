/**
 * Finds secrets: by their name, by their kind, or because they look random.
 *
 * @module
 */

import { REDACTED, withoutKnownKeys } from "./key_kinds.ts";
import { isSteering } from "./steering.ts";

const SECRET_WORDS =
  /TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTHORIZATION|API_?KEY|COOKIE|CONNECTION_STRING/;
const SECRET_WORD = /(^|_)(KEY|AUTH|PAT|JWT|DSN|PWD|PASS|PIN|SAS|PRIVATE)(_|$)/;
const MANY_TURNS = 0.25;
const UUID = /[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}/i;
const TRIVIAL = /^(\s*|true|false|none|null|\d{1,3})$/i;

/** Names of addresses. An address is not secret as a whole: only its user name and password are. */
const ADDRESS = /(?:PROXY|URL|INDEX|REGISTRY|SERVER|LINKS)$/i;
/** The host of an address. Users must see where a server sends data, so it is never a secret. */
const HOST = /((?<=:\/\/(?:[^\s/?#@]{0,300}@)?)[^\s/?#@]+)/;
/**
 * The ends of names for the user's own secrets, such as `NODE_DB_PASS`. No program that PML
 * starts reads such a name as code.
 */
const SECRET_END = /_(?:AUTH|PAT|JWT|DSN|PWD|PASS|PIN|SAS)$/i;

/**
 * Returns, by its name, whether a value decides which code runs. Such a value must be shown
 * unchanged.
 */
export function isCode(name: string): boolean {
  return isSteering(name) && !SECRET_WORDS.test(name.toUpperCase()) && !SECRET_END.test(name);
}

/** Returns, by its name, whether a value is an address that decides which code runs. */
export function isCodeAddress(name: string): boolean {
  return isCode(name) && ADDRESS.test(name);
}

/** Returns a value for users: without parts that look like secrets. */
export function withoutSecrets(name: string, value: string): string {
  if (isCodeAddress(name)) {
    return withoutKnownKeys(value).replace(
      /(?<=:\/\/)[^\s/:@]+(?=@)/g,
      (run) => isRandom(run) ? REDACTED : run,
    );
  }
  if (isCode(name)) return value;
  if (isSecretName(name) && !isAddress(value)) return TRIVIAL.test(value) ? value : REDACTED;
  return replaceRandom(withoutKnownKeys(value), () => REDACTED);
}

/** Returns whether a value, or a part of it, may be a secret, so that logs redact it. */
export function maybeSecret(name: string, value: string): boolean {
  if (withoutSecrets(name, value) !== value) return true;
  return !isCode(name) && !TRIVIAL.test(value) && (isSecretName(name) || isRandom(value));
}

/**
 * Replaces the parts of a text that look random, except the hosts of addresses. In an address a part
 * is at most one segment of the path, or one value of the query.
 */
export function replaceRandom(text: string, by: (run: string) => string): string {
  const replaced = (part: string, runs: RegExp) =>
    part.replace(runs, (run) => isRandom(run) ? by(run) : run);
  return text.split(HOST).map((part, at) => {
    if (at % 2 === 1) return part;
    if (at === 0) return replaced(part, /[^\s:@?&=,;]+/g);
    const [path = "", ...query] = part.split(/(?=[?#])/);
    return replaced(path, /[^\s:@&=,;/]+/g) + replaced(query.join(""), /[^\s:@?&=,;#]+/g);
  }).join("");
}

/** Returns whether a value is an address. */
export function isAddress(value: string): boolean {
  return /^[a-z][\w+.-]{0,30}:\/\//i.test(value);
}

/** Returns, by its name, whether a value is a secret. */
export function isSecretName(name: string): boolean {
  const words = variableNameFrom(name.replace(/^-+/, ""));
  return SECRET_WORDS.test(words) || SECRET_WORD.test(words);
}

/** Returns whether a value is certainly no secret: empty, a switch or a number. */
export function isTrivial(value: string): boolean {
  return TRIVIAL.test(value);
}

/** Returns whether a text contains a long part that looks random. */
export function isRandom(text: string): boolean {
  const runs = text.match(/[A-Za-z0-9+=_-]{20,}/g) ?? [];
  const whole = /^[A-Za-z0-9+][A-Za-z0-9+/]{31,}={0,2}$/.test(text) ? [text] : [];
  return UUID.test(text) || [...runs, ...whole].some((run) => changes(run) >= MANY_TURNS);
}

/**
 * Returns how often small letters, capitals and digits alternate. In words they rarely do, in
 * random text often.
 */
function changes(run: string): number {
  const kinds = run.replace(/[^A-Za-z0-9]/g, "").replace(/[a-z]/g, "a").replace(/[A-Z]/g, "A")
    .replace(/\d/g, "0");
  const turns = [...kinds].filter((kind, at) => at > 0 && kind !== kinds[at - 1]).length;
  return turns / (kinds.length || 1);
}

/** Makes a name of a variable from any text. */
export function variableNameFrom(text: string): string {
  const words = text.replace(/([a-z\d])([A-Z])/g, "$1_$2").toUpperCase();
  return words.replace(/[^A-Z0-9]+/g, "_").replace(/^(?=\d)|^$/, "_");
}
