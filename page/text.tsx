/**
 * Shows texts and values. A text of a server, a client or a file becomes a text node, never HTML. Its
 * hidden characters become visible, marked escapes.
 *
 * @module
 */

import type { VNode } from "preact";
import { safeText } from "../src/protocol/safe_text.ts";
import { state } from "./store.ts";

/** A control character that encloses an escape. Safe texts do not contain it. */
const EDGE = "\u0001";

/** Shows a text of a server, a client or a file. */
export function External({ text }: { readonly text: string }): VNode {
  return <bdi class="external">{pieces(text)}</bdi>;
}

/** Shows a text of a server, a client or a file, with its line ends. */
export function Block(
  { text, label, diff = false }: {
    readonly text: string;
    readonly label: string;
    /** Whether lines that begin with `+` or `-` are additions and removals. */
    readonly diff?: boolean;
  },
): VNode {
  const content = diff ? text.split("\n").map(diffLine) : pieces(text);
  return <pre class="external" role="group" aria-label={label}>{content}</pre>;
}

function diffLine(line: string): VNode {
  const Tag = line.startsWith("+") ? "ins" : line.startsWith("-") ? "del" : "span";
  const content = [...pieces(line), "\n"];
  return <Tag>{content}</Tag>;
}

function pieces(text: string): (string | VNode)[] {
  return safeText(text.replaceAll("\r\n", "\n"), (escape) => EDGE + escape + EDGE).split(EDGE)
    .map((piece, at) => at % 2 === 0 ? piece : <mark key={at}>{piece}</mark>);
}

/** Returns a text with visible escapes, for an attribute. */
export function plain(text: string): string {
  return safeText(text);
}

/** Shows a value as indented JSON. */
export function Json({ value, label }: { readonly value: unknown; readonly label: string }): VNode {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
  return <Block text={text} label={label} />;
}

/** Shows a time of today, or a day and a time. */
export function Time({ at }: { readonly at: number }): VNode {
  const date = new Date(at);
  const isToday = new Date(state.value?.now ?? at).toDateString() === date.toDateString();
  const time = date.toLocaleTimeString("en-GB");
  const day = date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return <time dateTime={date.toISOString()}>{isToday ? time : `${day}, ${time.slice(0, 5)}`}
  </time>;
}

/** Returns a duration. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1_000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
}

/** Returns a size. */
export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(1)} KB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** Returns a number with its word: "1,000 calls", or "2 new calls" for "new call". */
export function counted(count: number, word: string): string {
  return `${count.toLocaleString("en-GB")} ${word}${count === 1 ? "" : "s"}`;
}
