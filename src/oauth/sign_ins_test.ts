import assert from "node:assert/strict";
import { AuthorizationServer } from "../../tests/kit/authorization_server.ts";
import { browse } from "../../tests/kit/browser.ts";
import { ProtectedHttp } from "../../tests/kit/protected_http.ts";
import { HttpSink } from "../../tests/kit/sinks.ts";
import { Person, serverOf } from "../../tests/oauth_scene.ts";

/** Runs a test with a separate PML home. */
async function atHome(test: (person: Person) => Promise<void>, document?: string): Promise<void> {
  const home = await Deno.makeTempDir({ prefix: "pml-oauth-" });
  try {
    using person = new Person(home, document);
    await test(person);
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}

for (const metadata of ["header", "path", "root"] as const) {
  for (const [path, as] of [["", "oauth"], ["/a", "oauth"], ["/a", "oidc"], ["/a", "oidc-below"]]) {
    Deno.test(`SignIns finds metadata of kinds ${metadata} and ${as}${path}`, async () => {
      const kind = as as "oauth" | "oidc" | "oidc-below"; // as in the list above
      await using server = new AuthorizationServer({ scopes: ["read"], path, metadata: kind });
      await using mcp = new ProtectedHttp("modern", { server, scope: "read", metadata });
      await atHome(async (person) => {
        await person.signIn(serverOf("notes", mcp.url));
        const [kept] = await person.signIns.all();
        assert.deepEqual([kept?.issuer, kept?.scopes], [server.issuer, ["read"]]);
      });
      server.assertClean();
    });
  }
}

for (const metadata of ["oauth", "none"] as const) {
  Deno.test(`SignIns supports servers of revision 2025-03-26 with metadata of kind ${metadata}`, async () => {
    await using server = new AuthorizationServer({ metadata });
    const isMounted = true;
    await using mcp = new ProtectedHttp("legacy", { server, metadata: "none", isMounted });
    await atHome((person) => person.signIn(serverOf("notes", mcp.url)));
    server.assertClean();
  });
}

Deno.test("SignIns accepts only the pasted address of the current sign-in", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  await atHome(async (person) => {
    await using signIn = await person.begin(serverOf("notes", mcp.url));
    const { address } = await browse(signIn.url, { stops: true });
    for (const wrong of ["", "nonsense", address.replace("state=", "state=_"), signIn.url]) {
      assert.throws(() => signIn.paste(wrong), /the browser was sent/);
    }
    signIn.paste(` ${address}\n`);
    await signIn.done;
  });
  server.assertClean();
});

Deno.test("SignIns registers a client once, and again after a failed sign-in", async () => {
  await using server = new AuthorizationServer({ isAnyPort: false });
  await using mcp = new ProtectedHttp("modern", { server });
  const registered = () => server.to("/register").length;
  await atHome(async (person) => {
    const notes = serverOf("notes", mcp.url);
    await person.signIn(notes);
    await person.signIn(notes);
    assert.equal(registered(), 1);
    for (const id of server.clients.ids) server.clients.forget(id);
    await assert.rejects(person.signIn(notes), /leads nowhere/);
    server.violations.length = 0;
    await person.signIn(notes);
    assert.equal(registered(), 2);
  });
  server.assertClean();
});

Deno.test("SignIns registers a client again when its secret has expired", async () => {
  await using server = new AuthorizationServer();
  server.options.after = async ({ path }, answer) =>
    path === "/register"
      ? Response.json({ ...await answer.json(), client_secret_expires_at: 1 }, answer)
      : answer;
  await using mcp = new ProtectedHttp("modern", { server });
  await atHome(async (person) => {
    for (const count of [1, 2]) {
      await person.signIn(serverOf("notes", mcp.url));
      assert.equal(server.to("/register").length, count);
    }
  });
  server.assertClean();
});

Deno.test("SignIns uses a client id metadata document if the server supports it", async () => {
  for (const takesDocuments of [true, false]) {
    await using server = new AuthorizationServer({ takesDocuments });
    await using mcp = new ProtectedHttp("modern", { server });
    await using page: HttpSink = new HttpSink(() => {
      const client_id = `${page.url}/pml.json`;
      const redirect_uris = ["http://127.0.0.1/callback"];
      return Response.json({ client_id, client_name: "PML", redirect_uris });
    });
    const document = `${page.url}/pml.json`;
    await atHome((person) => person.signIn(serverOf("notes", mcp.url)), document);
    assert.equal(server.to("/register").length, takesDocuments ? 0 : 1);
    assert.equal(
      server.to("/authorize")[0]?.query.get("client_id") === document,
      takesDocuments,
    );
    server.assertClean();
  }
});

Deno.test("SignIns explains what to configure if the server does not support registration", async () => {
  await using server = new AuthorizationServer({ registers: false });
  await using mcp = new ProtectedHttp("modern", { server });
  await atHome(async (person) => {
    await assert.rejects(person.begin(serverOf("notes", mcp.url)), (error) => {
      const { code, message, hint } = Object(error);
      assert.equal(code, "CONFIG_INVALID");
      assert.match(message, /client registration/);
      assert.match(hint, /"oauth": \{"client_id": "…"\}/);
      return true;
    });
  });
});

Deno.test("SignIns names the port that cannot be used", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  const redirect_port = Number(new URL(server.origin).port);
  await atHome(async (person) => {
    const notes = serverOf("notes", mcp.url, { redirect_port });
    await assert.rejects(person.begin(notes), new RegExp(`port ${redirect_port} of this machine`));
  });
});

Deno.test("SignIns refuses a server without PKCE, and a page in a private network", async () => {
  const wrong = [
    [{ code_challenge_methods_supported: undefined }, /does not support PKCE with S256/],
    [{ authorization_endpoint: "javascript:alert(1)" }, /no sign-in page/],
    [{ authorization_endpoint: "https://me:secret@example.com/" }, /no sign-in page/],
    [{ authorization_endpoint: "http://10.0.0.1/authorize" }, /no sign-in page/],
    [{ authorization_endpoint: "https://10.0.0.1/authorize" }, /leads the browser to "10.0.0.1"/],
    [{ token_endpoint: "https://10.0.0.1/token" }, /another site, "10.0.0.1"/],
  ] as const;
  for (const [amended, said] of wrong) {
    await using server = new AuthorizationServer({ amend: (usual) => ({ ...usual, ...amended }) });
    await using mcp = new ProtectedHttp("modern", { server });
    await atHome(async (person) => {
      await assert.rejects(async () => {
        await using signIn = await person.begin(serverOf("notes", mcp.url));
        await browse(signIn.url);
        await signIn.done;
      }, said);
      assert.deepEqual(await person.signIns.all(), []);
    });
  }
});
