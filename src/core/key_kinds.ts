/**
 * Finds keys of known kinds by their format.
 *
 * @module
 */

/** The text that replaces a secret. */
export const REDACTED = "[redacted]";

// Every repetition is bounded, or cannot begin within its own characters. So no text, however it
// was made, can make the matching slow. What a pattern captures is kept.
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

// Every match contains one of these, so most texts need one search only.
const HINT =
  /PRIVATE KEY|(?:sk|pk|rk|tvly|gsk|xai)[-_]|gh[pousr]_|github_pat_|glpat-|xox|npm_|hf_|pypi-|AKIA|ASIA|AIza|eyJ|bearer|basic|:\/\/|[?&]\w{3,12}=/i;

/** Returns a text without the keys of known kinds. */
export function withoutKnownKeys(text: string): string {
  if (!HINT.test(text)) return text;
  return PATTERNS.reduce((so, pattern) => so.replace(pattern, redacted), text);
}

function redacted(_matched: string, kept: unknown): string {
  // If a pattern captures nothing, this argument is the offset of the match.
  return `${typeof kept === "string" ? kept : ""}${REDACTED}`;
}
