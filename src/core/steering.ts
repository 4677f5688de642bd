/**
 * Environment variables that change how programs run, as opposed to settings of a server.
 *
 * @module
 */

/** Variables of PML itself and of npm's configuration, even if they end like a key. */
const ALWAYS = "(?:PML|NPM_CONFIG)_.*";
/**
 * A name that ends like a key is a key of a service, whatever its prefix: `LD_API_KEY` does not
 * belong to the loader.
 */
const NO_KEY = "(?!.*_(?:TOKEN|KEY)$)";
/**
 * Variables that loaders, runtimes, shells, pagers, build tools, installers, git and network
 * libraries read.
 */
const STEERING =
  "(?:LD|DYLD|DENO|BUN|UV|PIP|BASH|SSL|CURL|JDK|_?JAVA|MALLOC|GLIBC|LUA|CARGO|OPENSSL|" +
  "BUNDLE|DOTNET|CORECLR|COMPLUS|ERL|ELECTRON|YARN|COREPACK|GTK|GIO|QT)_.*|NODE_(?!ENV$).*|" +
  "PYTHON(?!(?:UNBUFFERED|UTF8|IOENCODING|DONTWRITEBYTECODE)$).*|PERL(?:5|LIB|_).*|RUBY(?:OPT|LIB|SHELL)|" +
  "LESS(?:OPEN|CLOSE|KEY.*|EDIT)?|GEM_(?:HOME|PATH)|PHPRC|PHP_INI_SCAN_DIR|R_(?:PROFILE|ENVIRON|LIBS).*|" +
  "GO(?:FLAGS|ROOT|ENV|TOOLCHAIN)|RUST(?:C|DOC|FLAGS).*|(?:GNU)?MAKE(?:FLAGS|FILES)|" +
  "(?:AWK(?:LIB)?|CD|CLASS|EMACSLOAD|F|GCONV_|GO|LIBRARY_|LOC|NLS|RIPGREP_CONFIG_|RUBY|TCLLIB)?PATH|" +
  "TERMINFO.*|TERMCAP|GETCONF_DIR|HOSTALIASES|INPUTRC|PS4|PROMPT_COMMAND|ZDOTDIR|(?:EX|VIM)INIT|" +
  "MYVIMRC|TAR_OPTIONS|SVN_SSH|MANOPT|VISUAL|" +
  "(?:.*_)?(?:PROXY|CA_BUNDLE|ASKPASS|RSH|PRELOAD|(?:MAN)?PAGER|EDITOR)|" +
  "GIT_(?:SSH|SSL|HTTP|EXEC|CONFIG|PROXY|PROTOCOL|ALLOW|EXTERNAL|" +
  "DIFF|TEMPLATE|TRACE|ATTR|REDIRECT|CURL|DIR|WORK_TREE|INDEX|OBJECT|ALTERNATE|COMMON|NAMESPACE|" +
  "CEILING|DISCOVERY|REPLACE|GRAFT|SHALLOW|INTERNAL|QUARANTINE|TEST).*|" +
  "SSLKEYLOGFILE|XDG_CONFIG_HOME|XDG_(?:CONFIG|DATA)_DIRS|" +
  "PATHEXT|HOME|USERPROFILE|(?:SHELL|BASH)OPTS|SHELL|COMSPEC|SYSTEMROOT|ENV|IFS|" +
  "TMPDIR|TE?MP";

/** The pattern of the names of these variables, without regard to case. */
export const STEERING_NAMES = `^(?:${ALWAYS}|${NO_KEY}(?:${STEERING}))$`;

const NAMES = new RegExp(STEERING_NAMES, "is");

/**
 * Returns whether a variable changes how programs run. No `.env` file and no registry may set such
 * a variable.
 */
export function isSteering(name: string): boolean {
  return NAMES.test(name);
}

/** Returns a variable's name for comparisons: in upper case on Windows, which ignores the case. */
export function variableName(name: string, os: typeof Deno.build.os = Deno.build.os): string {
  return os === "windows" ? name.toUpperCase() : name;
}

/** Returns variables under their names for comparisons (`variableName`). */
export function comparedVariables(
  variables: Readonly<Record<string, string>>,
  os: typeof Deno.build.os = Deno.build.os,
): Readonly<Record<string, string>> {
  if (os !== "windows") return variables;
  const entries = Object.entries(variables).map(([name, value]) => [variableName(name, os), value]);
  return Object.fromEntries(entries);
}

/**
 * Returns whether a variable belongs to PML itself. Such a variable is passed to no other process.
 */
export function isOwnVariable(name: string): boolean {
  return /^PML_/i.test(name);
}
