import assert from "node:assert/strict";
import { isSteering } from "./steering.ts";

Deno.test("isSteering() knows what changes how programs run, in any case of letters", () => {
  const steering =
    "PML_API_KEY pml_home LD_PRELOAD DYLD_INSERT_LIBRARIES DENO_DIR NODE_OPTIONS NODE_PATH " +
    "NODE_TLS_REJECT_UNAUTHORIZED BUN_OPTIONS NPM_CONFIG_REGISTRY npm_config_key UV_INDEX " +
    "PIP_INDEX_URL BASH_ENV JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS PYTHONUSERBASE " +
    "PYTHONINSPECT PERL5OPT RUBYLIB GIT_SSH_COMMAND GIT_CONFIG_KEY_0 GIT_DIR GIT_EXTERNAL_DIFF " +
    "CURL_HOME SSL_CERT_FILE SSLKEYLOGFILE OPENSSL_CONF REQUESTS_CA_BUNDLE https_proxy NO_PROXY " +
    "Path HOME XDG_CONFIG_HOME SYSTEMROOT SHELLOPTS ENV TMP TEMP";
  for (const name of steering.split(" ")) assert.ok(isSteering(name), name);
});

Deno.test("isSteering() takes no key of a service, and no plain setting, for one", () => {
  const plain =
    "NODE_ENV OPENAI_API_KEY OPENAI_BASE_URL GITHUB_TOKEN GIT_TOKEN GIT_USERNAME GIT_AUTHOR_NAME " +
    "LD_API_KEY NODE_AUTH_TOKEN PYTHONANYWHERE_API_TOKEN DENO_DEPLOY_TOKEN CURL_API_KEY NPM_TOKEN " +
    "PYTHONUNBUFFERED PATHWAY_KEY ENVIRONMENT AWS_REGION JAVASCRIPT_MODE HOMEPAGE _x";
  for (const name of plain.split(" ")) assert.ok(!isSteering(name), name);
});
