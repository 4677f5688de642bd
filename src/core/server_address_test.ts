import assert from "node:assert/strict";
import type { PmlError } from "../core/errors.ts";
import { addressProblem, filledAddress, variablesOfAddress } from "./server_address.ts";

const filled = (written: string, plain: Record<string, string> = {}, ...keys: string[]) =>
  filledAddress(written, { server: "s", plain: new Map(Object.entries(plain)), keys });

Deno.test("filledAddress() encodes keys in path and query, and shows their names", () => {
  assert.deepEqual(filled("https://h.example/${A}/v2/mcp?k=${B}&x=1", {}, "a/b c", "d&e=ä"), {
    requestUrl: "https://h.example/a%2Fb%20c/v2/mcp?k=d%26e%3D%C3%A4&x=1",
    displayUrl: "https://h.example/${A}/v2/mcp?k=${B}&x=1",
    url: "https://h.example/",
  });
  assert.equal(filled("https://h.example/api/${A}", {}, "a").url, "https://h.example/api/");
  assert.equal(filled("https://h.example/api/fc-${A}/x", {}, "a").url, "https://h.example/api/");
  assert.equal(filled("https://h.example/mcp?y=1&k=${A}", {}, "a").url, "https://h.example/mcp");
  assert.equal(filled("https://h.example?k=${A}", {}, "a").url, "https://h.example/");
});

Deno.test("filledAddress() leaves a literal address as it is written", () => {
  const written = "https://h.example/mcp?api_key=k";
  assert.deepEqual(filled(written), { requestUrl: written, displayUrl: written, url: written });
});

Deno.test("filledAddress() fills in hosts, ports, schemes and whole addresses for everyone to see", () => {
  const all = [
    ["http://127.0.0.1:${PORT}/mcp", { PORT: "80" }, "http://127.0.0.1:80/mcp"],
    ["https://${NAME}.example/${V:-v1}", { NAME: "a.b" }, "https://a.b.example/v1"],
    ["${SCHEME}://h.example/mcp", { SCHEME: "https" }, "https://h.example/mcp"],
    ["${BASE}/mcp", { BASE: "https://h.example/api/" }, "https://h.example/api/mcp"],
    ["${BASE}:81/mcp", { BASE: "http://localhost" }, "http://localhost:81/mcp"],
    ["${BASE:-https://h.example/x}/mcp", {}, "https://h.example/x/mcp"],
    ["${TOKEN_SERVICE_URL}", { TOKEN_SERVICE_URL: "https://h.example/a" }, "https://h.example/a"],
  ] as const;
  for (const [written, plain, url] of all) {
    const keys = written.includes("${V") ? ["v1"] : [];
    assert.equal(filled(written, plain, ...keys).requestUrl, url, written);
  }
  const { displayUrl, url, requestUrl } = filled("${BASE}", {
    BASE: "https://h.example/a?key=k#x",
  });
  assert.deepEqual([requestUrl, displayUrl, url], [
    "https://h.example/a?key=k",
    "https://h.example/a",
    "https://h.example/a",
  ]);
});

Deno.test("filledAddress() refuses an invalid address, and its error contains only names", () => {
  const bad: readonly (readonly [string, Record<string, string>, RegExp, ...string[]])[] = [
    ["https://${API_KEY}.h.example/", { API_KEY: "CANARY" }, /API_KEY is the name/],
    [
      "${ACCESS_TOKEN}/mcp",
      { ACCESS_TOKEN: "https://CANARY" },
      /ACCESS_TOKEN is the name/,
    ],
    ["https://${NAME}/x", { NAME: "CANARY/../" }, /the value of NAME is no host/],
    ["https://${NAME}/x", { NAME: "u:CANARY@h" }, /the value of NAME is no host/],
    ["${BASE}/mcp", { BASE: "https://u:CANARY@h/" }, /the value of BASE is not a URL/],
    ["${BASE}/mcp", { BASE: "file:///CANARY" }, /the value of BASE is not a URL/],
    ["${BASE}/mcp", { BASE: "https://h/?CANARY=1" }, /the value of BASE has a query/],
    ["https://h.example/${A}/x", {}, /A consists of dots/, ".."],
    ["https://me:CANARY@h.example/", {}, /it is not a URL/],
    ["wss://CANARY", {}, /it is not a URL/],
  ];
  for (const [written, plain, reason, ...keys] of bad) {
    assert.throws(() => filled(written, plain, ...keys), (error: PmlError) => {
      assert.equal(error.code, "CONFIG_INVALID");
      assert.match(error.message, reason);
      assert.doesNotMatch(Deno.inspect(error), /CANARY/);
      return true;
    });
  }
  assert.throws(() => filled("http://h:${PORT}/"), { code: "KEY_MISSING" });
});

Deno.test("addressProblem() accepts addresses that values can make valid, and no others", () => {
  const good = "${BASE}/mcp ${BASE:-https://x.y}/mcp http://h:${PORT}/ https://${HOST}/mcp?k=${K}";
  for (const written of [...good.split(" "), "${SCHEME}://h/"]) {
    assert.equal(addressProblem(written), undefined, written);
  }
  for (const written of ["x", "ftp://h/", "https://u:p@h/", "https://u:${P}@h/", "a${B}"]) {
    assert.match(addressProblem(written) ?? "", /a URL that begins/, written);
  }
});

Deno.test("variablesOfAddress() returns the variables that are keys", () => {
  assert.deepEqual(variablesOfAddress("${S}://${H}:${P:-80}/a/${K}?b=${L:-x}#${M}"), {
    plain: ["S", "H", "P"],
    keys: ["${K}", "${L:-x}", "${M}"],
  });
  assert.deepEqual(variablesOfAddress("${BASE}?k=${K}"), { plain: ["BASE"], keys: ["${K}"] });
});
