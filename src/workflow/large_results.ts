/**
 * Large results: keeps them, describes them in a short answer, and returns the parts that a model
 * reads later.
 *
 * @module
 */

import { argumentShape } from "../audit/shape.ts";
import type { ConfigOwner } from "../config/current_config.ts";
import { durationText } from "../core/amounts.ts";
import { type Call, textResult, type ToolResult } from "../protocol/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { type Json, type JsonObject, quoted, visible, withoutUndefined } from "../core/json.ts";
import { isRemark, outputOf } from "../protocol/output.ts";
import type { Selector } from "../servers/module/select_children.ts";
import { pageOf, parsePageRequest, RESULTS, shapeLine } from "./_page.ts";
import { MissingReference, partAt } from "./_refs.ts";
import { sampleOf } from "./_sample.ts";
import {
  countLines,
  firstAndLastLines,
  grepText,
  grepValue,
  linesOf,
  parseLineRange,
} from "./_text_parts.ts";
import { jsonSize, type Results, type ResultSource } from "./results.ts";
import type { RunJournal } from "./run_scope.ts";

/** The name of a meta-tool that reads kept results. */
export type Reader = "call" | "execute_workflow";

/** A part of a kept result. */
export interface StoredPart {
  readonly text: string;
  readonly mimeType: "application/json" | "text/plain";
}

/** A request to read a part of a kept result. */
export interface StoredPartRequest {
  readonly uri: string;
  /** Parameters that replace the parameters of the URI. */
  readonly overrides?: JsonObject | undefined;
  /** A JSON pointer or a JMESPath expression. */
  readonly select?: string | undefined;
  readonly actor: string;
  readonly signal: AbortSignal;
}

/**
 * The maximum number of characters of the first and the last lines, and of the sample of JSON. Some
 * clients show a model only 2,000 characters of a result.
 */
const [HEAD_MAX, TAIL_MAX, SAMPLE_MAX] = [600, 500, 1_000];
/** The maximum length of a pointer or an expression in the journal. */
const RECORD_MAX = 500;
/** The maximum length of the pointer in an answer. */
const POINTER_MAX = 60;
/** The request in an answer reads one line and this many lines after it. */
const LINES_HINT = 199;

/** The collaborators of `LargeResults`. */
export interface LargeResultsParts {
  readonly selector: Selector;
  readonly journal: RunJournal;
  readonly policy: ConfigOwner<"limits">;
}

/** Keeps large results, and reads them. */
export class LargeResults {
  readonly #results: Results;
  readonly #selector: Selector;
  readonly #journal: RunJournal;
  readonly #policy: ConfigOwner<"limits">;

  /** Creates an instance with its collaborators. */
  constructor(results: Results, { selector, journal, policy }: LargeResultsParts) {
    this.#results = results;
    this.#selector = selector;
    this.#journal = journal;
    this.#policy = policy;
  }

  /**
   * Keeps an output. Returns the URI of the output, and the text that replaces the output: its
   * size, how to read its parts, and its beginning. Returns undefined if the output exceeds the
   * size limit.
   */
  async keep(
    output: Json,
    { actor, reader, source }: {
      readonly actor: string;
      readonly reader: Reader;
      readonly source: ResultSource | undefined;
    },
  ): Promise<{ readonly uri: string; readonly text: string } | undefined> {
    const uri = this.#store(output, actor, source);
    if (uri === undefined) return undefined;
    const { keptMs } = this.#policy.config.limits;
    const keptAs = `kept for ${durationText(keptMs)} as ${uri}`;
    const lines = typeof output === "string"
      ? await describeText(output, { keptAs, writeRequest: readHint(uri, reader) })
      : describeJson(output, { keptAs, writeRequest: readHint(uri, reader) });
    return { uri, text: lines.join("\n") };
  }

