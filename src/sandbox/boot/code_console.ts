/**
 * The `console` of code: it keeps a part of what is written, and counts the rest.
 *
 * @module
 */

const LINES_MAX = 1_000;
/** How many characters are sent at once, at most, while the code does not wait for anything. */
const BATCH = 4_096;
const NAMES = ["log", "info", "debug", "warn", "error"] as const;

/** Writes the lines of code, up to a limit. */
export class CodeConsole {
  /** What the code uses. */
  readonly console: Readonly<Record<string, unknown>>;
  readonly #send: (lines: readonly string[]) => void;
  #room: number;
  #lines = LINES_MAX;
  #waiting: string[] = [];
  #size = 0;
  #left = 0;

  /** Takes the number of characters that are kept, and what sends lines. */
  constructor(room: number, send: (lines: readonly string[]) => void) {
    this.#room = room;
    this.#send = send;
    const own = NAMES.map((name) => [name, (...said: unknown[]) => this.write(name, said)]);
    // Other functions of a console do nothing, so that code which uses them goes on.
    const others = Object.keys(console).map((name) => [name, () => {}]);
    this.console = Object.fromEntries([...others, ...own]);
  }

  /** Sends what waits, and how much was left out. */
  end(): void {
    if (this.#left > 0) this.#waiting.push(`(${this.#left} more lines were left out)`);
    this.#flush();
  }

  /** Writes one line of a level. */
  write(name: string, said: readonly unknown[]): void {
    const level = name === "warn" || name === "error" ? `${name}: ` : "";
    if (this.#room <= 0 || this.#lines <= 0) return void this.#left++;
    const text = level + said.map(shown).join(" ");
    const cut = text.length > this.#room ? `${text.slice(0, this.#room)}… (cut)` : text;
    this.#room -= text.length + 1;
    this.#lines--;
    this.#size += cut.length;
    if (this.#waiting.push(cut) === 1) queueMicrotask(() => this.#flush());
    if (this.#size > BATCH) this.#flush();
  }

  #flush(): void {
    if (this.#waiting.length === 0) return;
    const lines = this.#waiting;
    this.#waiting = [];
    this.#size = 0;
    this.#send(lines);
  }
}

/** Returns a value as text, as far as it can be shown. */
export function shown(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    // A stack would show what runs the code.
    if (value instanceof Error) return String(value);
    return Deno.inspect(value, { depth: 6, strAbbreviateSize: 2_000 });
  } catch {
    return "(it cannot be shown)";
  }
}
