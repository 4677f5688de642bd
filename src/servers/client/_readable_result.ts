/**
 * Corrects the results of servers: a client that cannot read one member of a result may refuse the
 * whole result. Optional members that are null are removed. A content block that cannot be
 * corrected is replaced by a text block.
 *
 * @module
 */

import type { ContentBlock, ToolResult } from "../../protocol/call.ts";
import { numberOf } from "../../core/exact_number.ts";
import { isObject, visible, withoutUndefined } from "../../core/json.ts";
import { remarkOf } from "../../protocol/output.ts";
import { isDateTime, mimeTypeIn, readableBase64 } from "./_result_values.ts";

type ResultMembers = Readonly<Record<string, unknown>>;

/** The options of `readableResult`. */
export interface ReadableOptions {
  readonly method: string;
  /** The URI that `resources/read` requested. */
  readonly uri?: string | undefined;
  /** Whether null is valid structured content, as in the stateless revision. */
  readonly isStateless?: boolean | undefined;
  /** Returns the extensions of the protocol that the client supports. */
  readonly extensions: () => readonly string[];
}

/** The key in `_meta` under which a result names its corrections. */
const REPAIRS = "pml/repairs";
/**
 * The maximum number of listed corrections, and the maximum length of a value in one, in
 * characters.
 */
const [NAMED_MAX, VALUE_MAX] = [10, 100];
const ROLES = ["user", "assistant"];
const THEMES = ["light", "dark"];
/** The maximum number of values of a completion. */
const VALUES_MAX = 100;
/** The methods that return the result of a tool. */
const TOOLS = ["tools/call", "tasks/result"];
/** The optional members of a task's state in which null has no meaning. */
const TASK_OPTIONALS = ["statusMessage", "pollInterval", "pollIntervalMs"];

/**
 * Returns a result that every client can read: the same object if nothing is corrected. An answer
 * that is not an object becomes the content of a result if a tool was called, because the tool has
 * run already. For other methods, returns undefined.
 */
export function readableResult(
  answer: unknown,
  options: ReadableOptions,
): ResultMembers | undefined {
  const isOfTool = TOOLS.includes(options.method);
  if (!isObject(answer)) {
    const becomesContent = isOfTool && answer !== undefined;
    return becomesContent
      ? new Repair(options).correctToolResult({ content: answer }, "the result")
      : undefined;
  }
  return isOfTool && isPlain(answer) ? answer : new Repair(options).correct(answer);
}

/** Returns whether the result of a tool needs no correction: its content is only text blocks. */
function isPlain({ content, structuredContent, isError, _meta }: ResultMembers): boolean {
  return structuredContent !== null && (_meta === undefined || isObject(_meta)) &&
    (isError === undefined || typeof isError === "boolean") && Array.isArray(content) &&
    content.every(isPlainText);
}

function isPlainText(block: unknown): boolean {
  if (!isObject(block) || block.type !== "text" || typeof block.text !== "string") return false;
  return !("annotations" in block) && (block._meta === undefined || isObject(block._meta));
}

/** A check of a member, and the fault that is reported for a value that fails it. */
interface MemberCheck {
  readonly isValid: (value: unknown) => boolean;
  readonly fault: string;
}
const TEXT: MemberCheck = { isValid: (value) => typeof value === "string", fault: "not text" };
const NUMBER: MemberCheck = {
  isValid: (value) => numberOf(value) !== undefined,
  fault: "not a number",
};
const OBJECT: MemberCheck = { isValid: isObject, fault: "not an object" };
const LIST: MemberCheck = { isValid: Array.isArray, fault: "not a list" };
const NO_BASE64 = "not plain base64";
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
  sizes: {
    isValid: (value) => Array.isArray(value) && value.every(TEXT.isValid),
    fault: "not a list of texts",
  },
  theme: {
    isValid: (value) => THEMES.includes(value as string),
    fault: "neither light nor dark",
  },
};
const ANNOTATIONS: Readonly<Record<string, MemberCheck>> = {
  audience: {
    isValid: (value) => Array.isArray(value) && value.every((role) => ROLES.includes(role)),
    fault: 'not a list of "user" and "assistant"',
  },
  priority: { isValid: isFraction, fault: "not from 0 to 1" },
  lastModified: { isValid: isDateTime, fault: "not a date and time with a time zone" },
};