  /** Returns a part of a kept result. Throws BAD_ARGUMENTS if it has no such part. */
  async read(
    { uri, overrides: more, select, actor, signal }: StoredPartRequest,
  ): Promise<StoredPart> {
    const request = parsePageRequest(uri, more);
    const { name, pointer, offset, lines, grep } = request;
    const output = this.#results.output(name, actor);
    const about = withoutUndefined({
      result: name,
      pointer: pointer === "" ? undefined : visible(pointer, RECORD_MAX),
      lines,
      grep: grep === undefined ? undefined : argumentShape({ grep }),
      select: select === undefined ? undefined : maskLiterals(select),
    });
    this.#journal.record("result read", { actor, about });
    if (select !== undefined) {
      const part = await this.select(partAt(output, { source: name, pointer }), { select, signal });
      return { text: textOf(part), mimeType: "application/json" };
    }
    if (lines === undefined && grep === undefined) {
      return { text: JSON.stringify(pageOf(output, request)), mimeType: "application/json" };
    }
    const part = partAt(output, { source: name, pointer });
    return { text: await partText(part, { lines, grep, offset }), mimeType: "text/plain" };
  }

  /** Throws BAD_ARGUMENTS if a text is neither a JSON pointer nor a JMESPath expression. */
  async assertSelects(select: string, signal: AbortSignal): Promise<void> {
    if (!isPointer(select)) await this.#selector.assertValid(select, signal);
  }

  /**
   * Returns the part of a value that a JSON pointer or a JMESPath expression selects. Throws
   * BAD_ARGUMENTS with the shape of the value if it selects nothing.
   */
  async select(
    value: Json,
    { select, signal }: { readonly select: string; readonly signal: AbortSignal },
  ): Promise<Json> {
    if (typeof value !== "object" || value === null) throw noMatch(value, select);
    if (!isPointer(select)) {
      const selected = await this.#selector.select(value, select, signal);
      if (selected === null) throw noMatch(value, select);
      return selected;
    }
    try {
      return partAt(value, { source: "result", pointer: select });
    } catch (error) {
      throw error instanceof MissingReference ? noMatch(value, select) : error;
    }
  }

  /**
   * Selects a part of the output of a tool that ran. The error for a part that does not exist names
   * the kept output, so that the tool need not run again.
   */
  async selectFrom(
    output: Json,
    { select, call }: {
      readonly select: string;
      readonly call: Pick<Call, "id" | "arguments" | "callId" | "actor" | "cancellation">;
    },
  ): Promise<string> {
    const { id: tool, callId, actor, cancellation: { signal } } = call;
    const about = { tool, callId, select: maskLiterals(select) };
    this.#journal.record("result selected", { actor, about });
    try {
      return textOf(await this.select(output, { select, signal }));
    } catch (error) {
      if (signal.aborted) throw error;
      const { code, message } = asPmlError(error);
      const uri = this.#store(output, actor, call);
      const hint = uri === undefined
        ? "The tool ran. Call it again with another `select` if it only reads"
        : `The tool ran. Do not call it again: select from its result with ` +
          `call {"tool":"${uri}","select":…}`;
      throw new PmlError(code, message, { hint, cause: error });
    }
  }

  /** Returns the selected part of a result as a new result, with PML's remarks about the result. */
  async selectedResult(
    result: ToolResult,
    options: Parameters<LargeResults["selectFrom"]>[1],
  ): Promise<ToolResult> {
    const text = await this.selectFrom(outputOf(result), options);
    const { content, _meta } = result;
    const remarks = content.filter(isRemark);
    return { content: [...textResult(text).content, ...remarks], ...withoutUndefined({ _meta }) };
  }

  /** Returns the call whose result is kept; undefined for an output of a plan. */
  sourceOf(uri: string, actor: string): ResultSource | undefined {
    return this.#results.sourceOf(parsePageRequest(uri).name, actor);
  }

  #store(output: Json, actor: string, source: ResultSource | undefined): string | undefined {
    const { id, arguments: args } = source ?? {};
    const call = id && args && { id, arguments: args };
    const name = this.#results.put(actor, output, call);
    return name === undefined ? undefined : `${RESULTS}${name}`;
  }
}

