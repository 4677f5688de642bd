/**
 * What looks like a secret: by its name, by its kind, or because no person wrote it.
 *
 * @module
 */

import { REDACTED, withoutKnownKeys } from "../core/key_kinds.ts";
import { isSteering } from "../core/steering.ts";
import { exists } from "./workspace.ts";

const SECRET_WORDS =
  /TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTHORIZATION|API_?KEY|COOKIE|CONNECTION_STRING/;
const SECRET_WORD = /(^|_)(KEY|AUTH|PAT|JWT|DSN|PWD|PASS|PIN|SAS|PRIVATE)(_|$)/;
const MANY_TURNS = 0.25;
const UUID = /[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}/i;
const TRIVIAL = /^(\s*|true|false|none|null|\d{1,3})$/i;

/** What an address steers is its host: only what stands before that is a secret. */
const ADDRESS = /(?:PROXY|URL|INDEX|REGISTRY|SERVER|LINKS)$/i;
/** What ends a name of the person's own, such as `NODE_DB_PASS`, and of none that is looked at. */
const SECRET_END = /_(?:AUTH|PAT|JWT|DSN|PWD|PASS|PIN|SAS)$/i;

/** Tells by its name whether a value decides which code runs, so that it is shown as it is. */
export function isCode(name: string): boolean {
  return isSteering(name) && !SECRET_WORDS.test(name.toUpperCase()) && !SECRET_END.test(name);
}

/** Tells by its name whether a value is an address that decides which code runs. */
export function isCodeAddress(name: string): boolean {
  return isCode(name) && ADDRESS.test(name);
}

/** Gives a value as a person is shown it: what looks like a secret is left out. */
export function withoutSecrets(name: string, value: string): string {
  const withoutRandom = (run: string) => isRandom(run) ? REDACTED : run;
  if (isCodeAddress(name)) {
    return withoutKnownKeys(value).replace(/(?<=:\/\/)[^\s/:@]+(?=@)/g, withoutRandom);
  }
  if (isCode(name)) return value;
  if (isSecretName(name)) return TRIVIAL.test(value) ? value : REDACTED;
  return withoutKnownKeys(value)
    .replace(/[^\s:@?&=,;]+/g, withoutRandom);
}

/** Tells by its name whether a value is a secret. */
export function isSecretName(name: string): boolean {
  const words = variableName(name.replace(/^-+/, ""));
  return SECRET_WORDS.test(words) || SECRET_WORD.test(words);
}

/** What no secret is: nothing, a switch, a count, a file that is there. */
export function isNoSecret(value: string): boolean {
  return TRIVIAL.test(value) ||
    /^(\/|[A-Za-z]:\\)/.test(value) && exists(value);
}

/** Tells whether a text holds a long run that no person wrote. */
export function isRandom(text: string): boolean {
  const runs = text.match(/[A-Za-z0-9+=_-]{20,}/g) ?? [];
  const whole = /^[A-Za-z0-9+][A-Za-z0-9+/]{31,}={0,2}$/.test(text) ? [text] : [];
  return UUID.test(text) || [...runs, ...whole].some((run) => changes(run) >= MANY_TURNS);
}

/** How often letters, capitals and digits take turns: rarely in words, often in what is random. */
function changes(run: string): number {
  const kinds = run.replace(/[^A-Za-z0-9]/g, "").replace(/[a-z]/g, "a").replace(/[A-Z]/g, "A")
    .replace(/\d/g, "0");
  const turns = [...kinds].filter((kind, at) => at > 0 && kind !== kinds[at - 1]).length;
  return turns / (kinds.length || 1);
}

/** Makes the name of a variable of any text. */
export function variableName(text: string): string {
  const words = text.replace(/([a-z\d])([A-Z])/g, "$1_$2").toUpperCase();
  return words.replace(/[^A-Z0-9]+/g, "_").replace(/^(?=\d)|^$/, "_");
}
