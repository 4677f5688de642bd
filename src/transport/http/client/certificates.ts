/**
 * Reads the certificates that the user configured for one server.
 *
 * @module
 */

import { createPrivateKey, X509Certificate } from "node:crypto";
import { getCACertificates } from "node:tls";
import type { Certificates } from "../../../core/fetch.ts";
import { infoAfterLinks, stampOf } from "../../../io/path_info.ts";
import { fileError, readRegularText, whyUnread } from "../../../io/regular_file.ts";

/** The contents of the files for a connection. */
export interface CertificateFiles {
  readonly ca?: string[];
  readonly cert?: string;
  readonly key?: string;
}

const CERTIFICATES = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----[^]+?-----END [A-Z ]*PRIVATE KEY-----/;
/** The maximum size of a file, in bytes. */
const FILE_MAX = 1_000_000;
const HINT = "Check ca, cert and key in your config.yaml";

/** Returns a text that changes when one of the files is written or replaced. */
export function stampOfFiles({ ca, cert, key }: Certificates): string {
  return [ca, cert, key].map((path) => path && `${path} ${stamp(path)}`).join("\n");
}

/** Reads the files. Throws an error that names an unusable file without any of its content. */
export function readCertificates({ ca, cert, key }: Certificates): CertificateFiles {
  const ownCertificates = cert && certificatesIn(cert).join("\n");
  return {
    ...ca && { ca: [...getCACertificates("default"), ...certificatesIn(ca)] },
    ...ownCertificates && key && { cert: ownCertificates, key: readKey(key, ownCertificates) },
  };
}

function certificatesIn(path: string): string[] {
  const certificates = read(path).match(CERTIFICATES);
  try {
    if (certificates?.every((certificate) => new X509Certificate(certificate))) return certificates;
  } catch {
    // The error of the platform may repeat a part of the file.
  }
  throw fileError(path, "it contains no certificates in PEM", HINT);
}

function readKey(path: string, certificates: string): string {
  const [key = ""] = KEY.exec(read(path)) ?? [];
  let why = "it contains no private key in PEM";
  try {
    if (key.includes("ENCRYPTED")) why = "its key is encrypted; use one without a passphrase";
    else if (new X509Certificate(certificates).checkPrivateKey(createPrivateKey(key))) return key;
    else why = "its key does not belong to the certificate";
  } catch {
    // The error of the platform may repeat a part of the file.
  }
  throw fileError(path, why, HINT);
}

function read(path: string): string {
  try {
    return readRegularText(path, { most: FILE_MAX, links: true });
  } catch (error) {
    throw fileError(path, whyUnread(error), HINT);
  }
}

function stamp(path: string): string {
  // A link may lead to another file than before.
  const info = infoAfterLinks(path);
  return info === undefined ? "" : stampOf(info);
}
