import assert from "node:assert/strict";
import { join } from "node:path";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/server/validators/ajv";
import schema from "../../config/policy.schema.json" with { type: "json" };
import type { PmlError } from "../core/errors.ts";
import { readCompany } from "./_company_file.ts";
import { Company, type PolicyFile, type ServerLike } from "./company.ts";
import { settleConfig } from "./config.ts";
import { Scratch } from "./_scratch_test.ts";
import { invalidConfigError, type Report } from "./_problem.ts";

/** Reads policies as those of the system, or as that of the variable. */
async function read(
  texts: readonly string[],
  { isSaid = true }: { readonly isSaid?: boolean } = {},
): Promise<{ readonly company: Company | undefined; readonly error: PmlError | undefined }> {
  using scratch = new Scratch();
  const paths = texts.map((text, at) => {
    const path = scratch.write(`p${at}/policy.yaml`, text);
    Deno.chmodSync(join(path, ".."), 0o755);
    Deno.chmodSync(path, 0o644);
    return path;
  });
  const report: Report = { problems: [], warnings: [] };
  const { environment } = { environment: scratch.environment() };
  const places = isSaid ? { policies: [], policy: paths[0] } : { policies: paths };
  const company = await readCompany({ ...environment, ...places }, report);
  const { problems } = report;
  return {
    company,
    error: problems.length === 0 ? undefined : invalidConfigError(problems, report),
  };
}

const server = (more: Partial<ServerLike>): ServerLike => ({ name: "s", kind: "stdio", ...more });

Deno.test("A policy forbids servers by their kind, their program and their host", async () => {
  const HOSTS = { hosts: ["*.example.com", "A.example.org"] };
  const cases: readonly (readonly [object, Partial<ServerLike>, boolean])[] = [
    [{ forbid: ["stdio"] }, { command: "x" }, true],
    [{ forbid: ["http"] }, { command: "x" }, false],
    [{ forbid: ["unconfined"] }, { command: "x" }, true],
    [{ forbid: ["unconfined"] }, { command: "npx", confine: true }, false],
    [{ forbid: ["unconfined"] }, { command: "npx", confine: true, countsAsUnconfined: true }, true],
    [{ forbid: ["unconfined"] }, { kind: "deno" }, false],
    [{ forbid: ["container"] }, { command: "x", args: ["docker"] }, false],
    [{ forbid: ["container"] }, { command: "C:\\bin\\Docker.exe" }, true],
    [{ forbid: ["container"] }, { command: "env", args: ["A=1", "podman", "run"] }, true],
    [{ forbid: ["container"] }, { command: "bash", args: ["-lc", "docker run x"] }, true],
    [{ forbid: ["registry"] }, { kind: "deno", isOfRegistry: true }, true],
    [{ forbid: ["registry"] }, { kind: "deno" }, false],
    [{ forbid: ["cloud"] }, { kind: "cloud", proxyTo: "https://a.example.com" }, true],
    [HOSTS, { kind: "http", url: "https://b.a.EXAMPLE.com:8443/x" }, false],
    [HOSTS, { kind: "http", url: "https://example.com/" }, true],
    [HOSTS, { kind: "http", url: "https://a.example.org./" }, false],
    [HOSTS, { kind: "http", url: "https://notexample.com/" }, true],
    [HOSTS, { kind: "http", url: "https://example.com.evil.org/" }, true],
    [HOSTS, { kind: "http", url: "https://a.example.org@evil.org/" }, true],
    [HOSTS, { kind: "cloud", proxyTo: "https://evil.org/" }, true],
    [{ hosts: [] }, { kind: "http", url: "http://localhost/" }, true],
    [{ hosts: ["127.0.0.1"] }, { kind: "http", url: "http://0x7f.1/" }, false],
    [{ hosts: ["[::1]"] }, { kind: "http", url: "http://[0:0::1]:8/" }, false],
    [{}, { command: "docker", isOfRegistry: true }, false],
  ];
  for (const [policy, more, isForbidden] of cases) {
    const { company, error } = await read([JSON.stringify(policy)]);
    assert.equal(error, undefined);
    const why = company?.forbids(server(more));
    assert.equal(why !== undefined, isForbidden, JSON.stringify([policy, more]));
    if (why !== undefined) assert.match(why.error.message, /^Cannot use the server "s": the comp/);
  }
});

Deno.test("a server that one of several policies forbids is forbidden", async () => {
  const texts = ['hosts: ["a.example"]\nforbid: [http]', 'hosts: ["*.example"]\nforbid: []'];
  const { company } = await read(texts, { isSaid: false });
  // The files of a test belong to root only where root runs it.
  if (Deno.uid() !== 0) return;
  assert.ok(company?.forbidsHost("https://b.example"));
  assert.equal(company?.forbidsHost("https://a.example"), undefined);
  assert.ok(company?.forbids(server({ kind: "http", url: "https://a.example" })));
});

Deno.test("A registry is compared by its whole address", async () => {
  const { company } = await read([
    'registries: ["https://r.example/mcp", "mcp+https://R.example"]',
  ]);
  for (const url of ["https://R.EXAMPLE:443/mcp/", "mcp+https://r.example/"]) {
    assert.equal(company?.forbidsRegistry(url), undefined, url);
  }
  for (
    const url of ["https://r.example", "mcp+https://r.example/mcp", "https://evil.example/mcp"]
  ) {
    assert.ok(company?.forbidsRegistry(url), url);
  }
});

