/**
 * Edits the text of a JSON file, which may have comments. All other values and comments stay as they
 * are, and a new value is laid out like the values next to it.
 *
 * @module
 */

import type { JSONPath, Node } from "jsonc-parser";
import { isEditOf } from "./yaml_text.ts";

type Jsonc = typeof import("jsonc-parser");

/** The maximum length of a list or an object that stays on one line. */
const SHORT_MAX = 80;
const STRING_OR_COMMENT = /"(?:\\.|[^"\\])*"|\/\/[^\r\n]*|\/\*[^]*?\*\//g;
/** Stands for a character of a comment. JSON has this sign only in texts. */
const MASK = "#";
const BLANK = /^[\s#]*$/;

/** A JSON text that is edited. */
export class JsonText {
  #text: string;
  /** The text with another character in place of each one of a comment. The offsets are the same. */
  #bare = "";
  #root: Node | undefined;
  readonly #jsonc: Jsonc;
  readonly #indent: string;
  readonly #lineEnd: string;

  constructor(text: string, jsonc: Jsonc) {
    this.#text = text;
    this.#jsonc = jsonc;
    this.#indent = /^( +|\t)"/m.exec(text)?.[1] ?? "  ";
    this.#lineEnd = text.includes("\r\n") ? "\r\n" : "\n";
    this.#setText(text);
  }

  /** The text with all edits. */
  get text(): string {
    return this.#text;
  }

  /** Returns the node at a path; undefined if there is none. */
  find(at: JSONPath): Node | undefined {
    this.#root ??= this.#jsonc.parseTree(this.#text);
    return this.#root && this.#jsonc.findNodeAtLocation(this.#root, at);
  }

  /** Sets the value at a path of keys. Adds missing objects of the path. */
  set(at: readonly string[], value: unknown): void {
    const present = this.find([...at]);
    if (present === undefined) this.#add(at, value);
    else if (present.type !== "array" || !this.#setElements(at, value)) {
      this.#replace(at, present, value);
    }
  }

  /** Adds members at the end of the object at a path of keys. */
  addMembers(at: readonly string[], members: object): void {
    const texts = Object.entries(members)
      .map(([name, value]) => `${JSON.stringify(name)}: ${this.#json(value)}`);
    if (texts.length > 0) this.#insert(at, texts.join(",\n"));
  }

  /** Adds a value at the start of the list at a path of keys. Creates a missing list. */
  unshift(at: readonly string[], value: unknown): void {
    if (this.find([...at]) === undefined) this.#add(at, [value]);
    else this.#insert(at, this.#json(value), { atStart: true });
  }

  /** Removes the member or the element at a path, with its comma, and with its whole line. */
  remove(at: JSONPath): void {
    const node = this.find(at);
    const child = node?.parent?.type === "property" ? node.parent : node;
    const siblings = child?.parent?.children;
    if (child === undefined || siblings === undefined) return;
    const start = child.offset;
    const end = start + child.length;
    const next = this.#nextToken(end);
    const hasComma = this.#bare[next] === ",";
    const tail = hasComma ? next + 1 : end;
    const previous = siblings[siblings.indexOf(child) - 1];
    const cuts: [from: number, to: number][] = [[start, end]];
    if (hasComma) cuts.push([next, tail]);
    const comma = previous && this.#bare.indexOf(",", previous.offset + previous.length);
    if (!hasComma && comma !== undefined) cuts.push([comma, comma + 1]);
    const lineStart = this.#text.lastIndexOf("\n", start) + 1;
    const isFirstOfLine = this.#text.slice(lineStart, start).trim() === "" && lineStart > 0;
    const space = /^[ \t]*(?:\r?\n)?/.exec(this.#text.slice(tail))?.[0] ?? "";
    const isLastOfLine = space.endsWith("\n") && this.#text.slice(end, tail).trim().length <= 1;
    const before = /[ \t]*$/.exec(this.#text.slice(0, start))?.[0].length ?? 0;
    if (isFirstOfLine && isLastOfLine) cuts.push([lineStart, start], [tail, tail + space.length]);
    else if (hasComma && isLastOfLine && previous) cuts.push([start - before, start]);
    else if (hasComma) {
      const gap = /^\s*/.exec(this.#text.slice(tail))?.[0].length ?? 0;
      cuts.push([tail, tail + (isFirstOfLine || previous ? space.length : gap)]);
    } else if (comma !== undefined && this.#text.slice(comma + 1, start).trim() === "") {
      cuts.push([comma + 1, start]);
    }
    for (const [from, to] of cuts.toSorted(([a], [b]) => b - a)) this.#splice(from, to, "");
    this.#closeIfEmpty(at.slice(0, -1));
  }

  /** Removes the space in an object or a list without children and comments. */
  #closeIfEmpty(at: JSONPath): void {
    const { offset = 0, length = 0, children } = this.find(at) ?? {};
    const [start, end] = [offset + 1, offset + length - 1];
    if (children?.length === 0 && this.#text.slice(start, end).trim() === "") {
      this.#splice(start, end, "");
    }
  }

  #add(at: readonly string[], value: unknown): void {
    let depth = at.length;
    let holder: Node | undefined;
    while (depth > 0 && holder === undefined) holder = this.find(at.slice(0, --depth));
    if (holder?.type !== "object") return; // the caller compares the values
    const [name = "", ...below] = at.slice(depth);
    const nested = below.reduceRight((inner, key) => ({ [key]: inner }), value);
    this.addMembers(at.slice(0, depth), { [name]: nested });
  }

  #replace(at: readonly string[], { offset, length, children }: Node, value: unknown): void {
    const present = this.#text.slice(offset, offset + length);
    const json = this.#json(value);
    const isShort = !present.includes("\n") && children?.length !== 0 &&
      inLine(json).length <= SHORT_MAX;
    if (isShort || !json.includes("\n")) {
      return this.#splice(offset, offset + length, inLine(json));
    }
    this.#spreadAbove(at);
    const node = this.find([...at]);
    if (node === undefined) return;
    const end = node.offset + node.length;
    this.#splice(node.offset, end, json.replaceAll("\n", this.#lineStart(node.offset)));
  }

  /**
   * Replaces the elements of a list: removes old ones, and adds new ones at the end, so that common
   * elements keep their comments. Returns false if these two steps do not result in the list.
   */
  #setElements(at: readonly string[], list: unknown): boolean {
    if (!Array.isArray(list)) return false;
    const elements = this.find([...at])?.children ?? [];
    const before = elements.map((element) => this.#json(this.#jsonc.getNodeValue(element)));
    const after = list.map((value) => this.#json(value));
    if (!isEditOf(before, after)) return false;
    const added = after.filter((json) => !before.includes(json));
    for (const [index, json] of [...before.entries()].reverse()) {
      if (!after.includes(json)) this.remove([...at, index]);
    }
    for (const json of added) this.#insert(at, json);
    return true;
  }

  /**
   * Inserts a child into an object or a list: on its own line, unless the holder is on one line
   * and stays short.
   */
  #insert(at: readonly string[], json: string, { atStart = false } = {}): void {
    const holder = this.find([...at]);
    if (holder?.children === undefined) return; // the caller compares the values
    const { type, children, offset, length } = holder;
    const present = this.#text.slice(offset, offset + length);
    const mayBeShort = children.length > 0 || type === "array" && !this.#text.trim().includes("\n");
    const short = inLine(json);
    if (
      mayBeShort && !present.includes("\n") && present.length + short.length + 2 <= SHORT_MAX
    ) {
      this.#insertInLine(holder, short, atStart);
    } else {
      this.#insertLines(at, json, atStart);
    }
  }

  #insertInLine({ children = [], offset, length }: Node, json: string, atStart: boolean): void {
    const last = children.at(-1);
    const close = offset + length - 1;
    if (last === undefined) {
      const inner = this.#text.slice(offset + 1, close);
      this.#splice(offset + 1, inner.trim() === "" ? close : offset + 1, json);
    } else if (atStart) {
      const space = /^\s*/.exec(this.#text.slice(offset + 1))?.[0].length ?? 0;
      this.#splice(offset + 1 + space, offset + 1 + space, `${json}, `);
    } else {
      const end = last.offset + last.length;
      const rest = this.#text.slice(end, close).trimEnd().length;
      const place = this.#bare.slice(end, close).includes(",") ? end : end + rest;
      this.#splice(place, place, `, ${json}`);
    }
  }

  #insertLines(at: readonly string[], json: string, atStart: boolean): void {
    const before = this.find([...at]);
    if (before === undefined) return;
    const neighbour = atStart ? before.children?.at(0) : before.children?.at(-1);
    const close = before.offset + before.length - 1;
    const isOnLines = neighbour !== undefined && this.#beginsLine(neighbour.offset) &&
      (atStart || this.#beginsLine(close));
    if (!isOnLines) {
      this.#spreadAbove(at);
      this.#spread(at);
    }
    const { children = [], offset, length } = this.find([...at]) ?? before;
    const start = offset + 1;
    const end = offset + length - 1;
    const [first, last] = [children.at(0), children.at(-1)];
    if (first === undefined || last === undefined) {
      const outer = this.#lineStart(offset);
      const comments = this.#text.slice(start, end).trimEnd();
      const added = json.replaceAll("\n", outer + this.#indent);
      return this.#splice(start, end, comments + outer + this.#indent + added + outer);
    }
    const lineStart = this.#lineStart((atStart ? first : last).offset);
    const added = lineStart + json.replaceAll("\n", lineStart);
    if (atStart) {
      const place = start + this.#bare.slice(start).search(/\r?\n/);
      return this.#splice(place, place, `${added},`);
    }
    const lastEnd = last.offset + last.length;
    const place = lastEnd + this.#text.slice(lastEnd, end).trimEnd().length;
    const hasComma = this.#bare.slice(lastEnd, end).includes(",");
    this.#splice(place, place, added);
    if (!hasComma) this.#splice(lastEnd, lastEnd, ",");
  }

  /** Spreads the holders of a value that are on one line, the outermost first. */
  #spreadAbove(at: readonly string[]): void {
    for (const depth of at.keys()) {
      const { offset = 0, length = 0 } = this.find(at.slice(0, depth)) ?? {};
      if (!this.#text.slice(offset, offset + length).includes("\n")) {
        this.#spread(at.slice(0, depth));
      }
    }
  }

  /** Moves each child of an object or a list, and the bracket at its end, to its own line. */
  #spread(at: readonly string[]): void {
    const { children = [], offset = 0, length = 0 } = this.find([...at]) ?? {};
    if (children.length === 0) return;
    const outer = this.#lineStart(offset);
    const onLine = children.find((child) => this.#beginsLine(child.offset));
    const inner = onLine ? this.#lineStart(onLine.offset) : outer + this.#indent;
    const close = offset + length - 1;
    if (!this.#beginsLine(close)) {
      const space = /[ \t]*$/.exec(this.#text.slice(0, close))?.[0].length ?? 0;
      this.#splice(close - space, close, outer);
    }
    for (const [index, child] of [...children.entries()].reverse()) {
      if (this.#beginsLine(child.offset)) continue;
      const previous = children[index - 1];
      const end = previous && previous.offset + previous.length;
      const place = end === undefined ? offset + 1 : this.#bare.indexOf(",", end) + 1;
      const space = /^[ \t]*/.exec(this.#text.slice(place))?.[0].length ?? 0;
      this.#splice(place, place + space, inner);
    }
  }

  /** Returns whether only white space and comments are before an offset in its line. */
  #beginsLine(offset: number): boolean {
    return BLANK.test(this.#bare.slice(this.#bare.lastIndexOf("\n", offset - 1) + 1, offset));
  }

  /** Returns a line end with the indentation of the line of an offset. */
  #lineStart(offset: number): string {
    const start = this.#bare.lastIndexOf("\n", offset - 1) + 1;
    return this.#lineEnd + (/^[ \t]*/.exec(this.#text.slice(start, offset))?.[0] ?? "");
  }

  #nextToken(offset: number): number {
    const distance = this.#bare.slice(offset).search(/[^\s#]/);
    return distance < 0 ? this.#bare.length : offset + distance;
  }

  #json(value: unknown): string {
    return JSON.stringify(value, null, this.#indent);
  }

  #splice(from: number, to: number, text: string): void {
    this.#setText(this.#text.slice(0, from) + text + this.#text.slice(to));
  }

  #setText(text: string): void {
    this.#text = text;
    this.#root = undefined;
    this.#bare = text.replace(
      STRING_OR_COMMENT,
      (token) => token.startsWith("/") ? MASK.repeat(token.length) : token,
    );
  }
}

/** Returns JSON of several lines on one line. */
function inLine(json: string): string {
  return json.replaceAll(/(?<=\[)\n\s*|\n\s*(?=\])/g, "").replaceAll(/\n\s*/g, " ");
}
