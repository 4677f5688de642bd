/**
 * The server kind "http": servers at a URL.
 *
 * @module
 */

import { variablesIn } from "../../core/folder_variables.ts";
import { quoted, visible } from "../../core/json.ts";
import type { Manifest } from "../manifest.ts";
import { addressProblem, shownAddress, variablesOfAddress } from "../../core/server_address.ts";
import { list, object, record, setting, withTest } from "../../core/value_schema.ts";
import type { DescriptionParts, FormParts, RemoteDefinition, ServerKind, Texts } from "../kind.ts";

/** The manifest of a server that is reached over HTTP. */
export interface HttpManifest extends Manifest {
  readonly url: string;
  /** The headers of each request. `${NAME}` is replaced when a request is sent. */
  readonly headers: Texts;
}

/** Matches headers that control how a request is sent, or that PML sets itself. */
const TRANSPORT_HEADER =
  /^(?:host|connection|keep-alive|te|trailer|upgrade|expect|transfer-encoding|proxy-.*|content-.*|accept|accept-encoding|mcp-.*|x-pml-.*)$/i;
const HEADER = /^[\w!#$%&'*+.^`|~-]{1,128}$/;

/** The values of `type`, as clients write them. */
const TYPES = ["http", "streamable-http", "sse"];

/** An entry of a file. */
type RemoteEntry = Partial<RemoteDefinition> & {
  readonly type: string;
  readonly url: string;
};

/** The kind of servers at a URL. */
export const HTTP: ServerKind<HttpManifest, RemoteDefinition> = {
  name: "http",
  pinnedAs: "http",
  isSandboxed: false,
  isOnline: true,
  notifies: true,
  checksItself: true,
  definition: {
    types: TYPES,
    forms: (parts) => {
      const { type, certificate } = parts;
      // An invalid address makes only its server fail, not the whole configuration.
      const address = {
        url: setting(
          parts.matching("the URL of the server", /\S/),
          "The address. ${NAME} and ${NAME:-default} are replaced; keys may be in its path and query.",
        ),
      };
      const header = parts.matching("the name of a header", /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/);
      const line = parts.matching("a header value on one line", /^[^\r\n]*$/);
      const sent = {
        headers: setting(
          record(header, line),
          "Headers of each request. ${NAME} and ${NAME:-default} are replaced.",
          {},
        ),
        oauth: setting(signInForm(parts), "The settings of the sign-in."),
        tools: parts.listedTools,
        ca: setting(
          certificate,
          "A file of certificate authorities to trust as well; none by default.",
        ),
        cert: setting(
          certificate,
          "The file of your certificate. It needs key, too; none by default.",
        ),
        key: setting(certificate, "The file of the private key of cert; none by default."),
      };
      const secure = /^https:/i;
      const atHttps = { properties: { url: { pattern: secure } } };
      const client = withTest(
        object({ ...type(...TYPES), ...address }, { ...sent, ...parts.ignored }),
        ({ url, ca, cert, key }) => !cert === !key && (!(ca ?? cert) || secure.test(url)),
        {
          wanted: "cert and key together, and a url that begins with https://",
          schema: {
            name: "clientRemote",
            dependentRequired: { cert: ["key"], key: ["cert"] },
            dependentSchemas: { ca: atHttps, cert: atHttps },
          },
        },
      );
      return {
        own: { http: object({ ...type("http"), ...address }, { ...sent, ...parts.pasted }) },
        clients: Object.fromEntries(TYPES.map((name) => [name, client])),
      };
    },
    read: ({ json, names, tools, limits, settings, warn }) => {
      const { type, url, headers = {}, oauth, ca, cert, key } = json as RemoteEntry;
      const problem = addressProblem(url);
      if (problem !== undefined) warn("url", `is not ${problem}`);
      const isSse = type === "sse" || undefined;
      const at = { url, isSse, headers, oauth, ca, cert, key };
      return { ...names, ...at, tools, ...limits, ...settings };
    },
    describe: ({ url, headers, oauth }, { describeValues, plain }) =>
      `a server at ${addressText(url, plain)}${describeValues("headers", headers)}${
        describeValues("sign-in settings", texts(oauth))
      }`,
    identity: ({ url, headers }) => ({ url, headers }),
    texts: ({ url, headers, oauth }) => ({
      url: { "": url },
      headers,
      oauth: { client_secret: oauth?.client_secret ?? "" },
    }),
    remote: (definition) => definition,
  },
  manifest: {
    text: {
      title: "remote server",
      summary: "It is a remote server: each call goes to its address, whose operator can read it.",
      official: "remote",
    },
    read: (reader) => ({
      url: reader.address("url", reader.entry.url),
      headers: reader.values("headers", reader.entry.headers, isHeader),
    }),
    templates: ({ headers }) => Object.values(headers),
    facts: ({ url, headers }) => ({
      url,
      headers: Object.entries(headers).map(([name, value]) => `${name}=${value}`),
    }),
    definition: ({ url, headers }) => ({ url, headers }),
    lines: ({ headers }, { describe }) => [
      describe({ headers: {} }),
      ...Object.entries(headers).map(([name, value]) =>
        visible(`It is sent the header ${name}: ${value}`, Infinity)
      ),
    ],
  },
};

/**
 * Describes an address for consent: with the values of variables in its host, and with the names of
 * variables in its path and query, which are keys.
 */
function addressText(url: string, plain: DescriptionParts["plain"] = () => undefined): string {
  const variables = variablesOfAddress(url);
  const keys = variables.keys.flatMap(variablesIn);
  return quoted(shownAddress(url, plain), Infinity) +
    (variables.plain.length === 0 ? "" : ` (from ${variables.plain.join(", ")})`) +
    (keys.length === 0 ? "" : `, is sent the keys ${keys.join(", ")} in its address`);
}

function texts(values: object = {}): Texts {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, `${value}`]));
}

/** Returns whether a definition may contain a header with this name. */
export function isHeader(name: string): boolean {
  return HEADER.test(name) && !TRANSPORT_HEADER.test(name);
}

/** Returns the form of the settings of a sign-in. */
function signInForm({ nonEmpty: filled, port, matching }: FormParts) {
  return withTest(
    object({}, {
      client_id: setting(filled, "The id of the client; by default PML registers itself."),
      client_secret: setting(filled, "Its secret: ${NAME} is replaced; none by default."),
      scopes: setting(
        list(matching("a scope", /^[\x21\x23-\x5b\x5d-\x7e]+$/), "scopes"),
        "The scopes to ask for; by default those that the server names.",
      ),
      redirect_port: setting(port, "The port of the redirect; by default any free port."),
    }),
    ({ client_id, client_secret }) => client_secret === undefined || client_id !== undefined,
    {
      wanted: "set only together with oauth.client_id",
      key: "client_secret",
      schema: { dependentRequired: { client_secret: ["client_id"] } },
    },
  );
}
