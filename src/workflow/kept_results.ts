/**
 * Large results: keeps them, describes them in a short answer, and returns the parts that a model
 * reads later.
 *
 * @module
 */

import { argumentShape } from "../audit/shape.ts";
import type { ConfigOwner } from "../config/current_config.ts";
import { durationText } from "../core/amounts.ts";
import type { Call } from "../protocol/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { defined, type Json, type JsonObject, quoted, visible } from "../core/json.ts";
import type { Selector } from "../servers/module/select_child.ts";
import { pageOf, pageRequestOf, RESULTS, shapeLine } from "./_page.ts";
import { MissingReference, partAt } from "./_refs.ts";
import { sampleOf } from "./_sample.ts";
import { countLines, endsOf, grepText, grepValue, lineRangeOf, linesOf } from "./_text_parts.ts";
import { jsonSize, type KeptSource, type Results } from "./results.ts";
import type { RunJournal } from "./run_scope.ts";

/** The meta-tools that read kept results. */
export type Reader = "call" | "execute_workflow";

/** A part of a kept result. */
export interface KeptPart {
  readonly text: string;
  readonly mimeType: "application/json" | "text/plain";
}

/** A request to read a part of a kept result. */
export interface KeptRequest {
  readonly uri: string;
  /** Parameters that replace those of the URI. */
  readonly more?: JsonObject | undefined;
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
const RECORDED_MAX = 500;
const POINTER_MAX = 60;
/** How many lines the request in an answer reads. */
const LINES_HINT = 199;

/** The collaborators of `KeptResults`. */
export interface KeptParts {
  readonly selector: Selector;
  readonly journal: RunJournal;
  readonly policy: ConfigOwner<"limits">;
}

/** Keeps large results, and reads them. */
export class KeptResults {
  readonly #results: Results;
  readonly #selector: Selector;
  readonly #journal: RunJournal;
  readonly #policy: ConfigOwner<"limits">;

  /** Takes the collaborators. */
  constructor(results: Results, { selector, journal, policy }: KeptParts) {
    this.#results = results;
    this.#selector = selector;
    this.#journal = journal;
    this.#policy = policy;
  }

  /**
   * Keeps an output. Returns its URI, and the text that replaces it: its size, how to read parts of
   * it, and its beginning. Undefined if it exceeds the size limit.
   */
  async keep(
    output: Json,
    { actor, reader, source }: {
      readonly actor: string;
      readonly reader: Reader;
      readonly source: KeptSource | undefined;
    },
  ): Promise<{ readonly uri: string; readonly text: string } | undefined> {
    const uri = this.#put(output, actor, source);
    if (uri === undefined) return undefined;
    const { keptMs } = this.#policy.config.limits;
    const place = `kept for ${durationText(keptMs)} as ${uri}`;
    const lines = typeof output === "string"
      ? await aboutText(output, { place, how: readHint(uri, reader) })
      : aboutJson(output, { place, how: readHint(uri, reader) });
    return { uri, text: lines.join("\n") };
  }

