/**
 * Shows the events of a watched module: as lines for a user, as JSON for a script.
 *
 * @module
 */

import type { ToolResult } from "../protocol/call.ts";
import { shownPlace, type TextPlace } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { adviceLines, type GrantAdvice } from "./_dev_grant.ts";
import { resultText } from "./_result.ts";
import { isTerminal } from "./_terminal.ts";
import { fitToTerminal, print, tell } from "./out.ts";

/** A finding of a check, and its position in the file. */
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
  /** Whether PML repeated the call because the file was saved. */
  readonly repeated: boolean;
  readonly ms: number;
  /** Whether the file was saved during the call, so that the earlier code ran. */
  readonly stale: boolean;
  /** The changes that grant the missing permission. */
  readonly grant?: GrantAdvice | undefined;
}

/** The advice for a failure. */
interface FailureAdvice {
  readonly grant?: GrantAdvice | undefined;
  readonly hint?: string | undefined;
}

/** An event of `pml dev`. */
export type DevEvent =
  | {
    readonly event: "check";
    readonly ok: boolean;
    readonly ms: number;
    readonly server: string;
    /** A text about the permissions of the module. */
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

/** Prints events. */
export class DevOutput {
  readonly #file: string;
  readonly #isJson: boolean;
  /** The last shown text about permissions, which is not shown again. */
  #runs = "";
  /** The last shown advice, which is not shown again. */
  #advice = "";

  /** `file` is the path as the user typed it. */
  constructor(file: string, { isJson }: { readonly isJson: boolean }) {
    this.#file = file;
    this.#isJson = isJson;
  }

  /** Shows an event. */
  show(event: DevEvent): void {
    if (this.#isJson) return print(JSON.stringify(event));
    print(this.#linesOf(event).filter(Boolean).join("\n"), fitToTerminal);
  }

  /** Shows that the user can type a line, or ends this line before another output. */
  prompt(text: "> " | "\n"): void {
    if (!this.#isJson && isTerminal()) tell(text, { end: "" });
  }

  #linesOf(event: DevEvent): readonly string[] {
    switch (event.event) {
      case "check":
        return this.#checkLines(event);
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
          `${sign(!result.isError)} ${callText(event)}`,
          ...this.#adviceLines(event),
        ];
      }
      case "error": {
        const about = event.tool === undefined ? "" : `${callText(event)}: `;
        return [
          `${sign(false)} ${about}${event.code}: ${event.message}`,
          ...this.#adviceLines(event),
        ];
      }
    }
  }

  #checkLines({ ok, ms, server, runs, tools, checks }: DevEvent & { event: "check" }) {
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
  #adviceLines({ grant, hint = "" }: FailureAdvice) {
    if (grant === undefined) return [hint && `  ${hint}`];
    const lines = adviceLines(grant, this.#file);
    const text = lines.join("\n");
    if (text === this.#advice) return ["  The same permission is missing; the lines are above"];
    this.#advice = text;
    return lines;
  }
}

function callText({ tool, ms, repeated, stale }: Partial<ShownCall>): string {
  const code = stale ? ", code from before" : "";
  return `${tool} (${repeated ? "again, " : ""}${ms} ms${code})`;
}

function sign(isOk: boolean): string {
  return isOk ? "✔" : "✘";
}
