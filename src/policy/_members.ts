/**
 * The members of calls other than name and arguments, as questions show them.
 *
 * @module
 */

import type { OtherMembers } from "../protocol/call.ts";
import { META_KEY } from "../protocol/client_meta.ts";
import { sha256 } from "../core/hash.ts";
import { canonicalJson, type Json, type JsonObject, objectOf } from "../core/json.ts";
import { dropOldest } from "../core/memo.ts";
import { digestOf, type Subject } from "./subject.ts";

/** The prefixes that questions show for members of `_meta` and for members next to `params`. */
const [META, MESSAGE] = ["_meta.", "message."];
/** The maximum number of calls that are remembered, and of members of each. */
const CALLS_MAX = 1_000;
const MEMBERS_MAX = 100;

/** Returns the members of a subject by the names that a question shows. */
export function shownMembers({ members = {} }: Pick<Subject, "members">): [string, Json][] {
  const { _meta, ...params } = members.params ?? {};
  return [
    ...Object.entries(params),
    ...withPrefix(META, objectOf(_meta)),
    ...withPrefix(MESSAGE, members.message ?? {}),
  ];
}

function withPrefix(prefix: string, members: JsonObject): [string, Json][] {
  return Object.entries(members).map(([name, value]) => [prefix + name, value]);
}

/** Returns the `_meta` keys among member names. Only these can be listed in `client_meta`. */
export function metaKeysIn(names: readonly string[]): readonly string[] {
  return names.filter((name) => name.startsWith(META)).map((name) => name.slice(META.length))
    .filter((key) => META_KEY.test(key));
}

/** Returns a subject without the `_meta` keys that the user listed in `client_meta`. */
export function withoutKeys(
  { members, ...subject }: Subject,
  keys: readonly string[],
): Subject {
  const { params: { _meta, ...params } = {}, message } = members ?? {};
  const meta = Object.entries(objectOf(_meta)).filter(([key]) => !keys.includes(key));
  const rest: JsonObject = {
    ...params,
    ...meta.length > 0 && { _meta: Object.fromEntries(meta) },
  };
  const all: OtherMembers = {
    ...Object.keys(rest).length > 0 && { params: rest },
    ...message !== undefined && { message },
  };
  return { ...subject, ...Object.keys(all).length > 0 && { members: all } };
}

/** The hashes of the members of a call, by their names. */
type MemberHashes = ReadonlyMap<string, string>;

/** The members of calls that needed approval, by a digest of the call without its members. */
export class AskedMembers {
  readonly #known = new Map<string, MemberHashes>();

  /**
   * Remembers a call. Returns the names of the members in which it differs from the last call that
   * was otherwise equal; an empty list if there was none.
   */
  rememberAndCompare(subject: Subject): readonly string[] {
    const { members: _, ...rest } = subject;
    const key = digestOf([rest]);
    const before = this.#known.get(key);
    const now = new Map(
      shownMembers(subject).slice(0, MEMBERS_MAX)
        .map(([name, value]) => [name, sha256(canonicalJson(value))]),
    );
    this.#known.set(key, now);
    dropOldest(this.#known, CALLS_MAX);
    return before === undefined ? [] : differences(before, now);
  }
}

function differences(before: MemberHashes, now: MemberHashes): readonly string[] {
  const names = new Set([...before.keys(), ...now.keys()]);
  return [...names].filter((name) => before.get(name) !== now.get(name));
}
