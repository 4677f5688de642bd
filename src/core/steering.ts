/**
 * Variables that change how programs run, rather than be what a server works with.
 *
 * @module
 */

/** Of these none is a key of anybody's service: they are PML's own, or whole settings of npm. */
const ALWAYS = /^(?:PML|NPM_CONFIG)_/i;
/** What a service calls its key, whatever it begins with: `LD_API_KEY` is no loader's. */
const A_KEY = /_(?:TOKEN|KEY)$/i;
/** What loaders, runtimes, installers, git and the network's libraries look at. */
const STEERING = new RegExp(
  "^(?:(?:LD|DYLD|DENO|BUN|UV|PIP|BASH|SSL|CURL|JDK|_?JAVA)_.*|NODE_(?!ENV$).*|" +
    "PYTHON(?!(?:UNBUFFERED|UTF8|IOENCODING|DONTWRITEBYTECODE)$).*|PERL5.*|RUBY(?:OPT|LIB)|" +
    "GIT_(?:SSH|SSL|HTTP|EXEC|CONFIG|PROXY|PROTOCOL|ALLOW|ASKPASS|EDITOR|SEQUENCE|PAGER|EXTERNAL|" +
    "DIFF|TEMPLATE|TRACE|ATTR|REDIRECT|CURL|DIR|WORK_TREE|INDEX|OBJECT|ALTERNATE|COMMON|NAMESPACE|" +
    "CEILING|DISCOVERY|REPLACE|GRAFT|SHALLOW|INTERNAL|QUARANTINE|TEST).*|" +
    "(?:.*_)?(?:PROXY|CA_BUNDLE)|SSLKEYLOGFILE|OPENSSL_.*|XDG_CONFIG_(?:HOME|DIRS)|" +
    "PATH|PATHEXT|HOME|USERPROFILE|SHELL|SHELLOPTS|BASHOPTS|COMSPEC|SYSTEMROOT|ENV|IFS|" +
    "TMPDIR|TE?MP)$",
  "i",
);

/** Tells whether a variable changes how programs run: no `.env` sets it, and no registry names it. */
export function isSteering(name: string): boolean {
  return ALWAYS.test(name) || STEERING.test(name) && !A_KEY.test(name);
}
