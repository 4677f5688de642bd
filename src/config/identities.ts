/**
 * The identities of `config.yaml`: others who may use this PML over HTTP, and what each may do.
 *
 * @module
 */

import { parsePattern, type Pattern } from "../core/pattern.ts";
import { type Rules, rulesOf } from "./rules.ts";

/** Somebody who may use this PML over HTTP. */
export interface Identity {
  readonly name: string;
  /** The SHA-256 of the token, in hexadecimal digits. */
  readonly token: string;
  /** The rules of the identity. What the person denies is denied in any case. */
  readonly permissions: Rules;
  /** The tools that exist for it; undefined for all. */
  readonly toolset: Toolset | undefined;
  /** Whether the person's keys may be used. */
  readonly keys: boolean;
  readonly rates: readonly Rate[];
}

/** A named set of tools. */
export interface Toolset {
  readonly name: string;
  readonly tools: readonly Pattern[];
}

/** How many calls of some tools may be made in some time. */
export interface Rate {
  readonly pattern: Pattern;
  readonly calls: number;
  readonly ms: number;
}

/** Identities and tool sets as the file says them. The schema has checked them. */
export interface IdentitySections {
  readonly identities?: Readonly<Record<string, SaidIdentity>> | undefined;
  readonly toolsets?: Readonly<Record<string, readonly string[]>> | undefined;
}

interface SaidIdentity {
  readonly token: string;
  readonly permissions?: { readonly [K in keyof Rules]?: readonly string[] };
  readonly toolset?: string;
  readonly keys?: boolean;
  readonly rates?: Readonly<Record<string, string>>;
}

const SECOND = 1_000;
const UNITS: Readonly<Record<string, number>> = {
  second: SECOND,
  minute: 60 * SECOND,
  hour: 3_600 * SECOND,
  day: 86_400 * SECOND,
};
/** How a rate is written: `60/minute`. */
export const RATE = /^([1-9]\d{0,5})\/(second|minute|hour|day)$/;

/** Returns the tool sets of a file. */
export function toolsetsOf({ toolsets = {} }: IdentitySections): ReadonlyMap<string, Toolset> {
  return new Map(
    Object.entries(toolsets).map(([name, tools]) => [name, {
      name,
      tools: tools.map((text) => parsePattern(text)),
    }]),
  );
}

/**
 * Returns the identities of a file. An identity whose tool set is missing has no tools at all.
 */
export function identitiesOf(
  said: IdentitySections,
  source: string,
): ReadonlyMap<string, Identity> {
  const sets = toolsetsOf(said);
  return new Map(
    Object.entries(said.identities ?? {}).map(([name, entry]) => {
      const { token, permissions = {}, toolset, keys = true, rates = {} } = entry;
      return [name, {
        name,
        token,
        permissions: rulesOf(permissions, source),
        toolset: toolset === undefined ? undefined : sets.get(toolset) ?? none(toolset),
        keys,
        rates: Object.entries(rates).map(rateOf),
      }];
    }),
  );
}

function none(name: string): Toolset {
  return { name, tools: [] };
}

function rateOf([pattern, text]: readonly [string, string]): Rate {
  const [, calls, unit = ""] = RATE.exec(text) ?? [];
  return { pattern: parsePattern(pattern), calls: Number(calls), ms: UNITS[unit] ?? 0 };
}
