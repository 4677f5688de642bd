/**
 * Synonyms: words that users and authors of tools use for the same thing.
 *
 * @module
 */

import { stem } from "./terms.ts";

/** Groups of English words. All words of a group are synonyms. */
const GROUPS = [
  "file document",
  "folder directory path",
  "delete remove erase drop",
  "create make add new generate build",
  "list show display view see enumerate",
  "get fetch retrieve obtain read load",
  "update edit modify change alter",
  "search find lookup query locate discover",
  "send post publish submit",
  "write save store keep persist",
  "run execute launch start invoke",
  "stop end kill terminate cancel",
  "picture image photo",
  "repository repo",
  "database db sql",
  "movie film video clip",
  "website webpage page site url link",
  "message chat text",
  "email mail",
  "convert transform translate",
  "rename move",
  "copy duplicate",
  "compare diff difference change",
  "download fetch",
  "weather forecast temperature",
  "price cost quote",
  "stock share ticker",
  "map location place address",
  "route direction navigation",
  "news article headline",
  "user person people member account",
  "issue bug ticket",
  "summary summarize overview",
  "chart graph plot diagram",
  "spreadsheet excel workbook table",
  "slide presentation powerpoint",
  "music song track audio",
  "calendar event schedule meeting appointment",
  "job career work",
  "flight airline",
  "hotel lodging accommodation",
  "restaurant food dining",
  "recipe cook meal",
  "product shop shopping buy purchase",
  "paper research study publication",
  "math calculate compute",
  "remember memory note",
  "time date clock",
  "history log past",
  "entry item record row",
  "detail metadata information",
  "question ask answer",
  "add append insert attach",
];

/** Returns the synonyms of each word, by its stem. */
export function makeSynonyms(): ReadonlyMap<string, ReadonlySet<string>> {
  const table = new Map<string, Set<string>>();
  for (const words of GROUPS.map((group) => group.split(" ").map(stem))) {
    for (const word of words) {
      const others = words.filter((other) => other !== word);
      table.set(word, new Set([...table.get(word) ?? [], ...others]));
    }
  }
  return table;
}
