/**
 * Names the keys of a client's entry that an import leaves out, each with the reason.
 *
 * @module
 */

import { isObject, objectOf } from "../core/json.ts";

/** A key of a client's entry that PML leaves out, and the reason. */
export interface OmittedKey {
  readonly key: string;
  readonly why: string;
}

/** Keys that are converted, and keys that change nothing for PML. */
const KNOWN =
  "type command args env cwd envFile url serverUrl httpUrl headers http_headers env_http_headers \
env_vars bearer_token_env_var tools enabled_tools disabled_tools includeTools excludeTools \
disabledTools disabled enabled timeout tool_timeout_sec oauth auth scopes source".split(" ");
/** The keys that only servers over HTTP use, and the keys that only programs use. */
const OF_ADDRESS = ["headers", "http_headers", "env_http_headers", "bearer_token_env_var"];
const OF_PROGRAM = ["args", "env", "cwd", "envFile", "env_vars"];
/** The reasons why PML leaves out keys that it knows. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/^description$/, "PML shows the description of the server"],
  [
    /^(?:autoApprove|alwaysAllow|trust|default_tools_approval_mode)$/,
    "only rules of PML allow calls",
  ],
  [/^startup_timeout_(?:sec|ms)$/, "`limits.start_ms` of PML is the time for a start"],
  [/^(?:required|alwaysLoad)$/, "PML starts a server when it is used"],
];

/** Returns the keys of an entry that a conversion leaves out, with the reasons. */
export function omittedKeys(
  fields: Readonly<Record<string, unknown>>,
  { isProgram, signIn, hasTimeout }: {
    readonly isProgram: boolean;
    /** The keys of the sign-in that PML does not know. */
    readonly signIn: readonly string[];
    /** Whether the entry has a time limit that PML can use. */
    readonly hasTimeout: boolean;
  },
): readonly OmittedKey[] {
  const unused = isProgram ? OF_ADDRESS : OF_PROGRAM;
  const why = isProgram ? "only servers over HTTP get it" : "only programs get it";
  const envVariables = Array.isArray(fields.env_vars) ? fields.env_vars.map(objectOf) : [];
  const hasModes = Object.values(objectOf(fields.tools)).some((tool) =>
    isObject(tool) && Object.keys(tool).some((key) => key !== "enabled")
  );
  return [
    ...[...Object.keys(fields), ...signIn].filter((key) => !KNOWN.includes(key)).map((key) => ({
      key,
      why: REASONS.find(([name]) => name.test(key))?.[1] ?? "PML has no such setting",
    })),
    ...unused.filter((key) => fields[key] !== undefined).map((key) => ({ key, why })),
    ...envVariables.filter(({ source }) => source === "remote").map(({ name }) => ({
      key: `env_vars.${name}`,
      why: "its value is on another machine of the client",
    })),
    ...hasModes ? [{ key: "tools", why: "only rules of PML allow calls" }] : [],
    ...fields.timeout !== undefined && !hasTimeout
      ? [{ key: "timeout", why: "it is not a number above 0" }]
      : [],
  ];
}
