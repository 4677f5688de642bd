import assert from "node:assert/strict";
import { parsePublication } from "./_offer.ts";

Deno.test("parsePublication() keeps the exact numbers of a manifest", async () => {
  const tools = '[{"name":"find","inputSchema":{"type":"object","properties":{"id":' +
    '{"minimum":1.0,"maximum":9223372036854775807,"enum":[725653563933458432]}}}}]';
  const manifest = '{"fqdn":"acme.files","type":"stdio","version":"1.0.0","routing":"local",' +
    `"install":{"command":"npx","args":["-y","acme-files@1.0.0"]},"tools":${tools}}`;
  const body = new TextEncoder().encode(`{"manifest":${manifest}}`);
  const target = { name: "acme.files", action: undefined, version: "1.0.0" };
  const offered = await parsePublication(body, { target, registry: "https://hub.example" });
  assert.equal(JSON.stringify(offered.manifest.tools), tools);
});
