/**
 * Finds secrets by their name, by their format, or because they look random.
 *
 * @module
 */

import { REDACTED, withoutKnownKeys } from "./key_kinds.ts";
import { isSteering } from "./steering.ts";

const SECRET_WORDS =
  /TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTHORIZATION|API_?KEY|COOKIE|CONNECTION_STRING/;
const SECRET_WORD = /(^|_)(KEY|AUTH|PAT|JWT|DSN|PWD|PASS|PIN|SAS|PRIVATE)(_|$)/;
const RANDOM_RATE = 0.25;
const UUID = /[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}/i;
const TRIVIAL = /^(\s*|true|false|none|null|\d{1,3})$/i;

/** A reference to a variable, perhaps with a default: `${NAME}` or `${NAME:-default}`. */
const REFERENCE = /(\$\{\w{1,200}(?::-[^}]*)?\})/;
/** The words of HTTP before a key, and what separates two keys. */
const SCHEME = /^\s*(?:(?:bearer|basic|token|api-?key|bot|key)\s+|[:\s])?$/i;

/**
 * The ends of names for addresses. In an address, only the user name and the password are secret.
 */
const ADDRESS = /(?:PROXY|URL|INDEX|REGISTRY|SERVER|LINKS)$/i;
/** The host of an address. Users must see where a server sends data, so it is never a secret. */
const HOST = /((?<=:\/\/(?:[^\s/?#@]{0,300}@)?)[^\s/?#@]+)/;
/**
 * The ends of names for the user's own secrets, such as `NODE_DB_PASS`. No program that PML
 * starts reads such a name as code.
 */
const SECRET_END = /_(?:AUTH|PAT|JWT|DSN|PWD|PASS|PIN|SAS)$/i;

/**
 * Returns whether the variable of a name decides which code runs. The user must see its unchanged
 * value.
 */
export function isCode(name: string): boolean {
  return isSteering(name) && !SECRET_WORDS.test(name.toUpperCase()) && !SECRET_END.test(name);
}

/** Returns whether the variable of a name is an address that decides which code runs. */
export function isCodeAddress(name: string): boolean {
  return isCode(name) && ADDRESS.test(name);
}

/** Returns a value without the parts that look like secrets, to show it to users. */
export function withoutSecrets(name: string, value: string): string {
  if (isCodeAddress(name)) {
    return withoutKnownKeys(value).replace(
      /(?<=:\/\/)[^\s/:@]+(?=@)/g,
      (run) => isRandom(run) ? REDACTED : run,
    );
  }
  if (isCode(name)) return value;
  if (isSecretName(name) && !isAddress(value)) return withoutLiterals(value);
  return replaceRandom(withoutKnownKeys(value), () => REDACTED);
}

/**
 * Returns a secret value with its references, such as `Bearer ${TOKEN}`, because the name of a
 * variable is no secret. All else is hidden, also the default of a reference.
 */
function withoutLiterals(value: string): string {
  if (TRIVIAL.test(value)) return value;
  return value.split(REFERENCE).map((part, index) => {
    // Every second part is a reference.
    if (index % 2 === 0) return SCHEME.test(part) ? part : REDACTED;
    return part.replace(/(?<=:-)[^]+(?=\}$)/, (text) => TRIVIAL.test(text) ? text : REDACTED);
  }).join("");
}

/** Returns whether a value may be or contain a secret, which logs must redact. */
export function maybeSecret(name: string, value: string): boolean {
  if (withoutSecrets(name, value) !== value) return true;
  return !isCode(name) && !TRIVIAL.test(value) && (isSecretName(name) || isRandom(value));
}

/**
 * Replaces the parts of a text that look random, except the hosts of addresses. In an address,
 * tests each segment of the path and each value of the query separately.
 */
export function replaceRandom(text: string, replace: (run: string) => string): string {
  const replaceRuns = (part: string, runs: RegExp) =>
    part.replace(runs, (run) => isRandom(run) ? replace(run) : run);
  return text.split(HOST).map((part, index) => {
    // Every second part is a host.
    if (index % 2 === 1) return part;
    if (index === 0) return replaceRuns(part, /[^\s:@?&=,;]+/g);
    const [path = "", ...query] = part.split(/(?=[?#])/);
    return replaceRuns(path, /[^\s:@&=,;/]+/g) + replaceRuns(query.join(""), /[^\s:@?&=,;#]+/g);
  }).join("");
}

/** Returns whether a value is an address. */
export function isAddress(value: string): boolean {
  return /^[a-z][\w+.-]{0,30}:\/\//i.test(value);
}

/** Returns whether a name is usual for a secret. */
export function isSecretName(name: string): boolean {
  const words = variableNameFrom(name.replace(/^-+/, ""));
  return SECRET_WORDS.test(words) || SECRET_WORD.test(words);
}

/** Returns whether a value cannot be a secret: it is empty, a switch or a short number. */
export function isTrivial(value: string): boolean {
  return TRIVIAL.test(value);
}

/** Returns whether a text contains a long part that looks random. */
export function isRandom(text: string): boolean {
  const runs = text.match(/[A-Za-z0-9+=_-]{20,}/g) ?? [];
  const whole = /^[A-Za-z0-9+][A-Za-z0-9+/]{31,}={0,2}$/.test(text) ? [text] : [];
  return UUID.test(text) || [...runs, ...whole].some((run) => alternationRate(run) >= RANDOM_RATE);
}

/**
 * Returns how often small letters, capitals and digits alternate, per character: often in random
 * text, and rarely in words.
 */
function alternationRate(run: string): number {
  const kinds = run.replace(/[^A-Za-z0-9]/g, "").replace(/[a-z]/g, "a").replace(/[A-Z]/g, "A")
    .replace(/\d/g, "0");
  const changes = [...kinds].filter((kind, index) => index > 0 && kind !== kinds[index - 1]);
  return changes.length / (kinds.length || 1);
}

/** Returns the name of a variable for any text. */
export function variableNameFrom(text: string): string {
  const words = text.replace(/([a-z\d])([A-Z])/g, "$1_$2").toUpperCase();
  return words.replace(/[^A-Z0-9]+/g, "_").replace(/^(?=\d)|^$/, "_");
}