  /** Returns a part of a kept result. Throws BAD_ARGUMENTS if it has no such part. */
  async read({ uri, more, select, actor, signal }: KeptRequest): Promise<KeptPart> {
    const request = pageRequestOf(uri, more);
    const { name, pointer, offset, lines, grep } = request;
    const output = this.#results.output(name, actor);
    const about = defined({
      result: name,
      pointer: pointer === "" ? undefined : visible(pointer, RECORDED_MAX),
      lines,
      grep: grep === undefined ? undefined : argumentShape({ grep }),
      select: select === undefined ? undefined : recorded(select),
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
    const about = { tool, callId, select: recorded(select) };
    this.#journal.record("result selected", { actor, about });
    try {
      return textOf(await this.select(output, { select, signal }));
    } catch (error) {
      if (signal.aborted) throw error;
      const { code, message } = asPmlError(error);
      const uri = this.#put(output, actor, call);
      const hint = uri === undefined
        ? "The tool ran. Call it again with another `select` if it only reads"
        : `The tool ran. Do not call it again: select from its result with ` +
          `call {"tool":"${uri}","select":…}`;
      throw new PmlError(code, message, { hint, cause: error });
    }
  }

  /** Returns the call whose result is kept; undefined for an output of a plan. */
  sourceOf(uri: string, actor: string): KeptSource | undefined {
    return this.#results.sourceOf(pageRequestOf(uri).name, actor);
  }

  #put(output: Json, actor: string, source: KeptSource | undefined): string | undefined {
    const { id, arguments: args } = source ?? {};
    const call = id && args && { id, arguments: args };
    const name = this.#results.put(actor, output, call);
    return name === undefined ? undefined : `${RESULTS}${name}`;
  }
}

/** Returns lines of a text, or the lines or values with a text in them. */
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
  if (typeof part === "string") return await linesOf(part, lineRangeOf(lines ?? ""));
  throw new PmlError("BAD_ARGUMENTS", `Cannot read lines: it is ${shapeLine(part)}, not a text`, {
    hint: "Name a text with `pointer`, or search with `grep`",
  });
}

/** Returns the pointer of the first array or object in an object, or of its first member. */
function firstPointer(output: Json): string {
  const members = Object.entries(output ?? {});
  const [name = ""] = members.find(([, one]) => typeof one === "object") ?? members[0] ?? [];
  return `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** The place of a kept output in an answer, and a function that writes requests to read it. */
type About = {
  readonly place: string;
  readonly how: (parameters: JsonObject, ...others: readonly JsonObject[]) => string;
};

async function aboutText(text: string, { place, how }: About): Promise<readonly string[]> {
  const total = await countLines(text);
  const { first, last } = endsOf(text, { head: HEAD_MAX, tail: TAIL_MAX });
  const next = Math.min(first.length + 1, total);
  const lines = `${next}-${Math.min(next + LINES_HINT, total)}`;
  return [
    `Result: text of ${text.length} characters in ${total} lines, ${place}`,
    `Read on: ${how({ lines }, { grep: "TEXT" })}`,
    "--- first lines ---",
    ...first,
    "--- last lines ---",
    ...last,
  ];
}

function aboutJson(output: Json, { place, how }: About): readonly string[] {
  const pointer = Array.isArray(output) ? undefined : visible(firstPointer(output), POINTER_MAX);
  const page = defined({ pointer, offset: 0, limit: 20 });
  return [
    `Result: JSON of ${jsonSize(output)} characters, ${place}`,
    `Shape: ${shapeLine(output)}`,
    `Read on: ${how({ grep: "TEXT" }, page)}`,
    "--- beginning ---",
    sampleOf(output, SAMPLE_MAX),
  ];
}

/** Returns a function that writes the requests that read a kept output. */
function readHint(uri: string, reader: Reader): About["how"] {
  return (parameters, ...others) => {
    if (reader === "execute_workflow") {
      const more = others.map((one) => `, or ?${queryOf(one)}`).join("");
      return `execute_workflow ${JSON.stringify({ read: `${uri}?${queryOf(parameters)}` })}${more}`;
    }
    const more = others.map((one) => `, or ${JSON.stringify(one)}`).join("");
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

/** Returns an expression as the journal contains it: without literal values. */
function recorded(select: string): string {
  const masked = select.replace(/'(?:[^'\\]|\\.)*'?|`(?:[^`\\]|\\.)*`?/gs, "'…'");
  return visible(masked, RECORDED_MAX);
}

function noMatch(value: Json, select: string): PmlError {
  const shape = typeof value === "string" ? `text of ${value.length} characters` : shapeLine(value);
  return new PmlError(
    "BAD_ARGUMENTS",
    `Cannot select ${quoted(select, 200)}: nothing matches. The result is ${shape}`,
    { hint: "Select a part that the result has" },
  );
}