function isFraction(value: unknown): boolean {
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

  correct(result: ResultMembers): ResultMembers {
    const { method } = this.#options;
    switch (method) {
      case "tools/call":
      case "tasks/result":
        return this.correctToolResult(result);
      case "prompts/get":
        return this.#withRemark(this.#correctPrompt(result));
      case "resources/read":
        return this.#withRemark(this.#correctReadResult(result));
      case "completion/complete":
        return this.#withRemark(this.#correctCompletion(result));
      default:
        return method.startsWith("tasks/") ? this.#correctTask(result) : result;
    }
  }

  /**
   * Corrects the result of a tool. If the answer was not an object and became the content of
   * `result`, the list of corrections names the answer `oddName`.
   */
  correctToolResult(result: ResultMembers, oddName?: string): ResultMembers {
    const { content, structuredContent, isError } = result;
    if (oddName !== undefined) this.#note(oddName, undefined, OBJECT.fault);
    // The result of a call that began a task has no content.
    const isTask = result.resultType === "task" || isObject(result.task) && content === undefined;
    if (isTask) return this.#withoutInvalid(result, { _meta: OBJECT });
    const isNull = structuredContent === null && this.#options.isStateless !== true;
    const readable = this.#with(this.#withoutInvalid(result, { _meta: OBJECT }), {
      content: this.#correctBlocks(content),
      structuredContent: isNull ? undefined : structuredContent,
      isError: this.#correctFlag("isError", isError),
    });
    return this.#withRemark(readable, true);
  }

  #correctPrompt(result: ResultMembers): ResultMembers {
    const messages = Array.isArray(result.messages) ? result.messages : [];
    if (messages !== result.messages) this.#note("messages", result.messages, LIST.fault);
    return this.#with(this.#withoutInvalid(result, { description: TEXT, _meta: OBJECT }), {
      messages: this.#sameOrNew(messages.flatMap((one) => this.#correctMessage(one)), messages),
    });
  }

  /** Corrects a message of a prompt. If it has several blocks, returns a message for each block. */
  #correctMessage(message: unknown): readonly unknown[] {
    const fields = isObject(message) ? message : { role: "user", content: message };
    const role = ROLES.includes(fields.role as string) ? fields.role : "user";
    if (role !== fields.role) this.#note("role", fields.role, "neither user nor assistant");
    const { content } = fields;
    const blocks = Array.isArray(content) ? content : [content];
    if (blocks === content || !isObject(message)) this.#note("content", content, "not a block");
    return blocks.map((one) => this.#with(fields, { role, content: this.#correctBlock(one) }));
  }

  #correctReadResult(result: ResultMembers): ResultMembers {
    const contents = Array.isArray(result.contents) ? result.contents : [result.contents ?? []];
    if (contents !== result.contents) this.#note("contents", result.contents, LIST.fault);
    const all = contents.flat().filter((one) => one !== null);
    return this.#with(this.#withoutInvalid(result, { _meta: OBJECT }), {
      contents: this.#sameOrNew(all.map((one) => this.#correctContents(one)), contents),
    });
  }

  #correctContents(one: unknown): unknown {
    const object = isObject(one) ? one : { text: textIn(one) };
    const { text, blob } = object;
    const resource = this.#correctResource(object);
    if (resource !== undefined) return resource;
    this.#note("the text of a resource", text, TEXT.fault);
    const isEmpty = (text ?? blob ?? null) === null;
    const content = isEmpty ? "" : textIn(text ?? blob);
    return this.#correctResource({ ...object, text: content, blob: undefined });
  }

  #correctCompletion(result: ResultMembers): ResultMembers {
    const { completion } = result;
    const fields = isObject(completion) ? completion : {};
    const values = Array.isArray(fields.values) ? fields.values : [];
    const isFit = values === fields.values && values.length <= VALUES_MAX &&
      values.every(TEXT.isValid);
    if (!isFit) {
      this.#note("values of the completion", fields.values, "not a list of at most 100 texts");
    }
    const kinds: Readonly<Record<string, MemberCheck>> = {
      total: {
        isValid: (value) => Number.isInteger(numberOf(value)),
        fault: "not a whole number",
      },
      hasMore: { isValid: (value) => typeof value === "boolean", fault: "neither true nor false" },
    };
    return this.#with(this.#withoutInvalid(result, { _meta: OBJECT }), {
      completion: this.#with(this.#withoutInvalid(fields, kinds), {
        values: isFit ? values : values.slice(0, VALUES_MAX).map(textIn),
      }),
    });
  }

  /** Corrects the state of a task, and the tool result in it. */
  #correctTask(state: ResultMembers): ResultMembers {
    const { result } = state;
    const nulls = TASK_OPTIONALS.filter((name) => state[name] === null);
    const inner = isObject(result) && ("content" in result || "isError" in result)
      ? readableResult(result, { ...this.#options, method: "tools/call" })
      : result;
    return this.#with(state, {
      ...Object.fromEntries(nulls.map((name) => [name, undefined])),
      result: inner,
    });
  }

  #correctBlocks(content: unknown): readonly unknown[] {
    if (content === undefined || content === null) return [];
    if (!Array.isArray(content)) {
      this.#note("content", undefined, LIST.fault);
      return [
        typeof content === "string" ? { type: "text", text: content } : this.#correctBlock(content),
      ];
    }
    return this.#sameOrNew(
      content.filter((one) => one !== null).map((one) => this.#correctBlock(one)),
      content,
    );
  }

  /** Returns a block that every client can read. */
  #correctBlock(block: unknown): unknown {
    if (!isObject(block)) return this.#toTextBlock(block);
    switch (block.type) {
      case "text":
        return typeof block.text === "string"
          ? this.#correctCommon(block)
          : this.#toTextBlock(block, { text: block.text ?? "", why: "without a text" });
      case "image":
      case "audio":
        return this.#correctMedia(block, block.type);
      case "resource":
        return this.#correctEmbedded(block);
      case "resource_link":
        return this.#correctLink(block);
      default:
        return this.#correctUnknown(block);
    }
  }

  #correctUnknown(block: ResultMembers): unknown {
    const { type, text, ...others } = block;
    const isOfExtension = (name: string) => type === name || `${type}`.startsWith(`${name}/`);
    if (typeof type === "string" && this.#options.extensions().some(isOfExtension)) return block;
    const isOnlyText = typeof text === "string" &&
      Object.keys(others).every((name) => name in COMMON);
    return this.#toTextBlock(block, { text: isOnlyText ? text : block });
  }

  /** Returns a text block that replaces a block that no client could read. */
  #toTextBlock(
    block: unknown,
    { text = block, why = "not known to MCP" }: { readonly text?: unknown; readonly why?: string } =
      {},
  ): ContentBlock {
    const { type, annotations, _meta } = isObject(block) ? block : {};
    const what = type === undefined ? "a block without type" : `a block of type ${shortJson(type)}`;
    this.#note(what, undefined, `${why}, sent as text`);
    const textBlock = withoutUndefined({ type: "text", text: textIn(text), annotations, _meta });
    return this.#correctCommon(textBlock) as ContentBlock;
  }

  #correctMedia(block: ResultMembers, type: "image" | "audio"): unknown {
    const { data, mimeType, annotations, _meta } = block;
    const base64 = readableBase64(data);
    if (base64 === undefined) return this.#toTextBlock(block, { why: "without base64" });
    if (base64.data !== data) this.#note(`the data of an ${type}`, undefined, NO_BASE64);
    const fit = this.#with(block, { data: base64.data });
    if (typeof mimeType === "string") return this.#correctCommon(fit);
    const kind = base64.mimeType ?? mimeTypeIn(base64.data, type);
    this.#note(`the mimeType of an ${type}`, mimeType ?? undefined, TEXT.fault);
    if (kind !== undefined) return this.#correctCommon(this.#with(fit, { mimeType: kind }));
    // Models refuse an image without a MIME type. A resource needs none.
    const resource = { uri: `${type}:result`, blob: base64.data };
    return this.#correctCommon(
      withoutUndefined({ type: "resource", resource, annotations, _meta }),
    );
  }

  #correctEmbedded(block: ResultMembers): unknown {
    const resource = isObject(block.resource) ? this.#correctResource(block.resource) : undefined;
    if (resource === undefined) return this.#toTextBlock(block, { why: "without contents" });
    return this.#correctCommon(this.#with(block, { resource }));
  }

  /**
   * Corrects the contents of a resource. Returns undefined if they have neither text nor base64.
   */
  #correctResource(resource: ResultMembers): ResultMembers | undefined {
    const { uri, text, blob } = resource;
    const base64 = readableBase64(blob);
    const isText = typeof text === "string";
    if (!isText && base64 === undefined) return undefined;
    const others = isText ? { blob: base64?.data } : { text: undefined, blob: base64?.data };
    const isCorrected = others.blob !== undefined && others.blob !== blob;
    if (isCorrected) this.#note("the blob of a resource", undefined, NO_BASE64);
    if (typeof uri !== "string") this.#note("the uri of a resource", uri, TEXT.fault);
    return this.#with(this.#withoutInvalid(resource, RESOURCE), {
      ...others,
      uri: typeof uri === "string" ? uri : this.#options.uri ?? "",
    });
  }

  #correctLink(block: ResultMembers): unknown {
    const { uri, name, icons } = block;
    if (typeof uri !== "string") return this.#toTextBlock(block, { why: "without a uri" });
    if (typeof name !== "string") this.#note("the name of a link", name, TEXT.fault);
    const link = this.#with(this.#withoutInvalid(block, LINK), {
      name: typeof name === "string" ? name : uri,
      ...Array.isArray(icons) && { icons: this.#correctIcons(icons) },
    });
    return this.#correctCommon(link);
  }

  #correctIcons(icons: readonly unknown[]): readonly unknown[] {
    const fit = icons.filter((one) =>
      isObject(one) && typeof one.src === "string"
    ) as ResultMembers[];
    if (fit.length < icons.length) this.#note("an icon", undefined, "without src");
    return this.#sameOrNew(fit.map((one) => this.#withoutInvalid(one, ICON)), icons);
  }

  /** Corrects the members that blocks of all kinds have. */
  #correctCommon(block: ResultMembers): ResultMembers {
    const members = this.#withoutInvalid(block, COMMON);
    const { annotations } = members;
    if (!isObject(annotations)) return members;
    return this.#with(members, { annotations: this.#withoutInvalid(annotations, ANNOTATIONS) });
  }

  #correctFlag(name: string, value: unknown): boolean | undefined {
    if (value === undefined || value === null) return undefined;
    if (typeof value === "boolean") return value;
    this.#note(name, value, "neither true nor false");
    return value === "true" || value === 1 ? true : undefined;
  }

  /** Removes members that are null or fail their check. */
  #withoutInvalid(
    object: ResultMembers,
    kinds: Readonly<Record<string, MemberCheck>>,
  ): ResultMembers {
    const changes: Record<string, undefined> = {};
    for (const [name, { isValid, fault }] of Object.entries(kinds)) {
      const value = object[name];
      if (value === undefined || isValid(value)) continue;
      if (value !== null) this.#note(name, value, fault);
      changes[name] = undefined;
    }
    return this.#with(object, changes);
  }

  /** Applies changes to an object, and removes members that are undefined. */
  #with(object: ResultMembers, changes: ResultMembers): ResultMembers {
    const isSame = Object.keys(changes).every((name) => object[name] === changes[name]);
    if (isSame) return object;
    const all = Object.entries({ ...object, ...changes });
    return Object.fromEntries(all.filter(([, value]) => value !== undefined));
  }

  /**
   * Returns `before` if it has the same items, so that an unchanged result stays the same object.
   */
  #sameOrNew(items: readonly unknown[], before: readonly unknown[]): readonly unknown[] {
    const isSame = items.length === before.length && items.every((one, at) => one === before[at]);
    return isSame ? before : items;
  }

  #note(what: string, value: unknown, why: string): void {
    if (++this.#count > NAMED_MAX) return;
    this.#repairs.push(`${what}${value === undefined ? "" : ` ${shortJson(value)}`}: ${why}`);
  }

  /** Adds the list of corrections to a result, if there are any. */
  #withRemark(result: ResultMembers, isOfTool = false): ResultMembers {
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
