/**
 * Hides the content of files whose names say that they hold secrets, also where a repository
 * contains them.
 *
 * @module
 */

/** The names that are closed for reading, as `config/protected-paths.json` has them. */
export const CLOSED: string =
  ".env* .git-credentials .netrc _netrc .npmrc .yarnrc* .pypirc .pgpass .my.cnf " +
  ".htpasswd .gem/credentials .cargo/credentials* .m2/settings.xml .aws .azure .kube " +
  ".docker/config.json .terraformrc .mcp.json mcp.json .claude/settings* " +
  ".codex/config.toml .gemini/settings.json .windsurf/mcp_config.json " +
  ".qwen/settings.json .zed/settings.json .continue/config* opencode.json* .ssh .gnupg " +
  "id_rsa id_dsa id_ecdsa id_ed25519 *.pem *.key *.p12 *.pfx *.ppk *.jks *.keystore " +
  "*.kdbx";

const NAMES = `(?:${
  CLOSED.split(" ").map((name) => name.replaceAll(".", "\\.").replaceAll("*", "[^/]*")).join("|")
})(?:/.*)?`;
const SECRET = new RegExp(`(?:^|/)${NAMES}$`, "i");
/** The first line of a file's part in a patch. In doubt, a name is treated as secret. */
const HEADER = new RegExp(String.raw`^diff --git .*/${NAMES}(?:"| b/|"? "?b/|$)`, "im");

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