/** Returns a range of lines, or the lines or values that contain the text `grep`. */
async function partText(
  part: Json,
  { lines, grep, offset }: {
    readonly lines: string | undefined;
    readonly grep: string | undefined;
    readonly offset: number;
  },
): Promise<string> {
  if (grep !== undefined) {
    const search = { needle: grep, offset };
    return typeof part === "string" ? await grepText(part, search) : await grepValue(part, search);
  }
  if (typeof part === "string") return await linesOf(part, parseLineRange(lines ?? ""));
  throw new PmlError("BAD_ARGUMENTS", `Cannot read lines: it is ${shapeLine(part)}, not a text`, {
    hint: "Name a text with `pointer`, or search with `grep`",
  });
}

/** Returns the pointer of an object's first array or object; else of its first member. */
function firstPointer(output: Json): string {
  const members = Object.entries(output ?? {});
  const [name = ""] = members.find(([, member]) => typeof member === "object") ?? members[0] ?? [];
  return `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** Describes in an answer where an output is kept, and writes requests to read parts of it. */
type Description = {
  readonly keptAs: string;
  readonly writeRequest: (parameters: JsonObject, ...others: readonly JsonObject[]) => string;
};

async function describeText(
  text: string,
  { keptAs, writeRequest }: Description,
): Promise<readonly string[]> {
  const total = await countLines(text);
  const { first, last } = firstAndLastLines(text, { head: HEAD_MAX, tail: TAIL_MAX });
  const next = Math.min(first.length + 1, total);
  const lines = `${next}-${Math.min(next + LINES_HINT, total)}`;
  return [
    `Result: text of ${text.length} characters in ${total} lines, ${keptAs}`,
    `Read on: ${writeRequest({ lines }, { grep: "TEXT" })}`,
    "--- first lines ---",
    ...first,
    "--- last lines ---",
    ...last,
  ];
}

function describeJson(output: Json, { keptAs, writeRequest }: Description): readonly string[] {
  const pointer = Array.isArray(output) ? undefined : visible(firstPointer(output), POINTER_MAX);
  const page = withoutUndefined({ pointer, offset: 0, limit: 20 });
  return [
    `Result: JSON of ${jsonSize(output)} characters, ${keptAs}`,
    `Shape: ${shapeLine(output)}`,
    `Read on: ${writeRequest({ grep: "TEXT" }, page)}`,
    "--- beginning ---",
    sampleOf(output, SAMPLE_MAX),
  ];
}

/** Returns a function that writes the requests that read a kept output. */
function readHint(uri: string, reader: Reader): Description["writeRequest"] {
  return (parameters, ...others) => {
    if (reader === "execute_workflow") {
      const more = others.map((other) => `, or ?${queryOf(other)}`).join("");
      return `execute_workflow ${JSON.stringify({ read: `${uri}?${queryOf(parameters)}` })}${more}`;
    }
    const more = others.map((other) => `, or ${JSON.stringify(other)}`).join("");
    const select = parameters.lines === undefined
      ? ', or "select":"JMESPATH" in place of arguments'
      : "";
    return `call ${JSON.stringify({ tool: uri, arguments: parameters })}${more}${select}`;
  };
}

function isPointer(select: string): boolean {
  return select.startsWith("/");
}

function textOf(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function queryOf(parameters: JsonObject): string {
  return Object.entries(parameters).map(([name, value]) => `${name}=${value}`).join("&");
}

/** Replaces the literal values in an expression, because the journal must not contain values. */
function maskLiterals(select: string): string {
  const masked = select.replace(/'(?:[^'\\]|\\.)*'?|`(?:[^`\\]|\\.)*`?/gs, "'…'");
  return visible(masked, RECORD_MAX);
}

function noMatch(value: Json, select: string): PmlError {
  const shape = typeof value === "string" ? `text of ${value.length} characters` : shapeLine(value);
  return new PmlError(
    "BAD_ARGUMENTS",
    `Cannot select ${quoted(select, 200)}: nothing matches. The result is ${shape}`,
    { hint: "Select a part that the result has" },
  );
}
