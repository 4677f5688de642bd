/**
 * Compares two texts by words, so that a few changed words of a long text can be found.
 *
 * @module
 */

/** A piece of two texts: in both, only in the earlier one, or only in the later one. */
export interface DifferencePart {
  readonly kind: "same" | "gone" | "new";
  readonly text: string;
}

/** Words, blanks, line ends and single characters. Together they are the whole text. */
const WORDS = /\n|[^\S\n]+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu;
const WORD = /[\p{L}\p{N}_]+/gu;
/** Lines and sentences. They are compared first: a long text has too many words. */
const SENTENCES = /(?:[^\n.!?]|[.!?](?!\s))*(?:[.!?](?=\s)|\n|$)/gu;
/**
 * The maximum number of pairs of pieces that are compared, which takes about a millisecond. Servers
 * write these texts, and a definition has many.
 */
const MOST_CELLS = 100_000;
/** Fewer equal words than this between two changes are shown as changed, too. */
const FEWEST_SAME = 2;

/**
 * Returns the parts of two texts in order. All parts but the new ones are the earlier text, and all
 * but the gone ones the later text.
 */
export function textDifference(before: string, after: string): readonly DifferencePart[] {
  const sentences = compare(before, after, SENTENCES);
  const all = sentences.flatMap((part, index) => {
    const [last, next] = [sentences[index - 1], sentences[index + 1]];
    if (part.kind === "gone" && next?.kind === "new") {
      return compare(part.text, next.text, WORDS);
    }
    return part.kind === "new" && last?.kind === "gone" ? [] : [part];
  });
  return joinPieces(all, FEWEST_SAME);
}

function piecesOf(text: string, pattern: RegExp): readonly string[] {
  return (text.match(pattern) ?? []).filter((piece) => piece !== "");
}

function partsOf(pieces: readonly string[], kind: DifferencePart["kind"]): DifferencePart[] {
  return pieces.map((text) => ({ kind, text }));
}

/** Compares two texts by their pieces. If these are too many, nothing between the ends is equal. */
function compare(
  beforeText: string,
  afterText: string,
  pattern: RegExp,
): readonly DifferencePart[] {
  const [before, after] = [piecesOf(beforeText, pattern), piecesOf(afterText, pattern)];
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) start++;
  let end = 0;
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const old = before.slice(start, before.length - end);
  const now = after.slice(start, after.length - end);
  const isSmall = (old.length + 1) * (now.length + 1) <= MOST_CELLS;
  return joinPieces([
    ...partsOf(before.slice(0, start), "same"),
    ...isSmall ? align(old, now) : [...partsOf(old, "gone"), ...partsOf(now, "new")],
    ...partsOf(before.slice(before.length - end), "same"),
  ], 0);
}

/** Returns the pieces of two lists, with as many equal ones as possible. */
function align(old: readonly string[], now: readonly string[]): readonly DifferencePart[] {
  const width = now.length + 1;
  // The number of equal pieces from each pair of places to the end.
  const counts = new Uint16Array((old.length + 1) * width);
  const countAt = (from: number, to: number) => counts[from * width + to] ?? 0;
  for (let from = old.length - 1; from >= 0; from--) {
    for (let to = now.length - 1; to >= 0; to--) {
      counts[from * width + to] = old[from] === now[to]
        ? countAt(from + 1, to + 1) + 1
        : Math.max(countAt(from + 1, to), countAt(from, to + 1));
    }
  }
  const parts: DifferencePart[] = [];
  for (let from = 0, to = 0; from < old.length || to < now.length;) {
    const [gone, added] = [old[from], now[to]];
    if (gone !== undefined && gone === added) {
      parts.push({ kind: "same", text: gone });
      from++;
      to++;
    } else if (gone !== undefined && countAt(from + 1, to) >= countAt(from, to + 1)) {
      parts.push({ kind: "gone", text: gone });
      from++;
    } else {
      parts.push({ kind: "new", text: added ?? "" });
      to++;
    }
  }
  return parts;
}

/**
 * Joins pieces to parts. Fewer than `fewest` equal words between two changes are a part of both.
 */
function joinPieces(pieces: readonly DifferencePart[], fewest: number): readonly DifferencePart[] {
  const parts: DifferencePart[] = [];
  let [gone, added] = ["", ""];
  const flush = () => {
    if (gone !== "") parts.push({ kind: "gone", text: gone });
    if (added !== "") parts.push({ kind: "new", text: added });
    [gone, added] = ["", ""];
  };
  for (let at = 0; at < pieces.length;) {
    const { kind = "same" } = pieces[at] ?? {};
    let next = at;
    while (next < pieces.length && pieces[next]?.kind === kind) next++;
    const text = pieces.slice(at, next).map((piece) => piece.text).join("");
    const words = (text.match(WORD) ?? []).length;
    const isInner = gone + added !== "" && next < pieces.length && words < fewest;
    if (kind === "same" && !isInner) {
      flush();
      parts.push({ kind, text });
    } else {
      if (kind !== "new") gone += text;
      if (kind !== "gone") added += text;
    }
    at = next;
  }
  flush();
  return parts;
}
