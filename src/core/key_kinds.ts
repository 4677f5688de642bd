/**
 * Keys of known kinds, by their look.
 *
 * @module
 */

/** What stands in the place of a secret. */
export const REDACTED = "[redacted]";

// Every repetition is either bounded, or begins where none of its characters stands before: so
// a text is read a bounded number of times, however it was made.
// What they capture stays.
const PATTERNS: readonly RegExp[] = [
  /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[^]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|$)/g,
  /(?<![A-Za-z0-9])(?:(?:sk|pk|rk|tvly|gsk|xai)[-_]|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|npm_|hf_|pypi-)[\w-]{16,}/g,
  /(?<![A-Za-z0-9])(?:(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{30,})/g,
  /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?/g,
  /\b(Bearer[ \t]{1,8})[\w.~+/=-]{8,}/gi,
  /\b(Authorization["']?\s{0,4}[:=]\s{0,4}["']?Basic[ \t]{1,8})[\w+/=-]{4,}/gi,
  /(:\/\/[^\s/:@"']{0,64}:)[^\s/@"']{1,256}(?=@)/g,
  /([?&](?:api_?key|key|access_token|token|secret|password|sig|signature)=)[^\s&#"']{4,}/gi,
];

// Whatever a pattern matches holds one of these: most texts are done after one look.
const HINT =
  /PRIVATE KEY|(?:sk|pk|rk|tvly|gsk|xai)[-_]|gh[pousr]_|github_pat_|glpat-|xox|npm_|hf_|pypi-|AKIA|ASIA|AIza|eyJ|bearer|basic|:\/\/|[?&]\w{3,12}=/i;

/** Gives a text back without what looks like a key of a known kind. */
export function withoutKnownKeys(text: string): string {
  if (!HINT.test(text)) return text;
  return PATTERNS.reduce((so, pattern) => so.replace(pattern, redacted), text);
}

function redacted(_matched: string, kept: unknown): string {
  // Where a pattern captures nothing, its place is given instead.
  return `${typeof kept === "string" ? kept : ""}${REDACTED}`;
}
