/**
 * Finds hosts, paths and commands that mix alphabets, or use unusual forms of letters: a user could
 * confuse them with a known host, path or command.
 *
 * @module
 */

import { quoted } from "./json.ts";

/** Scripts with letters that look like letters of another script, mostly of Latin. */
const SCRIPTS: readonly (readonly [string, RegExp])[] = [
  ["Latin", /\p{Script=Latin}/u],
  ["Cyrillic", /\p{Script=Cyrillic}/u],
  ["Greek", /\p{Script=Greek}/u],
  ["Armenian", /\p{Script=Armenian}/u],
  ["Cherokee", /\p{Script=Cherokee}/u],
  ["Coptic", /\p{Script=Coptic}/u],
  ["Lisu", /\p{Script=Lisu}/u],
  ["Georgian", /\p{Script=Georgian}/u],
  ["Hebrew", /\p{Script=Hebrew}/u],
  ["Arabic", /\p{Script=Arabic}/u],
  ["Thai", /\p{Script=Thai}/u],
  ["Deseret", /\p{Script=Deseret}/u],
  ["Canadian Aboriginal", /\p{Script=Canadian_Aboriginal}/u],
  // One group, because a word may mix these scripts. They do not look like Latin letters.
  [
    "East Asian",
    /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}]/u,
  ],
];
/** Letters, digits and separators in another form: fullwidth, mathematical, circled and others. */
const STYLED =
  /[\uff0e-\uff19\uff20-\uff3a\uff3c\uff41-\uff5a\u{1d400}-\u{1d7ff}\u2100-\u214f\u2160-\u217f\u2460-\u24e9\u{1f110}-\u{1f189}\u2024\u2044\u2215\u29f8\u3002\ufe52]/u;
/** Signs that are usual in prose and do not replace a letter, such as `℃` and `™`. */
const SIGNS = /[\u2103\u2109\u2116\u2117\u211e-\u2123\u214d\u2460-\u249b\u3002]/gu;
const REMARKS_MAX = 5;
const ADDRESS =
  /[a-z][a-z\d+.-]{0,20}:\/\/(?:[^\s\/?#@"'`<>]{0,300}@)?([^\s\/?#@:"'`<>]{1,300})/giu;

/**
 * Returns at most five remarks on the parts of a text that a user could confuse with other texts.
 */
export function mixedIn(text: string): readonly string[] {
  // deno-lint-ignore no-control-regex
  if (/^[\x00-\x7f]*$/.test(text)) return [];
  const remarks = new Set<string>();
  for (const token of text.split(/[\s"'`<>()[\]{}|;,]+/u)) {
    // deno-lint-ignore no-control-regex
    if (!/[^\x00-\x7f]/.test(token)) continue;
    for (const remark of remarksOn(token)) remarks.add(remark);
    if (remarks.size > REMARKS_MAX) break;
  }
  const all = [...remarks];
  return all.length > REMARKS_MAX ? [...all.slice(0, REMARKS_MAX), "and others"] : all;
}

function remarksOn(token: string): readonly string[] {
  const isPlace = /[/\\.:@=]/.test(token);
  // In prose, a hyphen may join words of two scripts. A label of a host, or a name in a path, must
  // not contain two scripts.
  const parts = token.split(isPlace ? /[/\\.:@=?&#+]+/u : /[-–—_\d]+/u);
  const remarks = parts.flatMap((part) => {
    const scripts = SCRIPTS.filter(([, pattern]) => pattern.test(part)).map(([name]) => name);
    const isUsual = scripts.length < 2 || scripts.join() === "Latin,East Asian";
    return isUsual ? [] : [`${quoted(part)} mixes ${scripts.join(" and ")} letters`];
  });
  const plain = isPlace ? token : token.replace(SIGNS, "");
  if (STYLED.test(plain) && /[\p{L}\p{N}]/u.test(token)) {
    remarks.push(`${quoted(token)} has letters or signs of an unusual form`);
  }
  return [...remarks, ...[...token.matchAll(ADDRESS)].flatMap(([, host = ""]) => hostRemark(host))];
}

/**
 * Returns the remark on a host that is not written in ASCII: its ASCII form, which programs use.
 */
function hostRemark(host: string): readonly string[] {
  const ascii = URL.parse(`https://${host}`)?.hostname;
  return ascii === undefined || ascii === host.toLowerCase()
    ? []
    : [`the host ${quoted(host)} is ${quoted(ascii)}`];
}
