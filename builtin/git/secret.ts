/**
 * Hides the content of files whose names say that they hold secrets, also where a repository
 * contains them.
 *
 * @module
 */

const NAMES = String.raw`\.env[^/]*|\.netrc|\.git-credentials|id_(?:rsa|dsa|ecdsa|ed25519)|` +
  String.raw`[^/]*\.(?:pem|key|p12|pfx|ppk)|\.(?:ssh|gnupg)(?:/.*)?`;
const SECRET = new RegExp(`(?:^|/)(?:${NAMES})$`, "i");
/** The first line of a file's part in a patch. In doubt, a name is treated as secret. */
const HEADER = new RegExp(String.raw`^diff --git .*/(?:${NAMES})(?:"| b/|"? "?b/|$)`, "im");

/** Throws `PATH_PROTECTED` if a path is such a file. */
export function requireOpen(what: string, path: string): void {
  if (!SECRET.test(path)) return;
  throw Object.assign(new Error(`${what}: it is protected`), { code: "PATH_PROTECTED" });
}

/** Removes the content of such files from a patch. */
export function withoutSecrets(patch: string): string {
  return patch.split(/^(?=diff --git )/m).map((part) => {
    const [header = ""] = part.split("\n", 1);
    return HEADER.test(header) ? `${header}\n[its content is protected]\n` : part;
  }).join("");
}
