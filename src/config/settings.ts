/**
 * The tables of settings: the keys of `.pml.json`, `config.yaml` and a company's policy, with their
 * values, a sentence about each, and their defaults. PML validates files with these tables. The
 * JSON Schema files, docs/settings.md and the completions of `pml config set` are made from them.
 *
 * @module
 */

import { META_KEY } from "../protocol/client_meta.ts";
import { EXPOSURES, META_TOOLS } from "./exposure.ts";
import { isObject } from "../core/json.ts";
import { isToolName, isUsableServerName, serverSlug } from "../core/tool_id.ts";
import {
  anyValue,
  leaf,
  list,
  object,
  oneOf,
  record,
  type Schema,
  type SchemaMembers,
  schemaWithoutType,
  selectByType,
  setting,
  type ValueOf,
  valueOrObject,
  type ValuePlace,
  type ValueSchema,
  withKeywords,
  withTest,
} from "../core/value_schema.ts";
import type { EntryForms, FormParts } from "../servers/kind.ts";
import { KINDS, pinnedKinds } from "../servers/kinds.ts";
import { withType } from "./_document.ts";
import {
  address,
  flag,
  folder,
  json,
  namedText,
  nonEmptyText,
  number,
  path,
  price,
  registry,
  rules,
  share,
  string,
  strings,
  succeeds,
  text,
  tool,
  tools,
  variable,
} from "./_values.ts";
import { LIMIT_NAMES, limitKey, LIMITS } from "./limits.ts";
import type { OsLayer } from "./os_layer.ts";
import { isAllowedAddress, REGISTRY_BEGINNINGS } from "./registries.ts";
import type { ServerEntry } from "./servers.ts";

/** How a rate is written: `60/minute`. */
export const RATE = /^([1-9]\d{0,5})\/(second|minute|hour|day)$/;
/** The kinds of servers that a policy can forbid. */
export const FORBIDDEN = [...pinnedKinds(), "registry", "container", "unconfined"];

