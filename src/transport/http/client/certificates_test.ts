import assert from "node:assert/strict";
import { join } from "node:path";
import {
  CERTIFICATE,
  CLIENT_CERTIFICATE,
  CLIENT_KEY,
  ENCRYPTED_KEY,
  ENCRYPTED_OLD_KEY,
  OTHER_AUTHORITY,
  OTHER_KEY,
} from "../../../../tests/kit/certificate.ts";
import { PmlError } from "../../../core/errors.ts";
import { readCertificates, stampOfFiles } from "./certificates.ts";
import { assertGolden } from "../../../../tests/kit/golden.ts";

const origin = "https://good.invalid";

async function folderWith(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await Deno.makeTempDir();
  for (const [name, text] of Object.entries(files)) {
    await Deno.writeTextFile(join(folder, name), text);
  }
  return folder;
}

Deno.test("readCertificates() adds all authorities of a file to the default ones", async () => {
  const both = `# ours\n${CERTIFICATE}\n${OTHER_AUTHORITY}`;
  const folder = await folderWith({ "all.pem": `${CLIENT_KEY}${CLIENT_CERTIFICATE}${both}` });
  const path = join(folder, "all.pem");
  const { ca = [], cert = "", key = "" } = readCertificates({
    origin,
    ca: path,
    cert: path,
    key: path,
  });
  assert.ok(ca.length > 100);
  assert.deepEqual(ca.slice(-3).map((each) => each.trim()), [
    CLIENT_CERTIFICATE.trim(),
    CERTIFICATE.trim(),
    OTHER_AUTHORITY.trim(),
  ]);
  assert.equal(cert.match(/BEGIN CERTIFICATE/g)?.length, 3);
  assert.equal(key, CLIENT_KEY.trim());
  await Deno.remove(folder, { recursive: true });
});

Deno.test("readCertificates() names an unusable file without any of its content", async () => {
  const broken = CERTIFICATE.replace("MIIBczCCARmg", "MIIBCANARYmg");
  const folder = await folderWith({
    "cert.pem": CLIENT_CERTIFICATE,
    "other.key": OTHER_KEY,
    "encrypted.key": ENCRYPTED_KEY,
    "encrypted-old.key": ENCRYPTED_OLD_KEY,
    "half.key": CLIENT_KEY.slice(0, 120),
    "broken.key": CLIENT_KEY.replace("MIGH", "CANA"),
    "broken.pem": `${CLIENT_CERTIFICATE}${broken}`,
    "empty.pem": "",
  });
  const bad = ["other.key", "encrypted.key", "encrypted-old.key", "half.key", "broken.key"];
  const messages = new Set<string>();
  const refusal = (files: Parameters<typeof readCertificates>[0], path: string) =>
    assert.throws(() => readCertificates(files), (error) => {
      assert.ok(error instanceof PmlError);
      assert.equal(error.code, "CONFIG_INVALID");
      assert.ok(error.message.startsWith(`Cannot use "${path}": `), error.message);
      messages.add(error.message);
      assert.doesNotMatch(Deno.inspect(error), /CANA|MIGH|BEGIN/);
      return true;
    });
  const cert = join(folder, "cert.pem");
  for (const name of [...bad, "empty.pem", "gone.key", "."]) {
    const key = join(folder, name);
    refusal({ origin, cert, key }, key);
  }
  for (const name of ["broken.pem", "empty.pem", "other.key"]) {
    const path = join(folder, name);
    refusal({ origin, ca: path }, path);
    refusal({ origin, cert: path, key: path }, path);
  }
  assertGolden("config/certificates", [...messages].join("\n"), { FOLDER: folder });
  await Deno.remove(folder, { recursive: true });
});

Deno.test("stampOfFiles() changes with a file, also through a symbolic link", async () => {
  const folder = await folderWith({ "one.pem": CERTIFICATE, "two.pem": OTHER_AUTHORITY });
  const [one, link] = [join(folder, "one.pem"), join(folder, "link.pem")];
  await Deno.symlink(one, link);
  const stamps = [stampOfFiles({ origin, ca: link })];
  const look = () => stamps.push(stampOfFiles({ origin, ca: link }));
  assert.equal(stampOfFiles({ origin, ca: link }), stamps[0]);
  await Deno.writeTextFile(one, `${CERTIFICATE}\n`);
  look();
  await Deno.rename(join(folder, "two.pem"), one);
  look();
  await Deno.remove(one);
  look();
  assert.equal(new Set(stamps).size, 4);
  await Deno.remove(folder, { recursive: true });
});
