/**
 * Watches files for a module, and tells only of those that it may see.
 *
 * @module
 */

import { lookAt, type Try, type Walls } from "./ground.ts";
import type { Op } from "./handles.ts";
import { joinPath, within } from "./names.ts";
import type { Power } from "./power.ts";
import { refusal } from "./refusal.ts";

const WATCH_MAX = 16;
const EVENT_MAX = 1_000;
const FOLDER_MAX = 10_000;
/** How many of the system's watchers one watch has before it makes one of them. */
const PART_MAX = 8;

/** The watches of one Worker. */
export class Watching {
  readonly #walls: Walls;
  readonly #watches = new Map<unknown, Watch>();
  #last = 0;

  /** The requests that are done at once. */
  readonly steps: Readonly<Record<string, Op>> = {
    "watch.open": (paths, recursive, ignore) => {
      if (this.#watches.size >= WATCH_MAX) {
        throw new Error(`Too many watchers: a module can hold ${WATCH_MAX}`);
      }
      const roots = listOf(paths).map((path) => this.#rootAt(path));
      const ignored = listOf(ignore).map((path) => this.#rootAt(path).real);
      const shows = (path: string) =>
        !ignored.some((one) => within(one, path)) && this.#walls.shows(path);
      this.#watches.set(++this.#last, new Watch(roots, { recursive: recursive === true, shows }));
      return this.#last;
    },
    "watch.close": (id) => {
      this.#watches.get(id)?.close();
      this.#watches.delete(id);
    },
  };

  /** The requests that wait. */
  readonly ops: Readonly<Record<string, Power>> = {
    "watch.next": ([id], { signal }) => this.#watches.get(id)?.next(signal) ?? null,
  };

  /** Takes the walls that events must not come from behind. */
  constructor(walls: Walls) {
    this.#walls = walls;
  }

  #rootAt(asked: string): Root {
    const attempt: Try = { op: "watch", asked, access: "look" };
    return { shown: this.#walls.lexical(attempt), real: this.#walls.follow(attempt).path };
  }
}

/** Something that is watched: where it is, and how the module calls it. */
interface Root {
  readonly shown: string;
  readonly real: string;
}

interface Event {
  readonly kind: Deno.FsEvent["kind"];
  readonly paths: readonly string[];
  readonly flag: Deno.FsEventFlag | null;
}

interface WatchOptions {
  readonly recursive: boolean;
  readonly shows: (path: string) => boolean;
}

/**
 * One watch. The system's own recursion would walk through links, out of the workspace and over
 * the whole disk; so each folder is watched by itself, and new ones as they come.
 */
class Watch {
  readonly #roots: readonly Root[];
  readonly #options: WatchOptions;
  readonly #folders = new Set<string>();
  readonly #queue: Event[] = [];
  readonly #waiting: ((event: Event | null) => void)[] = [];
  #parts: { readonly watcher: Deno.FsWatcher; readonly paths: readonly string[] }[] = [];
  #closed = false;

  constructor(roots: readonly Root[], options: WatchOptions) {
    this.#roots = roots;
    this.#options = options;
    this.#add(roots.flatMap(({ real }) => this.#below(real)));
  }

  /** Gives the next event; null when the watch is closed or nobody waits any more. */
  next(signal: AbortSignal): Event | null | Promise<Event | null> {
    if (this.#closed || this.#queue.length > 0) return this.#queue.shift() ?? null;
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      signal.addEventListener("abort", () => {
        const at = this.#waiting.indexOf(resolve);
        if (at >= 0) this.#waiting.splice(at, 1);
        resolve(null);
      }, { once: true });
    });
  }

  close(): void {
    this.#closed = true;
    this.#queue.length = 0;
    for (const { watcher } of this.#parts) watcher.close();
    for (const resolve of this.#waiting.splice(0)) resolve(null);
  }

  #add(paths: readonly string[]): void {
    if (paths.length === 0) return;
    const merged = this.#parts.length < PART_MAX ? [] : this.#parts.splice(1);
    const kept = merged.flatMap((part) => part.paths).filter((path) => lookAt(path)?.isDirectory);
    const all = [...kept, ...paths];
    const watcher = Deno.watchFs(all, { recursive: false });
    this.#parts.push({ watcher, paths: all });
    for (const part of merged) part.watcher.close();
    void this.#follow(watcher);
  }

  async #follow(watcher: Deno.FsWatcher): Promise<void> {
    try {
      for await (const event of watcher) this.#take(event);
    } catch {
      this.#push({ kind: "other", paths: [], flag: "rescan" }); // it broke: who watches looks anew
    }
  }

  #take({ kind, paths, flag }: Deno.FsEvent): void {
    const seen = paths.filter((path) => this.#options.shows(path));
    if (seen.length > 0 || paths.length === 0) {
      this.#push({ kind, paths: seen.map((path) => this.#shown(path)), flag: flag ?? null });
    }
    if (kind === "remove") seen.forEach((path) => this.#folders.delete(path));
    if (!this.#options.recursive || (kind !== "create" && kind !== "rename")) return;
    try {
      this.#add(seen.filter((path) => lookAt(path)?.isDirectory).flatMap((p) => this.#below(p)));
    } catch {
      // Gone again, or too many: what the system does not watch is told by nobody.
      this.#push({ kind: "other", paths: [], flag: "rescan" });
    }
  }

  #push(event: Event): void {
    const resolve = this.#waiting.shift();
    if (resolve) return resolve(event);
    if (this.#queue.length < EVENT_MAX) return void this.#queue.push(event);
    this.#queue.splice(0, EVENT_MAX, { kind: "other", paths: [], flag: "rescan" });
  }

  #shown(path: string): string {
    const root = this.#roots.find(({ real }) => within(real, path));
    return root ? root.shown + path.slice(root.real.length) : path;
  }

  /** Gives a folder and those in it, links not followed, that are not watched yet. */
  #below(top: string): string[] {
    const fresh = [top].filter((path) => !this.#folders.has(path));
    if (!lookAt(top)?.isDirectory) return fresh;
    for (let at = 0; at < fresh.length; at++) {
      const folder = fresh[at] ?? "";
      this.#folders.add(folder);
      if (this.#folders.size > FOLDER_MAX) {
        const why = `more than ${FOLDER_MAX} folders`;
        throw refusal("SANDBOX_DENIED", { op: "watch", asked: top }, why);
      }
      if (!this.#options.recursive) break;
      for (const { name, isDirectory } of Deno.readDirSync(folder)) {
        const path = joinPath(folder, name);
        if (isDirectory && !this.#folders.has(path) && this.#options.shows(path)) fresh.push(path);
      }
    }
    return fresh;
  }
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
