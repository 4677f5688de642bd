/**
 * Short forms of words. Users type them instead of the longer words in descriptions of tools.
 *
 * @module
 */

import { stem } from "./terms.ts";

/** Each short form and its long words. */
const FORMS = [
  "pr pull request",
  "prs pull request",
  "mr merge request",
  "mrs merge request",
  "k8s kubernetes",
  "js javascript",
  "py python",
  "rb ruby",
  "pg postgres",
  "postgres postgresql",
  "mongo mongodb",
  "elastic elasticsearch",
  "msg message",
  "msgs message",
  "img image",
  "imgs image",
  "pic picture",
  "pics picture",
  "vid video",
  "dir directory",
  "env environment",
  "config configuration",
  "conf configuration",
  "cfg configuration",
  "auth authentication",
  "err error",
  "errs error",
  "pkg package",
  "deps dependency",
  "gh github",
  "gl gitlab",
  "gdrive google drive",
  "gcal google calendar",
  "gdocs google docs",
  "gsheet google sheets",
  "gsheets google sheets",
  "insta instagram",
  "yt youtube",
  "fb facebook",
  "ig instagram",
  "tg telegram",
  "tz timezone",
  "stats statistics",
  "perf performance",
  "addr address",
  "param parameter",
  "params parameter",
  "arg argument",
  "args argument",
  "cmd command",
  "fn function",
  "func function",
  "lib library",
  "libs library",
  "proc process",
  "svc service",
  "ns namespace",
  "regex regular expression",
  "ppt powerpoint presentation",
  "pptx powerpoint presentation",
  "xls excel",
  "xlsx excel",
  "docx word document",
  "i18n internationalization",
  "l10n localization",
  "a11y accessibility",
  "gcp google cloud",
  "cal calendar",
  "appt appointment",
  "mtg meeting",
  "org organization",
  "orgs organization",
  "fs filesystem",
];

/** Returns the stems of the long words, by the stem of each short form. */
export function makeShortForms(): ReadonlyMap<string, readonly string[]> {
  return new Map(FORMS.map((line) => {
    const [form = "", ...words] = line.split(" ");
    return [stem(form), words.map(stem)] as const;
  }));
}