Deno.test("forbidden servers are removed from the configuration, and the rest is unchanged", async () => {
  using scratch = new Scratch();
  const policy = scratch.write("p.yaml", '{ hosts: ["a.example"], forbid: [unconfined] }');
  Deno.chmodSync(policy, 0o644);
  scratch.write("user/.pml/config.yaml", "sandbox: { os_layer: off }");
  scratch.write(
    "ws/.pml.json",
    JSON.stringify({
      version: 1,
      mcpServers: { one: { command: "x" }, two: { command: "npx", confine: true } },
      grants: { two: { net: ["a.example:8443", "b.example", "*"], read: ["/x"] } },
    }),
  );
  const loaded = await scratch.load({ PML_POLICY: policy });
  assert.equal(loaded.problem, undefined);
  const config = settleConfig(loaded, true);
  assert.deepEqual(config.servers.map(({ name }) => name), ["two"]);
  assert.deepEqual({ ...config.grants.two }, { net: ["a.example:8443"], read: ["/x"] });
  assert.equal(config.osLayer, "auto");
  // Other lists would make other connections.
  assert.equal(settleConfig(loaded, true).grants, config.grants);
  assert.equal(settleConfig(loaded, true).registries, config.registries);
});

Deno.test("A policy of the system belongs to root, and so does its folder", async () => {
  if (Deno.uid() !== 0) return;
  for (const [change, isFine] of [[[0, 0], true], [[1, 0], false], [[0, 1], false]] as const) {
    using scratch = new Scratch();
    const path = scratch.write("etc/pml/policy.yaml", "{}");
    Deno.chmodSync(path, 0o644);
    Deno.chmodSync(join(path, ".."), 0o755);
    Deno.chownSync(path, change[0], 0);
    Deno.chownSync(join(path, ".."), change[1], 0);
    const report: Report = { problems: [], warnings: [] };
    const environment = { ...scratch.environment(), policies: [path] };
    const company = await readCompany(environment, report);
    assert.equal(report.problems.length === 0, isFine);
    // An invalid policy allows no server and no host.
    const all = [
      server({}),
      server({ kind: "deno" }),
      server({ kind: "http", url: "https://x.y" }),
    ];
    assert.equal(all.every((each) => company?.forbids(each)), !isFine);
    assert.equal(company?.forbidsRegistry("https://x.y") !== undefined, !isFine);
  }
});

const GOOD: readonly object[] = [
  {},
  { permissions: { deny: ["*", "a:b(x=1)"], ask: ["a:*", "a:@sampling"] } },
  { forbid: ["deno", "stdio", "http", "cloud", "registry", "container", "unconfined"] },
  { registries: [], hosts: [] },
  { registries: ["https://r.example/mcp", "mcp+https://r.example", "http://127.0.0.1:9/"] },
  { hosts: ["a", "a.b", "*.a.b", "10.0.0.1", "[::1]", "A_b-c.D"] },
];
const BAD: readonly object[] = [
  { permissions: { allow: ["*"] } },
  { permissions: { deny: "a:b" } },
  { permissions: { deny: ["a"] } },
  { allow: ["*"] },
  { forbid: ["Stdio"] },
  { forbid: "stdio" },
  { registries: ["r.example"] },
  { registries: ["http://r.example"] },
  { registries: [{ url: "https://r.example" }] },
  { hosts: ["*"] },
  { hosts: ["a.*"] },
  { hosts: ["https://a"] },
  { hosts: ["a:1"] },
  { hosts: [""] },
  { $schema: "x" },
];
const validate = new AjvJsonSchemaValidator().getValidator(schema as object);

Deno.test("the parser and policy.schema.json accept and refuse the same policies", async () => {
  for (const [values, isGood] of [[GOOD, true], [BAD, false]] as const) {
    for (const value of values) {
      const { company, error } = await read([JSON.stringify(value)]);
      assert.equal(error === undefined, isGood, JSON.stringify(value));
      assert.equal(validate(value).valid, isGood, JSON.stringify(value));
      if (isGood) continue;
      assert.match(`${error?.hint}`, /must correct the policy/);
      assert.ok(company?.forbids(server({ kind: "deno" })), "nothing is left");
    }
  }
});

Deno.test("a list of hosts forbids addresses whose host is not written out, and no others", () => {
  const rules = { allow: [], ask: [], deny: [] };
  const of = (policy: object) =>
    new Company([{ path: "/p", policy, rules } as unknown as PolicyFile]);
  const http = (url: string) => ({ name: "s", kind: "http", url });
  const hosts = of({ hosts: ["h.example"] });
  for (const url of ["${BASE:-https://h.example}/mcp", "https://${H}.example/", "nothing"]) {
    assert.match(hosts.forbids(http(url))?.error.message ?? "", /does not write out/, url);
    assert.equal(of({ forbid: ["cloud"] }).forbids(http(url)), undefined);
  }
  assert.equal(hosts.forbids(http("https://h.example/${KEY}?k=${KEY}")), undefined);
  assert.match(hosts.forbids(http("https://o.example/${KEY}"))?.error.message ?? "", /o\.example/);
});
