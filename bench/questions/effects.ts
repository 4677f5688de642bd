/**
 * The effect of each tool of eight popular servers and two servers that lie, determined by hand from
 * the documentation of each server, not from its hints.
 *
 * @module
 */

/** The effect of a tool. `sends` passes data of the user to an address that the call chooses. */
export type Effect = "read" | "write" | "destructive" | "sends";

/** The effect of each tool, by its name. */
export type Effects = Readonly<Record<string, Effect>>;

/** The tools of each server, by their effects. */
type Table = Readonly<Record<string, Partial<Readonly<Record<Effect, string>>>>>;

const HONEST: Table = {
  filesystem: {
    read: "read_file read_text_file read_media_file read_multiple_files list_directory " +
      "list_directory_with_sizes directory_tree search_files get_file_info " +
      "list_allowed_directories",
    write: "edit_file create_directory move_file",
    destructive: "write_file",
  },
  memory: {
    read: "read_graph search_nodes open_nodes",
    write: "create_entities create_relations add_observations",
    destructive: "delete_entities delete_observations delete_relations",
  },
  git: {
    read: "git_status git_diff_unstaged git_diff_staged git_diff git_log git_show git_branch",
    write: "git_commit git_add git_reset git_create_branch git_checkout",
  },
  github: {
    read: "get_commit get_file_contents get_latest_release get_release_by_tag get_tag " +
      "list_branches list_commits list_releases list_repository_collaborators list_tags " +
      "search_code search_commits search_repositories get_me get_team_members get_teams " +
      "get_label issue_read list_issue_fields list_issue_types list_issues search_issues " +
      "list_pull_requests pull_request_read search_pull_requests search_users",
    write: "create_branch create_or_update_file create_repository fork_repository push_files " +
      "add_issue_comment issue_write sub_issue_write add_comment_to_pending_review " +
      "add_reply_to_pull_request_comment create_pull_request merge_pull_request " +
      "pull_request_review_write update_pull_request update_pull_request_branch",
    destructive: "delete_file delete_repository",
  },
  playwright: {
    read: "browser_console_messages browser_find browser_network_requests " +
      "browser_network_request browser_take_screenshot browser_snapshot browser_wait_for",
    write: "browser_close browser_resize browser_handle_dialog browser_emulate_media " +
      "browser_fill_form browser_press_key browser_type browser_navigate_back browser_click " +
      "browser_drag browser_hover browser_select_option browser_tabs",
    sends: "browser_evaluate browser_file_upload browser_drop browser_navigate " +
      "browser_run_code_unsafe",
  },
  firecrawl: {
    read: "firecrawl_search firecrawl_check_crawl_status firecrawl_agent_status " +
      "firecrawl_monitor_list firecrawl_monitor_get firecrawl_monitor_checks " +
      "firecrawl_monitor_check firecrawl_research_search_papers " +
      "firecrawl_research_inspect_paper firecrawl_research_related_papers " +
      "firecrawl_research_read_paper firecrawl_research_search_github",
    write: "firecrawl_monitor_update firecrawl_monitor_run firecrawl_interact_stop",
    destructive: "firecrawl_monitor_delete",
    sends: "firecrawl_scrape firecrawl_map firecrawl_search_feedback firecrawl_feedback " +
      "firecrawl_crawl firecrawl_extract firecrawl_agent firecrawl_interact firecrawl_parse " +
      "firecrawl_monitor_create",
  },
  context7: { read: "resolve-library-id query-docs" },
  notion: {
    read: "API-get-user API-get-users API-get-self API-post-search API-get-block-children " +
      "API-retrieve-a-block API-retrieve-a-page API-retrieve-a-page-property " +
      "API-retrieve-a-comment API-query-data-source API-retrieve-a-data-source " +
      "API-list-data-source-templates API-retrieve-a-database API-retrieve-page-markdown",
    write: "API-patch-block-children API-update-a-block API-patch-page API-post-page " +
      "API-create-a-comment API-update-a-data-source API-create-a-data-source API-move-page",
    destructive: "API-delete-a-block API-update-page-markdown",
  },
};

/**
 * Servers whose hints and names hide effects. `tests/fixtures/lying_server_tools.json` has their
 * definitions.
 */
const LYING: Table = {
  "weather-plus": {
    read: "current_weather forecast",
    destructive: "refresh_cache",
    sends: "look_up_city compare_places",
  },
  "notes-helper": {
    read: "list_tags",
    write: "list_notes save_note",
    destructive: "open_note tidy",
    sends: "search_notes summarize",
  },
};

/** The effects of the tools of the honest servers. */
export const EFFECTS: Readonly<Record<string, Effects>> = tableOf(HONEST);
/** The effects of the tools of the servers that lie. */
export const LYING_EFFECTS: Readonly<Record<string, Effects>> = tableOf(LYING);

function tableOf(table: Table): Readonly<Record<string, Effects>> {
  return Object.fromEntries(
    Object.entries(table).map(([server, byEffect]) => [
      server,
      Object.fromEntries(
        Object.entries(byEffect).flatMap(([effect, names]) =>
          names.split(" ").map((name) => [name, effect as Effect])
        ),
      ),
    ]),
  );
}
