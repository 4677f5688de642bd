/**
 * Shows the events of a followed module: as lines for a user, as JSON for a script.
 *
 * @module
 */

import type { ToolResult } from "../protocol/call.ts";
import { shownPlace, type TextPlace } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { adviceLines, type GrantAdvice } from "./_dev_grant.ts";
import { resultText } from "./_result.ts";
import { isTerminal } from "./_terminal.ts";
import { fitted, print, tell } from "./out.ts";

/** A finding of a check, at its place. */
interface ShownFinding extends TextPlace {
  readonly name: string;
  readonly state: "ok" | "failed" | "warning";
  readonly message: string;
  readonly hint?: string;
}

/** The call that an event is about. */
interface ShownCall {
  readonly tool: string;
  readonly arguments: JsonObject;
  /** Whether it was made because the file was saved. */
  readonly repeated: boolean;
  readonly ms: number;
  /** Whether the file was saved during the call, so that the earlier code ran. */
  readonly stale: boolean;
  /** The changes that grant the missing permission. */
  readonly grant?: GrantAdvice | undefined;
}

/** The advice for a failure. */
interface Advised {
  readonly grant?: GrantAdvice | undefined;
  readonly hint?: string | undefined;
}

/** Something that happened. */
export type DevEvent =
  | {
    readonly event: "check";
    readonly ok: boolean;
    readonly ms: number;
    readonly server: string;
    /** The permissions with which it runs. */
    readonly runs: string;
    readonly tools: readonly string[];
    readonly checks: readonly ShownFinding[];
  }
  | { readonly event: "help"; readonly tools: readonly string[] }
  | { readonly event: "log"; readonly level: string; readonly text: string }
  | ShownCall & { readonly event: "call"; readonly result: ToolResult }
  | Partial<ShownCall> & {
    readonly event: "error";
    readonly code: string;
    readonly message: string;
    readonly hint?: string | undefined;
  };

/** Shows events. */
export class DevShown {
  readonly #file: string;
  readonly #isJson: boolean;
  #runs = "";
  #advice = "";

  /** Takes the file as it was typed. */
  constructor(file: string, { isJson }: { readonly isJson: boolean }) {
    this.#file = file;
    this.#isJson = isJson;
  }

  /** Shows an event. */
  show(event: DevEvent): void {
    if (this.#isJson) return print(JSON.stringify(event));
    print(this.#linesOf(event).filter(Boolean).join("\n"), fitted);
  }

  /** Shows that a line can be typed, or ends that line where something else is shown. */
  prompt(text: "> " | "\n"): void {
    if (!this.#isJson && isTerminal()) tell(text, { end: "" });
  }

  #linesOf(event: DevEvent): readonly string[] {
    switch (event.event) {
      case "check":
        return this.#checked(event);
      case "help":
        return [
          `Tools: ${event.tools.join(", ") || "none"}`,
          "TOOL key=value, or TOOL {JSON}, calls a tool; TOOL alone uses its last arguments",
          "Enter repeats the last call; Ctrl-C ends pml dev",
        ];
      case "log":
        return [`${event.level}: ${event.text}`];
      case "call": {
        const { result } = event;
        return [
          resultText(result),
          `${sign(!result.isError)} ${ended(event)}`,
          ...this.#more(event),
        ];
      }
      case "error": {
        const about = event.tool === undefined ? "" : `${ended(event)}: `;
        return [`${sign(false)} ${about}${event.code}: ${event.message}`, ...this.#more(event)];
      }
    }
  }

  #checked({ ok, ms, server, runs, tools, checks }: DevEvent & { event: "check" }) {
    const problems = checks.flatMap(({ state, message, hint = "", ...place }) => {
      if (state === "ok") return [];
      const at = shownPlace(this.#file, place);
      return [`${state === "failed" ? sign(false) : "!"} ${at}: ${message}`, hint && `  ${hint}`];
    });
    const changed = this.#runs === runs ? "" : runs;
    this.#runs = runs;
    return [
      ...problems,
      `${sign(ok)} ${[server, tools.join(", ")].filter(Boolean).join(": ")} (${ms} ms)`,
      changed,
    ];
  }

  /** Returns the lines of the advice. A grant to add is more precise than the hint. */
  #more({ grant, hint = "" }: Advised) {
    if (grant === undefined) return [hint && `  ${hint}`];
    const lines = adviceLines(grant, this.#file);
    const text = lines.join("\n");
    if (text === this.#advice) return ["  The same permission is missing; the lines are above"];
    this.#advice = text;
    return lines;
  }
}

function ended({ tool, ms, repeated, stale }: Partial<ShownCall>): string {
  const code = stale ? ", code from before" : "";
  return `${tool} (${repeated ? "again, " : ""}${ms} ms${code})`;
}

function sign(isWell: boolean): string {
  return isWell ? "✔" : "✘";
}