const SERVER_NAME = 'a name of 1 to 64 of a-z, 0-9, ".", "_" and "-", none that PML reserves';
const NAME = 'a name of 1 to 64 of letters, digits, ".", "_" and "-", not "local"';
const HOST = "a host or *.DOMAIN, without a port";
const EXCEPTION = "a host, *.DOMAIN, or a range of addresses such as 10.0.0.0/8";
const EXCEPTIONS = /^((\*?\.)?[\w.:-]+|(\d+\.){3}\d+\/\d\d?|[\da-f]*:[\da-f:]+\/\d{1,3})$/i;
const PROXY = /^http:\/\/(([^\s/?#@{}$%]|%[0-7][\da-f]|\$\{\w+\})+@)?[\w.:[\]-]+\/?$/i;
const KEY_PLACE = /^(\$\{(?!PML_)\w+\}|(?!.*:\/\/)(?!\$)(?=.*\S).*)$/s;
const PERSONAL = "no value: certificates are set in your config.yaml";
const REGISTRY_URL = `a URL that begins with ${REGISTRY_BEGINNINGS.join(" or ")}`;
const MOST_LISTED = 10_000;
const MOST_TOKENS = 1_000_000;

const label = text(
  "a string of 1 to 128 visible characters",
  /^(?=.*\S)[^\p{C}\p{Zl}\p{Zp}]{1,128}$/u,
);
const metaKey = text("a key of _meta of 1 to 128 visible characters", META_KEY);
const token = text(
  "the name of a variable that does not begin with PML_",
  /^(?!PML_)[A-Z_][A-Z0-9_]*$/i,
);
const identity = text(NAME, /^(?!local$)[\w.-]{1,64}$/);
const granted = list(nonEmptyText, "strings");
const grantee = namedText("serverName", text("the name of a server", { test: isUsableServerName }));
const title = namedText(
  "serverTitle",
  text(SERVER_NAME, { test: (value) => succeeds(() => serverSlug(value)) }),
);
const newName = namedText("toolName", text("the name of a tool", { test: isToolName }));

/** The settings of one tool. */
const TOOL = {
  disabled: setting(flag, "True removes the tool.", false),
  rename: setting(
    newName,
    "The name for clients; by default the name from the server, which rules always use.",
  ),
  description: setting(string, "The description for clients; by default that of the server."),
  arguments: setting(
    record(string, json),
    "Arguments that each call gets and no client sets. ${NAME} and ${NAME:-default} are replaced.",
    {},
  ),
};
/** `*` is for all tools without a key. `settingsOf()` in `servers.ts` checks its members. */
const settings = withKeywords(record(string, object({}, TOOL)), {
  name: "toolSettings",
  properties: {
    "*": setting(object({}, { disabled: TOOL.disabled }), "All tools that are not named.").schema(),
  },
});
const listed = leaf<string | { readonly name: string }>(
  "the name of a tool, or its definition",
  (value) => typeof value === "string" || isObject(value) && typeof value.name === "string",
  {
    anyOf: [
      { type: "string" },
      {
        ...{ type: "object", required: ["name"] },
        properties: { name: { ...string.schema(), description: "The name of the tool." } },
      },
    ],
  },
);
const ENTRY = {
  settings: setting(settings, "Settings for its tools, by their names.", {}),
  listedTools: setting(
    valueOrObject(list(listed, "names or objects with name, or an object of tools"), settings),
    "The only tools that are kept, or settings for its tools by their names; all by default.",
  ),
  required: {
    env_required: setting(
      list(variable, "names of variables"),
      "Variables that the server needs. PML passes each of them under its own name.",
      [],
    ),
  },
};
/** Keys of the entries of registries. PML ignores them, so that users can paste such an entry. */
const PASTED = {
  ...{ fqdn: string, version: string, description: string, integrity: string },
  ...{ routing: oneOf(["local"]), warnings: strings },
};
const IGNORED = { autoApprove: anyValue, alwaysAllow: anyValue };

const RULES = {
  allow: setting(rules, "Calls that run without a question.", []),
  ask: setting(rules, "Calls that need an answer of the user.", []),
  deny: setting(rules, "Calls that never run. This wins over every allow and ask rule.", []),
};
const permissions = object({}, RULES);

/** The settings of `gateway.hybrid`. */
export const HYBRID = {
  expose_meta_tools: setting(flag, "Whether the meta-tools are listed.", true),
  expose_underlying_tools: setting(flag, "Whether tools of servers are listed.", true),
  apply_semantic_filter: setting(
    flag,
    "Whether only tools are listed that fit the query of tools/list or the intent; otherwise the first ones.",
    true,
  ),
  max_underlying_tools: setting(
    number(0, MOST_LISTED),
    "How many tools of servers are listed. Whitelisted tools count, but are never left out.",
    50,
  ),
  semantic_threshold: setting(
    share,
    "How well a tool must fit, as a share of the score of the best tool.",
    0.6,
  ),
  max_tokens: setting(
    number(0, MOST_TOKENS),
    "How many tokens (estimated) the tools of servers may cost; no limit by default.",
  ),
  whitelisted_tools: setting(tools, "Tools that are always listed.", []),
  blacklisted_tools: setting(tools, "Tools that are never listed. They can be called.", []),
};

/** The settings of `gateway`. */
export const GATEWAY = {
  name: setting(label, "The name of this server for clients.", "pml"),
  version: setting(label, "The version of this server for clients; by default that of PML."),
  tools_exposure: setting(
    withKeywords(string, { examples: EXPOSURES }),
    "Which tools a client lists. With an unknown value, PML warns and uses meta_only.",
    "meta_only",
  ),
  meta_tools: setting(list(oneOf(META_TOOLS), "names"), "The meta-tools that are served.", [
    ...META_TOOLS,
  ]),
  prefix: setting(flag, "Whether names of listed tools begin with the name of their server.", true),
  long_names: setting(
    flag,
    "Whether names of listed tools may have dots and 128 characters, as in MCP.",
    false,
  ),
  toolset: setting(
    nonEmptyText,
    "The name of a tool set of config.yaml: clients can use only its tools; all tools by default.",
  ),
  hybrid: setting(object({}, HYBRID), 'Which tools the exposure "hybrid" lists.'),
};

/** The keys that `.pml.json` and `config.yaml` may have. */
const SHARED = {
  gateway: setting(object({}, GATEWAY), "Which tools clients see."),
  registries: setting(
    list(
      valueOrObject(
        namedText(
          "registryAddress",
          text(`${REGISTRY_URL}, or an object with url, token_env and public_key`, {
            test: (value) => isAllowedAddress(value, REGISTRY_BEGINNINGS),
          }),
        ),
        object({ url: setting(registry, "The address.") }, {
          token_env: setting(token, "The variable with the token; by default no token is sent."),
          public_key: setting(
            nonEmptyText,
            "The public key for signatures of manifests; by default none is checked.",
          ),
        }),
      ),
      "registries",
    ),
    "The registries in which servers are looked up, in this order; by default that of PML.",
  ),
};

const grants = setting(
  record(
    grantee,
    object({}, {
      read: setting(granted, "Folders and files to read.", []),
      write: setting(granted, "Folders and files to write.", []),
      net: setting(granted, "Hosts to connect to.", []),
      run: setting(granted, "Programs to run.", []),
      env: setting(granted, "Variables to read.", []),
    }),
  ),
  "The permissions of servers beyond the defaults, by server.",
  {},
);

/** The settings of `sampling`. */
export const SAMPLING = {
  provider: setting(oneOf(["anthropic", "openai"]), "The format of the provider."),
  model: setting(nonEmptyText, "The name of the model."),
  models: setting(
    list(nonEmptyText, "names of models"),
    "More models, which a request may prefer.",
    [],
  ),
  base_url: setting(address, "The address of the provider; by default its own."),
  prefer: setting(
    oneOf(["client", "provider"]),
    "Which of the two answers if both can; by default the client, except for requests with tools that only the provider can handle.",
  ),
  max_tokens: setting(number(1, MOST_TOKENS), "The token limit of all answers to a request.", 4096),
  max_turns: setting(number(1, 100), "The maximum number of turns of one request.", 8),
  requests_per_minute: setting(number(1, 10_000), "The limit of requests in a minute.", 10),
  tokens_per_day: setting(number(1, 1_000_000_000), "The limit of tokens in a day.", 500_000),
  prices: setting(
    object({
      input_per_million: setting(price, "The price of a million tokens of requests."),
      output_per_million: setting(price, "The price of a million tokens of answers."),
    }, {}),
    "The prices of the model. Without them money is not counted.",
  ),
  money_per_day: setting(
    price,
    "The maximum cost of a day, in the currency of the prices; no limit by default.",
  ),
  allowed_tool_patterns: setting(tools, "Patterns for the tools that models may call.", []),
};
const { provider, model, ...OPTIONAL_SAMPLING } = SAMPLING;
const sampling = withTest(
  object({ provider, model }, OPTIONAL_SAMPLING),
  ({ prices, money_per_day: money }) => money === undefined || prices !== undefined,
  {
    wanted: "set only together with sampling.prices",
    key: "money_per_day",
    schema: { dependentRequired: { money_per_day: ["prices"] } },
  },
);

/** The optional settings of an identity. */
export const IDENTITY = {
  token: setting(
    text("the SHA-256 of a token, which `pml token new` writes", /^[0-9a-f]{64}$/),
    "The SHA-256 of its token, which `pml token new` writes. Without this key it has no access.",
  ),
  permissions: setting(
    permissions,
    "Its rules. Without this key each of its calls needs an answer of the user.",
  ),
  toolset: setting(identity, "The name of its tool set; by default all tools exist."),
  keys: setting(flag, "Whether its calls may use the keys of the user.", true),
  rates: setting(
    record(tool, text('a rate such as "60/minute"', RATE)),
    "How many calls it may make, by tool.",
    {},
  ),
};
const identities = record(identity, object({}, IDENTITY));

const workspaceServers = serverSections(leaf<string>(PERSONAL, () => false, { not: {} }));

/** The schema of the servers of a client's file, as PML writes them. */
export const clientServersSchema = workspaceServers.mcpServers;

/** The keys of a `.pml.json`. */
export const WORKSPACE = {
  version: setting(
    leaf<1>("1", (value) => value === 1, { const: 1 }),
    "The version of this format.",
    1,
  ),
  $schema: setting(string, "The address of the JSON Schema, for editors; none by default."),
  workspace: setting(
    text("a relative path", /^(?![/\\]|[A-Za-z]:|(.*[/\\])?\.\.([/\\]|$))./s),
    "The part of the workspace that tools may touch, relative to its root.",
    ".",
  ),
  permissions: setting(permissions, "The rules. Without this key the default rules apply."),
  ...SHARED,
  ...workspaceServers,
  cloud: setting(
    object({}, { url: setting(address, "The address; by default that of PML.") }),
    "The hub that runs servers in the cloud.",
  ),
  grants,
  intent: setting(
    withKeywords(text("at most 2000 characters", /^[^]{0,2000}$/), { maxLength: 2000 }),
    "A description of the work in this workspace, by which tools are chosen; none by default.",
  ),
};

/** The schema of a `.pml.json`. */
export const workspaceSchema = object({}, WORKSPACE);

/** The settings of `memory`. */
export const MEMORY = { enabled: setting(flag, "Whether PML records the use of tools.", true) };

/** The settings of `sandbox`. */
export const SANDBOX = {
  os_layer: setting(
    oneOf<OsLayer>(["auto", "landlock", "bwrap", "off", "required"]),
    "The layer of the operating system that confines modules and confined servers.",
    "auto",
  ),
};

/** The settings of `workflow`. */
export const WORKFLOW = {
  confidence: setting(
    share,
    "The confidence above which PML may run a plan that it created from an intent; otherwise the model only gets the plan.",
    0.8,
  ),
};

/** The keys of a `config.yaml`. */
export const USER_CONFIG = {
  permissions: setting(permissions, "The rules for all workspaces."),
  ...SHARED,
  limits: setting(
    object(
      {},
      Object.fromEntries(LIMIT_NAMES.map((name) => {
        const { values: [usual, least, most], about } = LIMITS[name];
        return [limitKey(name), setting(number(least, most), about, usual)];
      })),
    ),
    "The limits.",
  ),
  approvals: setting(
    object({}, {
      channel: setting(
        oneOf(["client", "page", "terminal"]),
        "The only channel for questions: forms of clients, `pml page` or `pml approve`; by default " +
          "PML chooses one.",
      ),
    }),
    "The questions to the user.",
  ),
  ask_for_keys: setting(
    flag,
    "Whether calls with an argument that looks like a key need an answer of the user.",
    false,
  ),
  journal: setting(
    oneOf(["required", "best_effort"]),
    "Whether every call needs a journal record, or calls that only read may run without one.",
    "required",
  ),
  memory: setting(
    valueOrObject(
      leaf<boolean>("true, false, or { enabled: false }", (value) => typeof value === "boolean", {
        type: "boolean",
      }),
      object({}, MEMORY),
    ),
    "Whether PML records the use of tools.",
    true,
  ),
  sandbox: setting(object({}, SANDBOX), "The sandbox."),
  mcpServers: serverSections(path).mcpServers,
  grants,
  network: setting(
    object({
      proxy: setting(
        withKeywords(
          text("http://HOST:PORT or http://${USER}:${PASSWORD}@HOST:PORT", {
            test: (value) => PROXY.test(value) && URL.canParse(value),
          }),
          { pattern: PROXY },
        ),
        "The address of the proxy.",
      ),
    }, {
      no_proxy: setting(
        list(text(EXCEPTION, EXCEPTIONS), "hosts"),
        "Hosts that PML reaches without the proxy.",
        [],
      ),
    }),
    "The proxy of PML and of installers. Without this key PML uses none, and installers use the variables of the system.",
  ),
  search: setting(
    object({}, {
      model: setting(folder, "The folder of the embedding model; none by default."),
    }),
    "Search.",
  ),
  warm: setting(flag, "Whether `pml stdio` starts approved servers before their first use.", false),
  workspaces: setting(
    list(folder, "paths of folders"),
    "Large or private folders, such as your home folder, in which tools read without a question.",
    [],
  ),
  workflow: setting(object({}, WORKFLOW), "Plans."),
  sampling: setting(sampling, "The model that answers servers; without this key only clients do."),
  toolsets: setting(
    record(text(NAME, /^[\w.-]{1,64}$/), tools),
    "Sets of tools, by name.",
    {},
  ),
  client_toolsets: setting(
    record(nonEmptyText, nonEmptyText),
    "The tool set of each client, by the name of the client.",
    {},
  ),
  client_meta: setting(
    list(metaKey, "keys of _meta"),
    "Keys of a client's _meta that PML sends to servers and does not show in approval requests.",
    [],
  ),
  client_name: setting(
    flag,
    "Servers get the name and the version of the client that uses them, in place of PML's.",
    true,
  ),
  notifications: setting(flag, "Whether the desktop shows that a call waits for you.", true),
  identities: setting(identities, "Other users of this PML over HTTP, by name.", {}),
  serve: setting(
    object({}, {
      sealing_key: setting(
        text("the path of a file, or ${NAME}", KEY_PLACE),
        "The key that several `pml serve` share: the path of its file, or ${NAME}; none by default.",
      ),
      replica_address: setting(
        text(
          "IP:PORT at which others reach it",
          /^(?!0\.0\.0\.0|\[::\])([\d.]+|\[[\da-f:]+\]):\d{1,5}$/i,
        ),
        "The address at which other `pml serve` processes reach this one; by default 127.0.0.1 and any port.",
      ),
      metrics: setting(flag, "Whether `pml serve` has `/metrics` for Prometheus.", false),
    }),
    "The settings of `pml serve`: metrics, and several processes behind one load balancer.",
  ),
  oauth: setting(
    object({}, {
      client_metadata_url: setting(
        address,
        "The address of your client id metadata document; none by default.",
      ),
      issuer_hosts: setting(
        record(
          address,
          list(
            text("HOST or HOST:PORT", /^([a-z\d][a-z\d.-]*|\[[\da-f:.]+\])(:\d{1,5})?$/i),
            "hosts",
          ),
        ),
        "Additional hosts for the endpoints of an issuer, by the address of the issuer.",
        {},
      ),
    }),
    "Sign-ins.",
  ),
  telemetry: setting(anyValue, "Ignored for now. PML sends no usage data."),
};

/** The schema of a `config.yaml`. */
export const userConfigSchema = object({}, USER_CONFIG);

/** A valid `config.yaml`. */
export type UserConfigValues = ValueOf<typeof userConfigSchema>;

/** The keys of a company's policy. No key allows anything. */
export const POLICY = {
  permissions: setting(
    object({}, {
      ask: setting(rules, "Calls that need an answer of the user, even if a rule allows them.", []),
      deny: setting(rules, "Calls that never run.", []),
    }),
    "Rules that nothing overrides.",
  ),
  forbid: setting(list(oneOf(FORBIDDEN), "kinds of servers"), "Servers that no user may use.", []),
  registries: setting(
    list(registry, "URLs"),
    "The only registries that may be asked; all by default.",
  ),
  hosts: setting(
    list(text(HOST, /^(\*\.)?[\w-]+(\.[\w-]+)*$|^\[[\da-f:.]+\]$/i), "hosts"),
    "The only hosts that may be reached; all by default.",
  ),
};

/** The schema of a company's policy. */
export const policySchema = object({}, POLICY);

/**
 * Returns both sections of servers. `certificate` is the schema for the path of a certificate. The
 * key `type` distinguishes the types of servers.
 */
function serverSections(certificate: ValueSchema<string>) {
  const parts: FormParts = {
    ...{ text: string, nonEmpty: nonEmptyText, texts: strings, flag, variable, path },
    ...{ folder, certificate, port: number(1, 65_535), matching: text, ...ENTRY },
    pasted: {
      ...describeAll(PASTED, "A key of an entry of a registry. It is ignored, and not needed."),
      ...ENTRY.required,
    },
    ignored: {
      disabled: setting(flag, "True removes the server.", false),
      timeout: setting(
        anyValue,
        "The time limit of its calls in milliseconds; a value below 1000 is in seconds; by default limits.call_ms.",
      ),
      description: setting(anyValue, "A key of clients. It is ignored."),
      ...describeAll(IGNORED, "A key of clients. It is ignored: only rules allow calls."),
    },
    type: (...types) => ({
      type: setting(oneOf(types), "The kind of server. In mcpServers, url decides by default."),
    }),
  };
  const forms = KINDS.flatMap(({ definition }) => definition?.forms?.(parts) ?? []);
  const formsOf = (section: keyof EntryForms): SchemaMembers =>
    Object.assign({}, ...forms.map((form) => form[section]));
  const own = selectByType(formsOf("own")) as ValueSchema<ServerEntry>;
  const clientForms = formsOf("clients");
  const clients = selectByType(clientForms) as ValueSchema<ServerEntry>;
  const check = (value: unknown, place: ValuePlace): value is ServerEntry =>
    clients(withType(value), place);
  const typed: ValueSchema<ServerEntry> = Object.assign(check, {
    schema: () => typedSchema(clients.schema(), clientForms),
  });
  return {
    private_mcps: setting(record(title, own), "Servers, by name.", {}),
    mcpServers: setting(record(title, typed), "Servers in the format of MCP clients, by name.", {}),
  };
}

function describeAll(members: SchemaMembers, about: string): SchemaMembers {
  const entries = Object.entries(members).map(([key, schema]) => [key, setting(schema, about)]);
  return Object.fromEntries(entries);
}

/** Returns the schema of an entry whose `type` may be missing if the other keys show it. */
function typedSchema(schema: Schema, forms: SchemaMembers): Schema {
  const formOf = (entry: object): Schema => {
    const { type } = withType(entry) as { readonly type: string };
    return schemaWithoutType(forms[type] ?? anyValue);
  };
  const byUrl = { if: { required: ["url"] }, then: formOf({ url: "" }), else: formOf({}) };
  const { wanted, properties: { type } } = schema as { wanted: string; properties: SchemaMembers };
  // Editors suggest these keys before one of them selects a type.
  const properties = { type, url: Object(byUrl.then.properties).url };
  const typed = { if: { required: ["type"] }, then: schema, else: byUrl };
  return { type: "object", wanted, properties, ...typed };
}
