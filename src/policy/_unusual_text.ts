/**
 * Finds unusual parts in texts of servers, so that questions can mark them. It does not detect
 * every attack: a text without marks can still be hostile.
 *
 * @module
 */

import { mixedIn } from "../core/mixed_alphabets.ts";

// deno-lint-ignore no-control-regex
const ASCII = /^[\x00-\x7f]*$/;
/** Zero-width joiners between letters that are not Latin: other scripts need them. */
const JOINERS = /(?<=[[\p{L}\p{M}]--\p{Script=Latin}])[\u200c\u200d](?=[\p{L}\p{M}])/gv;
const INVISIBLE =
  /[[\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u2800]--[\t\n\r]]/gv;
const TAG =
  /<\s{0,3}\/?\s{0,3}(?:very[_ -]?)?(?:important|system|instructions?|secret|hidden|critical|urgent|assistant|user|human|admin|developer|override|rules?|sidenote|prompt|tool[_-]?\w{0,20}|function[_-]?\w{0,20})(?![a-z])[^<>\n]{0,80}>|\[\/?(?:system|inst|important|assistant)\]|<\|[^|<>\n]{1,40}\|>/i;
const PEOPLE = "(?:user|human|person|anyone|anybody|operator|owner|people|customer|developer)s?\\b";
const HIDES = new RegExp(
  `\\b(?:do\\s+not|don['’]?t|never|without|avoid)\\s+(?:ever\\s+)?(?:tell|mention|inform|notify|show|reveal|say|disclos|alert|warn|ask|explain|display|report)\\w{0,5}\\b[^.!?]{0,60}?\\b${PEOPLE}|` +
    `\\b(?:hide|conceal|keep)\\b[^.!?]{0,40}\\bfrom\\s+(?:the\\s+)?${PEOPLE}`,
  "i",
);
const OVERRIDES =
  /\b(?:ignore|disregard|forget|override)\s+(?:all\s+|any\s+)?(?:the\s+|of\s+the\s+|your\s+)?(?:previous|prior|earlier|above|other|system)\b/i;
const KEY_PATHS =
  /(?:^|[\s"'`(=:/\\~])\.(?:ssh|aws|gnupg|kube|docker|azure|npmrc|netrc|pypirc|git-credentials|env|pgpass)\b|\bid_(?:rsa|ed25519|ecdsa|dsa)\b|\/etc\/(?:passwd|shadow|sudoers)\b|\.(?:pem|p12|pfx|kdbx)\b|\bmcp\.json\b|\bauthorized_keys\b/i;

/** Returns remarks on the unusual parts of a text. */
export function unusualIn(text: string): readonly string[] {
  // Compiling the pattern of all emoji takes 14 ms, so it is used only if the text is not ASCII.
  const plain = ASCII.test(text) ? text : text.replace(/\p{RGI_Emoji}/gv, "").replace(JOINERS, "");
  const hidden = plain.match(INVISIBLE)?.length ?? 0;
  // Compatibility forms of letters are matched as the letters.
  const readable = plain.replace(INVISIBLE, "").normalize("NFKC");
  return [
    ...(hidden === 0 ? [] : [`${hidden} invisible character${hidden === 1 ? "" : "s"}`]),
    ...(TAG.test(readable) ? ["a tag that addresses the model"] : []),
    ...(HIDES.test(readable) ? ["it asks to keep something from the user"] : []),
    ...(OVERRIDES.test(readable) ? ["it asks to ignore other instructions"] : []),
    ...(KEY_PATHS.test(readable) ? ["a path of keys or passwords"] : []),
    ...mixedIn(text),
  ];
}
