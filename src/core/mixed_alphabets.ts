/**
 * Finds hosts, paths and commands that mix alphabets, or have letters in the place of the usual
 * ones: a user could take them for others.
 *
 * @module
 */

import { quoted } from "./json.ts";

/** The scripts that look alike in part, or are used to replace Latin letters. */
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
  // These are written with Latin letters in one word, and look like none of them.
  [
    "East Asian",
    /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}]/u,
  ],
];
/** Letters, digits and separators in another form: fullwidth, mathematical, circled and others. */
const STYLED =
  /[\uff0e-\uff19\uff20-\uff3a\uff3c\uff41-\uff5a\u{1d400}-\u{1d7ff}\u2100-\u214f\u2160-\u217f\u2460-\u24e9\u{1f110}-\u{1f189}\u2024\u2044\u2215\u29f8\u3002\ufe52]/u;
/** Signs that are written in plain text and replace no letter, such as those of numbers and marks. */
const SIGNS = /[\u2103\u2109\u2116\u2117\u211e-\u2123\u214d\u2460-\u249b\u3002]/gu;
const MARKS_MAX = 5;
const ADDRESS =
  /[a-z][a-z\d+.-]{0,20}:\/\/(?:[^\s\/?#@"'`<>]{0,300}@)?([^\s\/?#@:"'`<>]{1,300})/giu;

/** Returns a remark for each part of a text that could be taken for another one, up to five. */
export function mixedIn(text: string): readonly string[] {
  // deno-lint-ignore no-control-regex
  if (/^[\x00-\x7f]*$/.test(text)) return [];
  const remarks = new Set<string>();
  for (const token of text.split(/[\s"'`<>()[\]{}|;,]+/u)) {
    // deno-lint-ignore no-control-regex
    if (!/[^\x00-\x7f]/.test(token)) continue;
    for (const remark of remarksOn(token)) remarks.add(remark);
    if (remarks.size > MARKS_MAX) break;
  }
  const all = [...remarks];
  return all.length > MARKS_MAX ? [...all.slice(0, MARKS_MAX), "and others"] : all;
}

function remarksOn(token: string): readonly string[] {
  const isPlace = /[/\\.:@=]/.test(token);
  // In prose a word may join two scripts by a hyphen. In a label or component it must not.
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

/** Returns the remark on a host that is not written in ASCII: a browser or program reads it so. */
function hostRemark(host: string): readonly string[] {
  const ascii = URL.parse(`https://${host}`)?.hostname;
  return ascii === undefined || ascii === host.toLowerCase()
    ? []
    : [`the host ${quoted(host)} is ${quoted(ascii)}`];
}
