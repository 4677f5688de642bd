/**
 * Variables that change how programs run, rather than be what a server works with.
 *
 * @module
 */

/** PML's own, and whole settings of npm: of these none is a key of anybody's service. */
const ALWAYS = "(?:PML|NPM_CONFIG)_.*";
/** What a service calls its key, whatever it begins with: `LD_API_KEY` is no loader's. */
const NO_KEY = "(?!.*_(?:TOKEN|KEY)$)";
/**
 * What loaders, runtimes, shells, pagers, build tools, installers, git and the network's libraries
 * look at.
 */
const STEERING = "(?:LD|DYLD|DENO|BUN|UV|PIP|BASH|SSL|CURL|JDK|_?JAVA|MALLOC|GLIBC|LUA|CARGO|" +
  "BUNDLE|DOTNET|CORECLR|COMPLUS|ERL|ELECTRON|YARN|COREPACK|GTK|GIO|QT)_.*|NODE_(?!ENV$).*|" +
  "PYTHON(?!(?:UNBUFFERED|UTF8|IOENCODING|DONTWRITEBYTECODE)$).*|PERL(?:5|LIB|_).*|RUBY(?:OPT|LIB|SHELL|PATH)|" +
  "LESS(?:OPEN|CLOSE|KEY.*|EDIT)?|GEM_(?:HOME|PATH)|PHPRC|PHP_INI_SCAN_DIR|R_(?:PROFILE|ENVIRON|LIBS).*|" +
  "GO(?:FLAGS|ROOT|PATH|ENV|TOOLCHAIN)|RUST(?:C|DOC|FLAGS).*|(?:GNU)?MAKE(?:FLAGS|FILES)|" +
  "CLASSPATH|TERMINFO.*|TERMCAP|LOCPATH|NLSPATH|GCONV_PATH|GETCONF_DIR|HOSTALIASES|LIBRARY_PATH|" +
  "AWK(?:LIB)?PATH|INPUTRC|PS4|PROMPT_COMMAND|CDPATH|FPATH|ZDOTDIR|EXINIT|VIMINIT|MYVIMRC|" +
  "EMACSLOADPATH|TCLLIBPATH|TAR_OPTIONS|RIPGREP_CONFIG_PATH|SVN_SSH|MANOPT|VISUAL|" +
  "(?:.*_)?(?:PROXY|CA_BUNDLE|ASKPASS|RSH|PRELOAD|(?:MAN)?PAGER|EDITOR)|" +
  "GIT_(?:SSH|SSL|HTTP|EXEC|CONFIG|PROXY|PROTOCOL|ALLOW|ASKPASS|EDITOR|SEQUENCE|PAGER|EXTERNAL|" +
  "DIFF|TEMPLATE|TRACE|ATTR|REDIRECT|CURL|DIR|WORK_TREE|INDEX|OBJECT|ALTERNATE|COMMON|NAMESPACE|" +
  "CEILING|DISCOVERY|REPLACE|GRAFT|SHALLOW|INTERNAL|QUARANTINE|TEST).*|" +
  "SSLKEYLOGFILE|OPENSSL_.*|XDG_CONFIG_HOME|XDG_(?:CONFIG|DATA)_DIRS|" +
  "PATH|PATHEXT|HOME|USERPROFILE|SHELL|SHELLOPTS|BASHOPTS|COMSPEC|SYSTEMROOT|ENV|IFS|" +
  "TMPDIR|TE?MP";

/** The names of these variables as a pattern, in any case of letters. */
export const STEERING_NAMES = `^(?:${ALWAYS}|${NO_KEY}(?:${STEERING}))$`;

const NAMES = new RegExp(STEERING_NAMES, "is");

/** Tells whether a variable changes how programs run: no `.env` sets it, and no registry names it. */
export function isSteering(name: string): boolean {
  return NAMES.test(name);
}

/** Tells whether a variable is PML's own, which is given to nobody wherever it is set. */
export function isOwn(name: string): boolean {
  return /^PML_/i.test(name);
}
