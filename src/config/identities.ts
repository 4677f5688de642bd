/**
 * Reads the identities, the tool sets and the company's policy, and makes the restrictions from
 * them.
 *
 * @module
 */

import { quoted } from "../core/json.ts";
import { parsePattern } from "../core/pattern.ts";
import { type Toolset, toolsetDenial } from "../protocol/toolset.ts";
import { readCompany } from "./_company_file.ts";
import type { Report } from "./_problem.ts";
import type { Config } from "./current_config.ts";
import type { Environment } from "./env.ts";
import { type Rules, rulesOf } from "./rules.ts";
import { IDENTITY, RATE } from "./settings.ts";
import type { IdentitySections } from "./user_config.ts";
import type { AccessConfig } from "./current_config.ts";
import type { Identity } from "./current_config.ts";
import type { Rate } from "./current_config.ts";

const SECOND = 1_000;
const UNITS: Readonly<Record<string, number>> = {
  second: SECOND,
  minute: 60 * SECOND,
  hour: 3_600 * SECOND,
  day: 86_400 * SECOND,
};

function identitiesOf(
  { identities = {} }: IdentitySections,
  { path, toolsetOf }: {
    readonly path: string;
    readonly toolsetOf: (name: string | undefined) => Toolset | undefined;
  },
): ReadonlyMap<string, Identity> {
  return new Map(
    Object.entries(identities).map(([name, entry]) => {
      const { token, permissions = {}, toolset, keys = IDENTITY.keys.default, rates = {} } = entry;
      return [name, {
        name,
        token,
        keys,
        permissions: rulesOf(permissions, path),
        toolset: toolsetOf(toolset),
        rates: Object.entries(rates).map(rateOf),
      }];
    }),
  );
}

function rateOf([pattern, text]: readonly [string, string]): Rate {
  const [, calls, unit = ""] = RATE.exec(text) ?? [];
  return { pattern: parsePattern(pattern), calls: Number(calls), ms: UNITS[unit] ?? 0, text };
}

/**
 * Reads the identities, the tool sets and the company's policy. Reports a problem if the identity
 * or its token was removed, so that no call runs.
 */
export async function readAccessConfig(
  sections: IdentitySections,
  { path, identity: name, toolset, report, environment }: {
    readonly environment: Environment;
    readonly path: string;
    readonly identity: string | undefined;
    readonly toolset: string | undefined;
    readonly report: Report;
  },
): Promise<AccessConfig> {
  const toolsets = new Map(
    Object.entries(sections.toolsets ?? {}).map(([name, tools]) => [name, {
      name,
      tools: tools.map((text) => parsePattern(text)),
    }]),
  );
  // A tool set that is not defined has no tools.
  const toolsetOf = (name: string | undefined): Toolset | undefined =>
    name === undefined ? undefined : toolsets.get(name) ?? { name, tools: [] };
  const identities = identitiesOf(sections, { path, toolsetOf });
  const clients = new Map(
    Object.entries(sections.client_toolsets ?? {}).map(([name, set]) => [name.toLowerCase(), set]),
  );
  if (name !== undefined && identities.get(name)?.token === undefined) {
    const key = `identities.${name}`;
    report.problems.push({ file: path, key, found: "nothing", wanted: "an identity with a token" });
  }
  const ofIdentities = [...identities.values()].map((entry) => entry.toolset?.name);
  for (const set of new Set([toolset, ...ofIdentities, ...clients.values()])) {
    if (set === undefined || toolsets.has(set)) continue;
    report.warnings.push(`There is no tool set ${quoted(set)}: clients with it have no tools`);
  }
  const company = await readCompany(environment, report);
  const identity = identities.get(name ?? "");
  return {
    company,
    identities,
    restrictionsFor: (toolsetOfFile) => {
      const sets = [toolsetOf(toolset), toolsetOf(toolsetOfFile), identity?.toolset]
        .filter((set) => set !== undefined);
      if ((identity ?? company ?? sets[0]) === undefined && clients.size === 0) return undefined;
      return {
        identity,
        company,
        applyTo: (config) => {
          const withIdentity = identity === undefined
            ? config
            : { ...config, rules: rulesFor(identity, config) };
          return company?.applyTo(withIdentity) ?? withIdentity;
        },
        judge: (judge) => (id, args) => toolsetDenial(sets, id) ?? judge(id, args),
        toolsetFor: clients.size === 0
          ? undefined
          : (client) => toolsetOf(clients.get(client.toLowerCase())),
      };
    },
  };
}

/** Returns the rules of an identity, with all ask and deny rules of the user. */
function rulesFor({ permissions: { allow, ask, deny } }: Identity, { rules }: Config): Rules {
  return { allow, ask: [...rules.ask, ...ask], deny: [...rules.deny, ...deny] };
}
