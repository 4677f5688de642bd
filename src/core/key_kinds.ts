/**
 * Finds keys of known kinds by their format.
 *
 * @module
 */

import { textsIn } from "./json.ts";

/** The text that replaces a secret. */
export const REDACTED = "[redacted]";

// No text can make the matching slow: every repetition is bounded, or cannot begin within its own
// characters. The part that a group captures stays in the text.
const PATTERNS: readonly RegExp[] = [
  /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[^]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|$)/g,
  /(?<![A-Za-z0-9])(?:(?:sk|pk|rk|tvly|gsk|xai)[-_]|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|npm_|hf_|pypi-)[\w-]{16,}/g,
  /(?<![A-Za-z0-9])(?:(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{30,})/g,
  // Shopify, PlanetScale, Postman, Pulumi, RubyGems, Brevo, Shippo.
  /(?<![A-Za-z0-9])(?:shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}|pscale_[a-z]{2,10}_[\w.=-]{32,}|PMAK-[a-f0-9]{24}-[a-f0-9]{34}|pul-[a-f0-9]{40}|rubygems_[a-f0-9]{48}|xkeysib-[a-f0-9]{64}-\w{16}|shippo_(?:live|test)_[a-f0-9]{40})/g,
  // Twilio, Mailgun, age. The letters of Bech32 contain no 1, b, i, o.
  /(?<![A-Za-z0-9])(?:(?:SK|key-)[0-9a-f]{32}(?![A-Za-z0-9])|AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58})/g,
  /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?/g,
  /\b(Bearer[ \t]{1,8})[\w.~+/=-]{8,}/gi,
  /\b(Authorization["']?\s{0,4}[:=]\s{0,4}["']?Basic[ \t]{1,8})[\w+/=-]{4,}/gi,
  /(:\/\/[^\s/:@"']{0,64}:)[^\s/@"']{1,256}(?=@)/g,
  /([?&](?:api_?key|key|access_token|token|secret|password|sig|signature)=)[^\s&#"']{4,}/gi,
];

// Every match of a pattern contains a match of one of these, so most texts need only these searches.
// One search for all alternatives takes four times as long.
const HINTS: readonly RegExp[] = [
  /[-_](?<=(?:sk|pk|rk|tvly|gsk|xai|gh[pousr]|github_pat|glpat|npm|hf|pypi|shp(?:at|ca|pa|ss)|pscale|PMAK|pul|rubygems|xkeysib|shippo|key)[-_])/i,
  /PRIVATE KEY|xox|AKIA|ASIA|AIza|SK[0-9a-f]{8}|eyJ|bearer|basic|:\/\/|[?&]\w{3,12}=/i,
];

/** Returns a text without the keys of known kinds. */
export function withoutKnownKeys(text: string): string {
  if (!HINTS.some((hint) => hint.test(text))) return text;
  return PATTERNS.reduce((remaining, pattern) => remaining.replace(pattern, redactMatch), text);
}

/** Returns whether a value contains a key of a known kind, in a text or in a name of a member. */
export function containsKnownKey(value: unknown): boolean {
  for (const text of textsIn(value)) {
    if (withoutKnownKeys(text) !== text) return true;
  }
  return false;
}

function redactMatch(_matched: string, prefix: unknown): string {
  // If a pattern captures nothing, this argument is the offset of the match.
  return `${typeof prefix === "string" ? prefix : ""}${REDACTED}`;
}
