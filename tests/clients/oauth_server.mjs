/**
 * An authorization server of `oidc-provider`, and an MCP server of the official SDK that takes its
 * tokens. It writes the address of the MCP server, and then a line for what becomes of clients and
 * refresh tokens.
 *
 *     node oauth_server.mjs
 */

import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { Provider } from "oidc-provider";

const SCOPE = "read";
/** How long an access token lives, in seconds: so short that PML refreshes it before each call. */
const LIFE_S = 1;
const tell = (line) => console.log(line);

const mcp = createServer(answerMcp).listen(0, "127.0.0.1");
const server = createServer((...asked) => app(...asked)).listen(0, "127.0.0.1");
await Promise.all([mcp, server].map((one) => new Promise((resolve) => one.once("listening", resolve))));
const [issuer, resource] = [server, mcp].map((one) => `http://127.0.0.1:${one.address().port}`);
const url = `${resource}/mcp`;

const provider = new Provider(issuer, {
  scopes: [SCOPE],
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: SCOPE,
        audience: url,
        accessTokenFormat: "opaque",
        accessTokenTTL: LIFE_S,
      }),
    },
  },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: (_, client) => client.grantTypeAllowed("refresh_token"),
  interactions: { url: (_, { uid }) => `/interaction/${uid}` },
  findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
});
const TOLD = ["registration_create.success", "refresh_token.consumed", "refresh_token.destroyed"];
for (const event of [...TOLD, "grant.revoked"]) provider.on(event, () => tell(event));
for (const what of ["authorization", "grant", "revocation", "registration_create"]) {
  provider.on(`${what}.error`, (_, error) => tell(`! ${what}: ${error.error_description}`));
}
const ours = provider.callback();

/** Says yes to each question that the person is asked. */
async function app(request, response) {
  if (!request.url.startsWith("/interaction/")) return ours(request, response);
  const { prompt, params, session } = await provider.interactionDetails(request, response);
  if (prompt.name === "login") {
    return await provider.interactionFinished(request, response, { login: { accountId: "a" } });
  }
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(SCOPE);
  grant.addResourceScope(url, SCOPE);
  const consent = { grantId: await grant.save() };
  await provider.interactionFinished(request, response, { consent });
}

async function answerMcp(request, response) {
  const about = `${resource}/.well-known/oauth-protected-resource/mcp`;
  if (request.url.startsWith("/.well-known/oauth-protected-resource")) {
    response.setHeader("content-type", "application/json");
    const said = { resource: url, authorization_servers: [issuer], scopes_supported: [SCOPE] };
    return response.end(JSON.stringify(said));
  }
  const [, token = ""] = /^Bearer (.+)$/.exec(request.headers.authorization ?? "") ?? [];
  const found = await provider.AccessToken.find(token);
  if (found?.aud !== url) {
    response.setHeader("www-authenticate", `Bearer resource_metadata="${about}", scope="${SCOPE}"`);
    return response.writeHead(401).end();
  }
  const own = new McpServer({ name: "far", version: "1" });
  own.registerTool("who", { description: "Who signed in" }, () => ({
    content: [{ type: "text", text: `account ${found.accountId}` }],
  }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await own.connect(transport);
  await transport.handleRequest(request, response);
}

tell(url);
