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
import { objectOf, quoted, withoutUndefined } from "../core/json.ts";
import { matches } from "../core/pattern.ts";
import type { ToolId } from "../core/tool_id.ts";
import { object } from "../core/value_schema.ts";
import { remoteOf } from "../servers/kinds.ts";
import { MANY_TOKENS } from "./_cost.ts";
import { settingKeys } from "./_setting_keys.ts";

/** A setting and its value. */
export interface SettingValue {
  /** The key as it is written in files. */
  readonly key: string;
  /** The value; undefined if the setting is not set and has no default. */
  readonly value: unknown;
  /** `default`, or the path of the file that sets it. */
  readonly from: string;
  /** The value in the workspace file, if it is ignored because the file is not trusted. */
  readonly ignored?: unknown;
}

/** The values of settings by their whole keys, such as `gateway.hybrid.k`. */
type FlatSettings = Readonly<Record<string, unknown>>;

/**
 * Returns the settings of the gateway, the model, the intent, each limit that is not the default, the
 * settings of the network, and the policies of the company.
 */
export function readSettingValues(app: App): readonly SettingValue[] {
  const { file, userConfig } = app.loaded();
  const { limits } = app.config();
  const origins = {
    default: flatten(DEFAULT_GATEWAY),
    userConfig: { ...flatten(userConfig.gateway), "search.model": userConfig.settings.model },
    file: { ...flatten(file?.sections.gateway ?? {}), intent: file?.sections.intent },
  };
  const gateway = settingKeys(object({}, GATEWAY).schema(), "gateway").map(([key]) => key);
  const keys = [...gateway, "search.model", "intent"];
  return [
    ...keys.map((key) => valueOf(key, { origins, app })),
    ...LIMIT_NAMES.filter((name) => limits[name] !== LIMITS[name].values[0])
      .map((name) => ({
        key: `limits.${limitKey(name)}`,
        value: limits[name],
        from: userConfig.path,
      })),
    ...networkValues(app),
    ...policyValues(app),
  ];
}

/** Returns each policy of the company, and the servers that it forbids. */
export function policyValues(app: App): readonly SettingValue[] {
  const { file, userConfig, access } = app.loaded();
  const definitions = [...file?.servers ?? [], ...userConfig.servers];
  return (access?.company?.files ?? []).flatMap(({ path, policy }) => {
    const forbidden = definitions.filter(({ name }) =>
      app.policy.whyForbidden(name)?.path === path
    );
    const servers = [...new Set(forbidden.map(({ name }) => name))];
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
    .map(([key, value]) => ({ key: `${key}`, value, from: app.loaded().userConfig.path }));
}

/** Returns warnings about settings that the user may not have meant. */
export function settingWarnings(
  app: App,
  { tools, fullTokens }: { readonly tools: readonly ToolId[]; readonly fullTokens: number },
): readonly string[] {
  const { gateway, intent, warnings, ignored } = app.config();
  const { exposure, hybrid } = gateway;
  const { whitelistedTools, blacklistedTools } = hybrid;
  const unmatched = [...whitelistedTools, ...blacklistedTools].filter((pattern) =>
    !tools.some((id) => matches(pattern, id))
  );
  const inBothLists = tools.filter((id) =>
    [whitelistedTools, blacklistedTools].every((list) =>
      list.some((pattern) => matches(pattern, id))
    )
  );
  return [
    ...warnings,
    ...(ignored.length === 0 ? [] : ["the workspace file is not trusted: see `pml trust`"]),
    ...unmatched.map(({ text }) => `${quoted(text)} matches no known tool`),
    ...inBothLists.map((id) => `${quoted(id)} is whitelisted and blacklisted: it is not listed`),
    ...(exposure !== "hybrid" && setsHybrid(app)
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
  readonly origins: {
    readonly default: FlatSettings;
    readonly userConfig: FlatSettings;
    readonly file: FlatSettings;
  };
  readonly app: App;
}): SettingValue {
  const { file, userConfig } = app.loaded();
  const fileValue = origins.file[key];
  const isTrusted = file !== undefined && app.config().trusted;
  if (fileValue !== undefined && isTrusted) return { key, value: fileValue, from: file.path };
  const [value, from] = origins.userConfig[key] === undefined
    ? [origins.default[key], "default"]
    : [origins.userConfig[key], userConfig.path];
  return { key, value, from, ...withoutUndefined({ ignored: fileValue }) };
}

function setsHybrid(app: App): boolean {
  const { file, userConfig } = app.loaded();
  const fileGateway = app.config().trusted ? file?.sections.gateway : undefined;
  return userConfig.gateway.hybrid !== undefined || fileGateway?.hybrid !== undefined;
}

/** Returns options by their whole keys in files. Each option of `hybrid` has its own key. */
function flatten(overrides: GatewayOverrides): FlatSettings {
  const { hybrid, ...rest } = gatewaySection(overrides);
  const options = Object.entries(objectOf(hybrid)).map(([key, value]) => [`hybrid.${key}`, value]);
  return Object.fromEntries(
    [...Object.entries(rest), ...options].map(([key, value]) => [`gateway.${key}`, value]),
  );
}
