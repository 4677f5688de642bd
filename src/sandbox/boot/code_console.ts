/**
 * The `console` of code, which sends a limited amount of output and counts the dropped lines.
 *
 * @module
 */

const LINES_MAX = 1_000;
/** The number of buffered characters above which lines are sent before the code yields. */
const BATCH = 4_096;
const NAMES = ["log", "info", "debug", "warn", "error"] as const;

/** Writes the lines of code, up to a limit. */
export class CodeConsole {
  /** The object that the code uses as `console`. */
  readonly console: Readonly<Record<string, unknown>>;
  readonly #send: (lines: readonly string[]) => void;
  /** The numbers of characters and of lines that may still be written. */
  #remainingSize: number;
  #remainingLines = LINES_MAX;
  #waiting: string[] = [];
  /** The length of the waiting lines. */
  #waitingSize = 0;
  #droppedLines = 0;

  /** Creates an instance. `maxSize` is in characters; `send` sends lines. */
  constructor(maxSize: number, send: (lines: readonly string[]) => void) {
    this.#remainingSize = maxSize;
    this.#send = send;
    const writers = NAMES.map((name) => [name, (...values: unknown[]) => this.write(name, values)]);
    // Other functions of `console` do nothing, so that code can call them.
    const others = Object.keys(console).map((name) => [name, () => {}]);
    this.console = Object.fromEntries([...others, ...writers]);
  }

  /** Sends the waiting lines and the number of dropped lines. */
  end(): void {
    if (this.#droppedLines > 0) {
      this.#waiting.push(`(${this.#droppedLines} more lines were left out)`);
    }
    this.#flush();
  }

  /** Writes one line of a level. */
  write(name: string, values: readonly unknown[]): void {
    const level = name === "warn" || name === "error" ? `${name}: ` : "";
    if (this.#remainingSize <= 0 || this.#remainingLines <= 0) return void this.#droppedLines++;
    const text = level + values.map(consoleText).join(" ");
    const cut = text.length > this.#remainingSize
      ? `${text.slice(0, this.#remainingSize)}… (cut)`
      : text;
    this.#remainingSize -= text.length + 1;
    this.#remainingLines--;
    this.#waitingSize += cut.length;
    if (this.#waiting.push(cut) === 1) queueMicrotask(() => this.#flush());
    if (this.#waitingSize > BATCH) this.#flush();
  }

  #flush(): void {
    if (this.#waiting.length === 0) return;
    const lines = this.#waiting;
    this.#waiting = [];
    this.#waitingSize = 0;
    this.#send(lines);
  }
}

/** Returns a value as text, as complete as possible. */
export function consoleText(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    // A stack would show internals of PML.
    if (value instanceof Error) return String(value);
    return Deno.inspect(value, { depth: 6, strAbbreviateSize: 2_000 });
  } catch {
    return "(it cannot be shown)";
  }
}
