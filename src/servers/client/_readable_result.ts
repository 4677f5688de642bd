/**
 * Corrects the results of servers: a client that cannot read one member of a result may refuse all of
 * it. Optional members that are null are removed. A block that cannot be corrected becomes a text.
 *
 * @module
 */

import type { ContentBlock, ToolResult } from "../../protocol/call.ts";
import { numberOf } from "../../core/exact_number.ts";
import { defined, isObject, visible } from "../../core/json.ts";
import { remarkOf } from "../../protocol/output.ts";
import { isDateTime, mimeTypeIn, readableBase64 } from "./_result_values.ts";

type ResultMembers = Readonly<Record<string, unknown>>;

/** The options of `readableResult`. */
export interface ReadableOptions {
  readonly method: string;
  /** The address that `resources/read` asked for. */
  readonly uri?: string | undefined;
  /** Whether null is structured content, as in the stateless revision. */
  readonly isStateless?: boolean | undefined;
  /** Returns the extensions of the protocol that the client supports. */
  readonly extensions: () => readonly string[];
}

/** The key in `_meta` under which a result names its corrections. */
const REPAIRS = "pml/repairs";
/** The maximum number of corrections that a result names, and of characters of a value in one. */
const [NAMED_MAX, VALUE_MAX] = [10, 100];
const ROLES = ["user", "assistant"];
const THEMES = ["light", "dark"];
/** The maximum number of values of a completion. */
const VALUES_MAX = 100;
/** The methods whose results are those of tools. */
const TOOLS = ["tools/call", "tasks/result"];
/** The optional members of a task's state in which null has no meaning. */
const OF_TASKS = ["statusMessage", "pollInterval", "pollIntervalMs"];

/**
 * Returns a result that every client can read: the same object if it already is. Undefined if the
 * answer of a server is not a result. A tool that ran always has a result.
 */
export function readableResult(
  answer: unknown,
  options: ReadableOptions,
): ResultMembers | undefined {
  const isOfTool = TOOLS.includes(options.method);
  if (!isObject(answer)) {
    const isAny = isOfTool && answer !== undefined;
    return isAny ? new Repair(options).ofTool({ content: answer }, "the result") : undefined;
  }
  return isOfTool && isPlain(answer) ? answer : new Repair(options).result(answer);
}

/** Returns whether the result of a tool has only texts and members of the right kind. */
function isPlain({ content, structuredContent, isError, _meta }: ResultMembers): boolean {
  return structuredContent !== null && (_meta === undefined || isObject(_meta)) &&
    (isError === undefined || typeof isError === "boolean") && Array.isArray(content) &&
    content.every(isPlainText);
}

function isPlainText(block: unknown): boolean {
  if (!isObject(block) || block.type !== "text" || typeof block.text !== "string") return false;
  return !("annotations" in block) && (block._meta === undefined || isObject(block._meta));
}

/** A check of a member, and the fault of a value that fails it. */
type MemberCheck = readonly [is: (value: unknown) => boolean, what: string];

const TEXT: MemberCheck = [(value) => typeof value === "string", "no text"];
const NUMBER: MemberCheck = [(value) => numberOf(value) !== undefined, "no number"];
const OBJECT: MemberCheck = [isObject, "no object"];
const LIST: MemberCheck = [Array.isArray, "no list"];
const NO_BASE64 = "no plain base64";
const COMMON: Readonly<Record<string, MemberCheck>> = { annotations: OBJECT, _meta: OBJECT };
const RESOURCE: Readonly<Record<string, MemberCheck>> = { mimeType: TEXT, _meta: OBJECT };
const LINK: Readonly<Record<string, MemberCheck>> = {
  ...COMMON,
  title: TEXT,
  description: TEXT,
  mimeType: TEXT,
  size: NUMBER,
  icons: LIST,
};
const ICON: Readonly<Record<string, MemberCheck>> = {
  mimeType: TEXT,
  sizes: [(value) => Array.isArray(value) && value.every(TEXT[0]), "no list of texts"],
  theme: [(value) => THEMES.includes(value as string), "neither light nor dark"],
};
const ANNOTATIONS: Readonly<Record<string, MemberCheck>> = {
  audience: [
    (value) => Array.isArray(value) && value.every((one) => ROLES.includes(one)),
    "no list of user and assistant",
  ],
  priority: [isPart, "not from 0 to 1"],
  lastModified: [isDateTime, "no date and time with a time zone"],
};

