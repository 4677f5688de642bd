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
  const bad = {
    "other.key": "its key does not belong to the certificate",
    "encrypted.key": "its key is encrypted; use one without a passphrase",
    "encrypted-old.key": "its key is encrypted; use one without a passphrase",
    "half.key": "it contains no private key in PEM",
    "broken.key": "it contains no private key in PEM",
    "empty.pem": "it contains no private key in PEM",
    "gone.key": "there is no such file",
    ".": "it is not a regular file",
  };
  const refusal = (files: Parameters<typeof readCertificates>[0], why: string, path: string) =>
    assert.throws(() => readCertificates(files), (error) => {
      assert.ok(error instanceof PmlError);
      assert.equal(error.code, "CONFIG_INVALID");
      assert.equal(error.message, `Cannot use "${path}": ${why}`);
      assert.doesNotMatch(Deno.inspect(error), /CANA|MIGH|BEGIN/);
      return true;
    });
  const cert = join(folder, "cert.pem");
  for (const [name, why] of Object.entries(bad)) {
    const key = join(folder, name);
    refusal({ origin, cert, key }, why, key);
  }
  for (const name of ["broken.pem", "empty.pem", "other.key"]) {
    const path = join(folder, name);
    refusal({ origin, ca: path }, "it contains no certificates in PEM", path);
    refusal({ origin, cert: path, key: path }, "it contains no certificates in PEM", path);
  }
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
