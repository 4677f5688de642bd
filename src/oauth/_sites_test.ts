import assert from "node:assert/strict";
import { PmlError } from "../core/errors.ts";
import { Protocol } from "./_protocol.ts";
import { assertSites, type Endpoints, type IssuerHosts, siteOf } from "./_sites.ts";

/** Checks the endpoints of an issuer for a server. Returns the message of the refusal. */
async function refusal(
  endpoints: Endpoints,
  { url = "https://mcp.example.com/mcp", hosts }: {
    readonly url?: string;
    readonly hosts?: IssuerHosts;
  } = {},
): Promise<string | undefined> {
  const server = { name: "far", url, named: new Set<string>() };
  const protocol = await Protocol.open(server, { fetch: () => assert.fail("nothing is sent") });
  try {
    await assertSites(protocol, endpoints, hosts);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof PmlError);
    assert.equal(error.code, "PERMISSION_DENIED");
    return error.message;
  }
}

Deno.test("siteOf() returns the registrable domain, else the origin (GX4)", async () => {
  const sites = {
    "https://login.accounts.example.com/a": "example.com",
    "https://example.com:8443": "example.com",
    "https://example.com.": "example.com",
    "https://a.b.example.co.uk": "example.co.uk",
    "https://a.good.github.io": "good.github.io",
    "https://b.a.replit.dev": "b.a.replit.dev",
    "https://github.io": "https://github.io",
    "https://x.execute-api.eu-west-1.amazonaws.com": "x.execute-api.eu-west-1.amazonaws.com",
    "https://127.0.0.1:4711/a": "https://127.0.0.1:4711",
    "http://127.1:4711/a": "http://127.0.0.1:4711",
    "https://[2001:db8::1]": "https://[2001:db8::1]",
    "http://localhost:4711": "http://localhost:4711",
    "https://id.corp": "https://id.corp",
    "https://a.id.internal": "https://a.id.internal",
  };
  for (const [url, site] of Object.entries(sites)) {
    assert.equal(await siteOf(new URL(url)), site, url);
  }
});

Deno.test("assertSites() allows endpoints on the site of the issuer, and refuses all others (GX4)", async () => {
  const issuer = "https://accounts.good.com/tenant";
  for (const kind of ["authorization", "token", "registration", "revocation"]) {
    const at = (endpoint: unknown) => ({ issuer, [`${kind}_endpoint`]: endpoint }) as Endpoints;
    for (const host of ["accounts.good.com", "good.com", "token.api.good.com", "good.com:8443"]) {
      assert.equal(await refusal(at(`https://${host}/x`)), undefined, `${kind} ${host}`);
    }
    for (
      const host of ["evil.com", "good.com.evil.com", "xgood.com", "good.co", "127.0.0.1", "good"]
    ) {
      const message = await refusal(at(`https://${host}/x`)) ?? "";
      assert.equal(
        message,
        `Cannot sign in at "far": the issuer "accounts.good.com" has its ${kind} endpoint on ` +
          `another site, "${host}"`,
      );
    }
    for (const url of ["https://accounts.good.com@evil.com/", "file:///x", "data:,x", "x"]) {
      assert.notEqual(await refusal(at(url)), undefined, `${kind} ${url}`);
    }
    // Two customers of a hosting service that assigns subdomains.
    const tenants = { issuer: "https://good.github.io" };
    const other = { ...tenants, [`${kind}_endpoint`]: "https://evil.github.io/x" };
    assert.match(await refusal(other) ?? "", /"good\.github\.io".*"evil\.github\.io"/);
    // Without a registrable domain, the port is part of the site.
    const here = { issuer: "http://127.0.0.1:1" };
    assert.equal(
      await refusal({ ...here, [`${kind}_endpoint`]: "http://127.0.0.1:1/x" }),
      undefined,
    );
    assert.match(
      await refusal({ ...here, [`${kind}_endpoint`]: "http://127.0.0.1:2/x" }) ?? "",
      /"127\.0\.0\.1:1".*"127\.0\.0\.1:2"/,
    );
  }
});

Deno.test("assertSites() allows only the authorization page on the site of the MCP server (GX4)", async () => {
  const issuer = "https://accounts.good.com";
  const at = "https://login.example.com/x";
  assert.equal(await refusal({ issuer, authorization_endpoint: at }), undefined);
  for (const kind of ["token", "registration", "revocation"]) {
    assert.match(
      await refusal({ issuer, [`${kind}_endpoint`]: at }) ?? "",
      /"login\.example\.com"/,
    );
  }
});

Deno.test("assertSites() allows the shipped hosts of an issuer only for this issuer (GX4)", async () => {
  const google = "https://oauth2.googleapis.com/token";
  const pool = "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_aB3";
  const domain = (region: string) => `https://my-app.auth.${region}.amazoncognito.com/oauth2/token`;
  const entra = "https://login.microsoftonline.com/1b2c/oauth2/token";
  const taken = [
    ["https://accounts.google.com", google],
    ["https://accounts.google.com/", google],
    [pool, domain("eu-west-1")],
    ["https://sts.windows.net/1b2c/", entra],
  ];
  for (const [issuer = "", token_endpoint] of taken) {
    assert.equal(await refusal({ issuer, token_endpoint }), undefined, issuer);
  }
  const refused = [
    ["https://accounts.google.com.evil.com", google],
    ["https://evil.com/https://accounts.google.com", google],
    ["https://accounts.google.com/other", google],
    ["https://accounts.google.com", "https://evil.googleapis.com/token"],
    ["https://accounts.google.com", "https://oauth2.googleapis.com:8443/token"],
    [pool, domain("us-east-1")],
    [pool, "https://a.b.auth.eu-west-1.amazoncognito.com/oauth2/token"],
    [pool, "https://evil.com/.auth.eu-west-1.amazoncognito.com"],
    ["https://cognito-idp.eu-west-1.amazonaws.com/a/b", domain("eu-west-1")],
    ["https://sts.windows.net/1b2c/", "https://login.microsoftonline.evil.com/"],
  ];
  for (const [issuer = "", token_endpoint] of refused) {
    assert.notEqual(
      await refusal({ issuer, token_endpoint }),
      undefined,
      `${issuer} ${token_endpoint}`,
    );
  }
});

Deno.test("assertSites() allows the hosts that the user configured for an issuer (GX4)", async () => {
  const hosts = { "https://id.good.com": ["Tokens.Other.net", "other.org:8443"] };
  const at = (token_endpoint: string, issuer = "https://id.good.com") =>
    refusal({ issuer, token_endpoint }, { hosts });
  assert.equal(await at("https://tokens.other.net/x"), undefined);
  assert.equal(await at("https://other.org:8443/x"), undefined);
  assert.notEqual(await at("https://other.org/x"), undefined);
  assert.notEqual(await at("https://a.tokens.other.net/x"), undefined);
  assert.notEqual(await at("https://tokens.other.net/x", "https://id.evil.com"), undefined);
});
