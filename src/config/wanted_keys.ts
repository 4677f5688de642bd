/**
 * The variables that the configuration names, and who needs them.
 *
 * @module
 */

import type { Config } from "./current_config.ts";
import { isRequired, referencesIn, type VariableReference } from "./expand.ts";
import { argumentTexts } from "./fixed_arguments.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { definitionKindOf } from "../servers/kinds.ts";

/** A variable that a server or a registry needs. */
export interface WantedKey {
  readonly name: string;
  /** The names of the servers, and the URLs of the registries. */
  readonly by: readonly string[];
  /** Whether one of these servers and registries does not work without the variable. */
  readonly isRequired: boolean;
}

interface KeyUse {
  readonly name: string;
  readonly by: string;
  readonly isRequired: boolean;
}

/** Returns every variable that a server or a registry of the configuration names, in order. */
export function wantedKeys(
  { servers, grants, registries = [], network }:
    & Pick<Config, "servers" | "grants" | "registries">
    & Partial<Pick<Config, "network">>,
  others: readonly { readonly server: string; readonly names: readonly string[] }[] = [],
): readonly WantedKey[] {
  const uses: readonly KeyUse[] = [
    ...servers.flatMap((server) => usesOf(server, grants[server.name]?.env ?? [])),
    ...others.flatMap(({ server: by, names }) =>
      names.map((name) => ({ name, by, isRequired: true }))
    ),
    ...registries.flatMap(({ url, tokenEnv }) =>
      tokenEnv === undefined ? [] : [{ name: tokenEnv, by: url, isRequired: true }]
    ),
    ...network
      ? referencesIn({ url: { "": network.proxy } })
        .map(({ name }) => ({ name, by: "network.proxy", isRequired: true }))
      : [],
  ];
  return [...Map.groupBy(uses, ({ name }) => name)].map(([name, all]) => ({
    name,
    by: [...new Set(all.map(({ by }) => by))],
    isRequired: all.some(({ isRequired }) => isRequired),
  }));
}

function usesOf(server: ServerDefinition, granted: readonly string[]): readonly KeyUse[] {
  const by = server.name;
  const toUse = (reference: VariableReference) => ({
    name: reference.name,
    by,
    isRequired: isRequired(reference),
  });
  const tools = [...server.settings?.of.values() ?? []].flatMap((setting) =>
    referencesIn({ arguments: argumentTexts(setting.arguments ?? {}) }).map(toUse)
  );
  const texts = definitionKindOf(server).texts?.(server);
  if (texts === undefined) {
    // A module may request other variables, too, but gets only variables that are granted by name.
    const names = granted.filter((name) => name !== "*");
    return [...names.map((name) => ({ name, by, isRequired: false })), ...tools];
  }
  return [...referencesIn(texts).map(toUse), ...tools];
}