function isPart(value: unknown): boolean {
  const number = numberOf(value) ?? -1;
  return number >= 0 && number <= 1;
}

/** Corrects one result, and collects the corrections. */
class Repair {
  readonly #options: ReadableOptions;
  readonly #repairs: string[] = [];
  #count = 0;

  constructor(options: ReadableOptions) {
    this.#options = options;
  }

  result(result: ResultMembers): ResultMembers {
    const { method } = this.#options;
    switch (method) {
      case "tools/call":
      case "tasks/result":
        return this.ofTool(result);
      case "prompts/get":
        return this.#remarked(this.#ofPrompt(result));
      case "resources/read":
        return this.#remarked(this.#ofResource(result));
      case "completion/complete":
        return this.#remarked(this.#ofCompletion(result));
      default:
        return method.startsWith("tasks/") ? this.#ofTask(result) : result;
    }
  }

  /**
   * Corrects the result of a tool. `odd` is the name of an answer that is no result: `result` has
   * it as content.
   */
  ofTool(result: ResultMembers, odd?: string): ResultMembers {
    const { content, structuredContent, isError } = result;
    if (odd !== undefined) this.#note(odd, undefined, OBJECT[1]);
    // The result of a task that has only begun.
    const isTask = result.resultType === "task" || isObject(result.task) && content === undefined;
    if (isTask) return this.#members(result, { _meta: OBJECT });
    const isNull = structuredContent === null && this.#options.isStateless !== true;
    const readable = this.#with(this.#members(result, { _meta: OBJECT }), {
      content: this.#blocks(content),
      structuredContent: isNull ? undefined : structuredContent,
      isError: this.#flag("isError", isError),
    });
    return this.#remarked(readable, true);
  }

  #ofPrompt(result: ResultMembers): ResultMembers {
    const messages = Array.isArray(result.messages) ? result.messages : [];
    if (messages !== result.messages) this.#note("messages", result.messages, LIST[1]);
    return this.#with(this.#members(result, { description: TEXT, _meta: OBJECT }), {
      messages: this.#list(messages.flatMap((one) => this.#messages(one)), messages),
    });
  }

  /** Returns a message of a prompt. One with several blocks becomes several. */
  #messages(message: unknown): readonly unknown[] {
    const fields = isObject(message) ? message : { role: "user", content: message };
    const role = ROLES.includes(fields.role as string) ? fields.role : "user";
    if (role !== fields.role) this.#note("role", fields.role, "neither user nor assistant");
    const { content } = fields;
    const blocks = Array.isArray(content) ? content : [content];
    if (blocks === content || !isObject(message)) this.#note("content", content, "no block");
    return blocks.map((one) => this.#with(fields, { role, content: this.#block(one) }));
  }

  #ofResource(result: ResultMembers): ResultMembers {
    const contents = Array.isArray(result.contents) ? result.contents : [result.contents ?? []];
    if (contents !== result.contents) this.#note("contents", result.contents, LIST[1]);
    const all = contents.flat().filter((one) => one !== null);
    return this.#with(this.#members(result, { _meta: OBJECT }), {
      contents: this.#list(all.map((one) => this.#contents(one)), contents),
    });
  }

  #contents(one: unknown): unknown {
    const object = isObject(one) ? one : { text: textIn(one) };
    const { text, blob } = object;
    const resource = this.#resource(object);
    if (resource !== undefined) return resource;
    this.#note("the text of a resource", text, TEXT[1]);
    const isEmpty = (text ?? blob ?? null) === null;
    const content = isEmpty ? "" : textIn(text ?? blob);
    return this.#resource({ ...object, text: content, blob: undefined });
  }

  #ofCompletion(result: ResultMembers): ResultMembers {
    const { completion } = result;
    const fields = isObject(completion) ? completion : {};
    const values = Array.isArray(fields.values) ? fields.values : [];
    const isFit = values === fields.values && values.length <= VALUES_MAX && values.every(TEXT[0]);
    if (!isFit) this.#note("values of the completion", fields.values, "no list of 100 texts");
    const kinds: Readonly<Record<string, MemberCheck>> = {
      total: [(value) => Number.isInteger(numberOf(value)), "no whole number"],
      hasMore: [(value) => typeof value === "boolean", "neither true nor false"],
    };
    return this.#with(this.#members(result, { _meta: OBJECT }), {
      completion: this.#with(this.#members(fields, kinds), {
        values: isFit ? values : values.slice(0, VALUES_MAX).map(textIn),
      }),
    });
  }

  /** Corrects the state of a task. The result within it is that of a tool. */
  #ofTask(state: ResultMembers): ResultMembers {
    const { result } = state;
    const nulls = OF_TASKS.filter((name) => state[name] === null);
    const inner = isObject(result) && ("content" in result || "isError" in result)
      ? readableResult(result, { ...this.#options, method: "tools/call" })
      : result;
    return this.#with(state, {
      ...Object.fromEntries(nulls.map((name) => [name, undefined])),
      result: inner,
    });
  }

  #blocks(content: unknown): readonly unknown[] {
    if (content === undefined || content === null) return [];
    if (!Array.isArray(content)) {
      this.#note("content", undefined, LIST[1]);
      return [typeof content === "string" ? { type: "text", text: content } : this.#block(content)];
    }
    return this.#list(
      content.filter((one) => one !== null).map((one) => this.#block(one)),
      content,
    );
  }

  /** Returns a block that every client can read. */
  #block(block: unknown): unknown {
    if (!isObject(block)) return this.#asText(block);
    switch (block.type) {
      case "text":
        return typeof block.text === "string"
          ? this.#common(block)
          : this.#asText(block, { text: block.text ?? "", why: "without a text" });
      case "image":
      case "audio":
        return this.#media(block, block.type);
      case "resource":
        return this.#embedded(block);
      case "resource_link":
        return this.#link(block);
      default:
        return this.#unknown(block);
    }
  }

  #unknown(block: ResultMembers): unknown {
    const { type, text, ...others } = block;
    const isOfExtension = (name: string) => type === name || `${type}`.startsWith(`${name}/`);
    if (typeof type === "string" && this.#options.extensions().some(isOfExtension)) return block;
    const isOnlyText = typeof text === "string" &&
      Object.keys(others).every((name) => name in COMMON);
    return this.#asText(block, { text: isOnlyText ? text : block });
  }

  /** Returns a text in place of a block that no client could read. */
  #asText(
    block: unknown,
    { text = block, why = "not known to MCP" }: { readonly text?: unknown; readonly why?: string } =
      {},
  ): ContentBlock {
    const { type, annotations, _meta } = isObject(block) ? block : {};
    const what = type === undefined ? "a block without type" : `a block of type ${shortJson(type)}`;
    this.#note(what, undefined, `${why}, sent as text`);
    const textBlock = defined({ type: "text", text: textIn(text), annotations, _meta });
    return this.#common(textBlock) as ContentBlock;
  }

  #media(block: ResultMembers, type: "image" | "audio"): unknown {
    const { data, mimeType, annotations, _meta } = block;
    const base64 = readableBase64(data);
    if (base64 === undefined) return this.#asText(block, { why: "without base64" });
    if (base64.data !== data) this.#note(`the data of an ${type}`, undefined, NO_BASE64);
    const fit = this.#with(block, { data: base64.data });
    if (typeof mimeType === "string") return this.#common(fit);
    const kind = base64.mimeType ?? mimeTypeIn(base64.data, type);
    this.#note(`the mimeType of an ${type}`, mimeType ?? undefined, TEXT[1]);
    if (kind !== undefined) return this.#common(this.#with(fit, { mimeType: kind }));
    // Models refuse a picture of an unknown kind. A resource needs no kind.
    const resource = { uri: `${type}:result`, blob: base64.data };
    return this.#common(defined({ type: "resource", resource, annotations, _meta }));
  }

  #embedded(block: ResultMembers): unknown {
    const resource = isObject(block.resource) ? this.#resource(block.resource) : undefined;
    if (resource === undefined) return this.#asText(block, { why: "without contents" });
    return this.#common(this.#with(block, { resource }));
  }

  /** Returns the contents of a resource; undefined if it has none. */
  #resource(resource: ResultMembers): ResultMembers | undefined {
    const { uri, text, blob } = resource;
    const base64 = readableBase64(blob);
    const isText = typeof text === "string";
    if (!isText && base64 === undefined) return undefined;
    const others = isText ? { blob: base64?.data } : { text: undefined, blob: base64?.data };
    const isCorrected = others.blob !== undefined && others.blob !== blob;
    if (isCorrected) this.#note("the blob of a resource", undefined, NO_BASE64);
    if (typeof uri !== "string") this.#note("the uri of a resource", uri, TEXT[1]);
    return this.#with(this.#members(resource, RESOURCE), {
      ...others,
      uri: typeof uri === "string" ? uri : this.#options.uri ?? "",
    });
  }

  #link(block: ResultMembers): unknown {
    const { uri, name, icons } = block;
    if (typeof uri !== "string") return this.#asText(block, { why: "without a uri" });
    if (typeof name !== "string") this.#note("the name of a link", name, TEXT[1]);
    const link = this.#with(this.#members(block, LINK), {
      name: typeof name === "string" ? name : uri,
      ...Array.isArray(icons) && { icons: this.#icons(icons) },
    });
    return this.#common(link);
  }

  #icons(icons: readonly unknown[]): readonly unknown[] {
    const fit = icons.filter((one) =>
      isObject(one) && typeof one.src === "string"
    ) as ResultMembers[];
    if (fit.length < icons.length) this.#note("an icon", undefined, "without src");
    return this.#list(fit.map((one) => this.#members(one, ICON)), icons);
  }

  /** Corrects the members that blocks of all kinds have. */
  #common(block: ResultMembers): ResultMembers {
    const members = this.#members(block, COMMON);
    const { annotations } = members;
    if (!isObject(annotations)) return members;
    return this.#with(members, { annotations: this.#members(annotations, ANNOTATIONS) });
  }

  #flag(name: string, value: unknown): boolean | undefined {
    if (value === undefined || value === null) return undefined;
    if (typeof value === "boolean") return value;
    this.#note(name, value, "neither true nor false");
    return value === "true" || value === 1 ? true : undefined;
  }

  /** Removes members that are null or of another kind. */
  #members(object: ResultMembers, kinds: Readonly<Record<string, MemberCheck>>): ResultMembers {
    const changes: Record<string, undefined> = {};
    for (const [name, [is, what]] of Object.entries(kinds)) {
      const value = object[name];
      if (value === undefined || is(value)) continue;
      if (value !== null) this.#note(name, value, what);
      changes[name] = undefined;
    }
    return this.#with(object, changes);
  }

  /** Returns an object with other members, without those that are undefined. */
  #with(object: ResultMembers, changes: ResultMembers): ResultMembers {
    const isSame = Object.keys(changes).every((name) => object[name] === changes[name]);
    if (isSame) return object;
    const all = Object.entries({ ...object, ...changes });
    return Object.fromEntries(all.filter(([, value]) => value !== undefined));
  }

  /** Returns the list from before if it has the same items. */
  #list(items: readonly unknown[], before: readonly unknown[]): readonly unknown[] {
    const isSame = items.length === before.length && items.every((one, at) => one === before[at]);
    return isSame ? before : items;
  }

  #note(what: string, value: unknown, why: string): void {
    if (++this.#count > NAMED_MAX) return;
    this.#repairs.push(`${what}${value === undefined ? "" : ` ${shortJson(value)}`}: ${why}`);
  }

  /** Adds the remark that names the corrections. */
  #remarked(result: ResultMembers, isOfTool = false): ResultMembers {
    if (this.#count === 0) return result;
    const more = this.#count - this.#repairs.length;
    const repairs = more > 0 ? [...this.#repairs, `${more} more`] : this.#repairs;
    const _meta = { ...isObject(result._meta) ? result._meta : {}, [REPAIRS]: repairs };
    if (!isOfTool) return { ...result, _meta };
    const { content } = result as unknown as ToolResult; // corrected above
    const text = "[PML: The tool did run. Its result breaks the MCP specification and was " +
      `corrected: ${repairs.join("; ")}]`;
    return { ...result, content: [...content, remarkOf(text)], _meta };
  }
}

function shortJson(value: unknown): string {
  return visible(jsonOf(value), VALUE_MAX);
}

function textIn(value: unknown): string {
  return typeof value === "string" ? value : jsonOf(value);
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "(JSON that is nested too deep)";
  }
}
