/**
 * The texts of results, as the clients of both eras get them.
 *
 * @module
 */

import { isObject, type JsonObject } from "../core/json.ts";
import { textOfItems, textOfResult } from "../core/json_text.ts";
import { LIST_NAMES, LISTS } from "./lists.ts";
import type { Hello } from "./connection.ts";
import { ERROR, type ErrorObject } from "./errors.ts";
import { errorText } from "./message.ts";
import { type RevisionKind, STATELESS_REVISIONS } from "./revisions.ts";
import { statelessResult } from "./envelope.ts";

/** The members with the items of lists, by the methods that return them. */
const ITEMS: ReadonlyMap<string, string> = new Map(
  LIST_NAMES.map((name) => [LISTS[name].method, name]),
);
/** The members of a result that the stateless revision has. */
const OF_REVISION = ["resultType", "_meta", "ttlMs", "cacheScope"];

/** Writes results. */
export class ResultTexts {
  readonly #hello: (isStateless: boolean) => Hello;
  #serverInfo: Hello["serverInfo"] | undefined;

  /** Takes a function that returns PML's description of itself. */
  constructor(hello: (isStateless: boolean) => Hello) {
    this.#hello = hello;
  }

  /** Returns the result of `server/discover`. */
  discovered(): JsonObject {
    const { capabilities, instructions } = this.#hello(true);
    const result = { supportedVersions: STATELESS_REVISIONS, capabilities, instructions };
    return this.#stateless("server/discover", result as unknown as JsonObject);
  }

  /** Returns the members of an answer with a result, or with the error of writing that. */
  membersOf(
    result: JsonObject,
    request: { readonly method: string; readonly revisionKind: RevisionKind },
  ): string {
    try {
      return `"result":${this.of(result, request)}`;
    } catch (error) {
      return errorMembers(error); // for example of one that is nested too deep
    }
  }

  /** Returns the text of a result. */
  of(
    result: JsonObject,
    { method, revisionKind }: { readonly method: string; readonly revisionKind: RevisionKind },
  ): string {
    const name = ITEMS.get(method);
    if (name === undefined) {
      return revisionKind === "handshake"
        ? handshakeText(result)
        : this.#statelessText(method, result);
    }
    return ofList(revisionKind === "handshake" ? result : this.#stateless(method, result), name);
  }

  /** Adds the members that the stateless revision requires to a result that is stored as text. */
  #statelessText(method: string, result: JsonObject): string {
    const text = textOfResult(result);
    const isBare = text !== undefined && !OF_REVISION.some((name) => name in result);
    if (!isBare) return JSON.stringify(this.#stateless(method, result));
    return `${JSON.stringify(this.#stateless(method, {})).slice(0, -1)},${
      text.trimStart().slice(1)
    }`;
  }

  #stateless(method: string, result: JsonObject): JsonObject {
    return statelessResult(method, { result, serverInfo: this.#info });
  }

  get #info(): Hello["serverInfo"] {
    return this.#serverInfo ??= this.#hello(true).serverInfo;
  }
}

/** Returns the members of an answer with an error. */
export function errorMembers(error: unknown): string {
  const { code, message, data } = isObject(error) ? error : { code: undefined };
  const integer = Number.isSafeInteger(code) ? code : ERROR.internalError;
  const answered = {
    code: integer === ERROR.resourceNotFound ? ERROR.invalidParams : integer,
    message: message ?? "Internal error",
    data,
  };
  return errorText(answered as ErrorObject); // an error of this code has a text
}

function handshakeText(result: JsonObject): string {
  return textOfResult(result) ?? JSON.stringify(result);
}

/** Returns the text of a list. Its items, which may be many, are written once for both eras. */
function ofList(result: JsonObject, name: string): string {
  const { [name]: items, ...rest } = result;
  if (!Array.isArray(items)) return JSON.stringify(result);
  const others = JSON.stringify(rest).slice(1);
  return `{"${name}":${textOfItems(items)}${others === "}" ? "" : ","}${others}`;
}
