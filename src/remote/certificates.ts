/**
 * Reads the certificates that a person configured for one server.
 *
 * @module
 */

import { createPrivateKey, X509Certificate } from "node:crypto";
import { getCACertificates } from "node:tls";
import type { Certificates } from "../core/fetch.ts";
import { stampOf } from "../io/place.ts";
import { readRegularText, refused, whyUnread } from "../io/regular_file.ts";

/** What a connection uses of the files. */
export interface CertificateFiles {
  readonly ca?: string[];
  readonly cert?: string;
  readonly key?: string;
}

const CERTIFICATES = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const KEY = /-----BEGIN ([A-Z ]*)PRIVATE KEY-----([^]*?)-----END \1PRIVATE KEY-----/;
const FILE_MAX = 1_000_000;
const HINT = "Check ca, cert and key of the server in your config.yaml";

/** Returns a text that changes when one of the files is written or replaced. */
export function stampOfFiles({ ca, cert, key }: Certificates): string {
  return [ca, cert, key].map((path) => path && `${path} ${stamp(path)}`).join("\n");
}

/** Reads the files. Throws an error that names a file that cannot be used, and nothing of it. */
export function readCertificates({ ca, cert, key }: Certificates): CertificateFiles {
  const authorities = ca === undefined ? undefined : certificatesIn(ca);
  return {
    ...(authorities && { ca: [...getCACertificates("default"), ...authorities] }),
    ...(cert !== undefined && key !== undefined && {
      cert: certificatesIn(cert).join("\n"),
      key: keyOf(key, cert),
    }),
  };
}

/** Returns until when a certificate is valid. */
export function validUntil(path: string): Date {
  return new X509Certificate(certificatesIn(path)[0] ?? "").validToDate;
}

function certificatesIn(path: string): string[] {
  const found = read(path).match(CERTIFICATES) ?? [];
  try {
    if (found.length > 0 && found.every((each) => new X509Certificate(each))) return found;
  } catch {
    // The error of the platform may repeat a part of the file.
  }
  throw refused(path, "it holds no certificates in PEM", HINT);
}

function keyOf(path: string, cert: string): string {
  const [key = "", kind, inside = ""] = KEY.exec(read(path)) ?? [];
  if (/^ENCRYPTED/.test(kind ?? "") || inside.includes("ENCRYPTED")) {
    throw refused(
      path,
      "its key is encrypted",
      "Give a key without a passphrase, in a file that only you can read (openssl pkey -in KEY)",
    );
  }
  try {
    const [own = ""] = certificatesIn(cert);
    if (new X509Certificate(own).checkPrivateKey(createPrivateKey(key))) return key;
  } catch {
    throw refused(path, "it holds no private key in PEM", HINT);
  }
  throw refused(path, "its key does not belong to the certificate", HINT);
}

function read(path: string): string {
  try {
    return readRegularText(path, { most: FILE_MAX, links: true });
  } catch (error) {
    throw refused(path, whyUnread(error), HINT);
  }
}

function stamp(path: string): string {
  try {
    // A link may lead to another file than before.
    return stampOf(Deno.statSync(path));
  } catch {
    return "";
  }
}
