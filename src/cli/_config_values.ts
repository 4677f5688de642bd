/**
 * Returns the settings of the gateway, the source of each value, and likely mistakes.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import {
  DEFAULT_GATEWAY,
  type GatewayOptions,
  type GatewayOverrides,
} from "../config/gateway_options.ts";
import { gatewaySection } from "../config/gateway_section.ts";
import { LIMIT_NAMES, limitKey, LIMITS } from "../config/limits.ts";
import { GATEWAY } from "../config/settings.ts";
import { defined, objectOf, quoted } from "../core/json.ts";
import { matches } from "../core/pattern.ts";
import type { ToolId } from "../core/tool_id.ts";
import { object } from "../core/wanted.ts";
import { remoteOf } from "../servers/kinds.ts";
import { MANY_TOKENS } from "./_cost.ts";
import { settingKeys } from "./_setting_keys.ts";

/** A setting and its value. */
export interface SettingValue {
  /** The key as it is written in files. */
  readonly key: string;
  /** Undefined if it is not set and has no default. */
  readonly value: unknown;
  /** `default`, or the path of the file that sets it. */
  readonly from: string;
  /** The value in the workspace file, if it is ignored because the file is not trusted. */
  readonly ignored?: unknown;
}

type Flat = Readonly<Record<string, unknown>>;

/**
 * Returns the settings of the gateway, the model, the intent, each limit that is not the default,
 * the proxy without its user and password, and the certificates of servers.
 */
export function valuesOf(app: App): readonly SettingValue[] {
  const { file, person } = app.loaded();
  const { limits } = app.config();
  const origins = {
    default: flat(DEFAULT_GATEWAY),
    person: { ...flat(person.gateway), "search.model": person.settings.model },
    file: { ...flat(file?.sections.gateway ?? {}), intent: file?.sections.intent },
  };
  const gateway = settingKeys(object({}, GATEWAY).schema(), "gateway").map(([key]) => key);
  const keys = [...gateway, "search.model", "intent"];
  return [
    ...keys.map((key) => valueOf(key, { origins, app })),
    ...LIMIT_NAMES.filter((name) => limits[name] !== LIMITS[name].values[0])
      .map((name) => ({ key: `limits.${limitKey(name)}`, value: limits[name], from: person.path })),
    ...networkValues(app),
    ...policyValues(app),
  ];
}

/** Returns each policy of the company, and the servers that it forbids. */
export function policyValues(app: App): readonly SettingValue[] {
  const { file, person, others } = app.loaded();
  const own = [...file?.servers ?? [], ...person.servers];
  return (others?.company?.files ?? []).flatMap(({ path, policy }) => {
    const names = own.filter(({ name }) => app.policy.forbidden(name)?.path === path);
    const servers = [...new Set(names.map(({ name }) => name))];
    return [
      { key: "policy", value: policy, from: path },
      ...(servers.length > 0 ? [{ key: "policy, servers", value: servers, from: path }] : []),
    ];
  });
}

/** Returns the proxy, without its user and password, and the certificates of servers. */
export function networkValues(app: App): readonly SettingValue[] {
  const { network, servers } = app.config();
  const files = servers.flatMap((server) =>
    (["ca", "cert", "key"] as const).map((name) => [
      `mcpServers.${server.name}.${name}`,
      remoteOf(server)?.[name],
    ])
  );
  const proxy = network && new URL(network.proxy).origin;
  return [["network.proxy", proxy], ["network.no_proxy", network?.no_proxy], ...files]
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ({ key: `${key}`, value, from: app.loaded().person.path }));
}

/** Returns warnings about settings that the user may not have meant. */
export function settingWarnings(
  app: App,
  { tools, fullTokens }: { readonly tools: readonly ToolId[]; readonly fullTokens: number },
): readonly string[] {
  const { gateway, intent, warnings, ignored } = app.config();
  const { exposure, hybrid } = gateway;
  const { whitelistedTools: white, blacklistedTools: black } = hybrid;
  const unknown = [...white, ...black].filter((pattern) =>
    !tools.some((id) => matches(pattern, id))
  );
  const both = tools.filter((id) =>
    [white, black].every((list) => list.some((pattern) => matches(pattern, id)))
  );
  return [
    ...warnings,
    ...(ignored.length === 0 ? [] : ["the workspace file is not trusted: see `pml trust`"]),
    ...unknown.map(({ text }) => `${quoted(text)} matches no known tool`),
    ...both.map((id) => `${quoted(id)} is whitelisted and blacklisted: it is not listed`),
    ...(exposure !== "hybrid" && saysHybrid(app)
      ? [`gateway.hybrid is ignored while the exposure is "${exposure}"`]
      : []),
    ...(exposure === "full_proxy" && fullTokens > MANY_TOKENS
      ? [
        `the exposure "full_proxy" costs more than ${MANY_TOKENS} tokens: see \`pml config --wizard\``,
      ]
      : []),
    ...(listsByIntent(gateway) && intent === undefined
      ? [
        `there is no intent, so "${exposure}" lists tools of servers only where a client sends a query`,
      ]
      : []),
  ];
}

/** Returns whether an exposure lists the tools that fit a query or the intent. */
export function listsByIntent({ exposure, hybrid }: GatewayOptions): boolean {
  return exposure === "semantic" || exposure === "hybrid" && hybrid.applySemanticFilter &&
      hybrid.exposeUnderlyingTools;
}

function valueOf(key: string, { origins, app }: {
  readonly origins: { readonly default: Flat; readonly person: Flat; readonly file: Flat };
  readonly app: App;
}): SettingValue {
  const { file, person } = app.loaded();
  const own = origins.file[key];
  const trusted = file !== undefined && app.config().trusted;
  if (own !== undefined && trusted) return { key, value: own, from: file.path };
  const [value, from] = origins.person[key] === undefined
    ? [origins.default[key], "default"]
    : [origins.person[key], person.path];
  return { key, value, from, ...defined({ ignored: own }) };
}

function saysHybrid(app: App): boolean {
  const { file, person } = app.loaded();
  const own = app.config().trusted ? file?.sections.gateway : undefined;
  return person.gateway.hybrid !== undefined || own?.hybrid !== undefined;
}

/** Returns options by their keys in files, those of `hybrid` among them. */
function flat(overrides: GatewayOverrides): Flat {
  const { hybrid, ...own } = gatewaySection(overrides);
  const options = Object.entries(objectOf(hybrid)).map(([key, value]) => [`hybrid.${key}`, value]);
  return Object.fromEntries(
    [...Object.entries(own), ...options].map(([key, value]) => [`gateway.${key}`, value]),
  );
}
