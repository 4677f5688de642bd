/**
 * The six invented MCP servers behind the pictures in the documentation: the descriptions of their
 * tools, and the results of calls.
 *
 * @module
 */

/** A tool: its description, the names of its arguments, and its result. */
export interface PictureTool {
  readonly does: string;
  /** Names of `ARGUMENTS`, separated by spaces. A question mark means optional. */
  readonly takes: string;
  readonly answers?: string;
}

/** The tools of one server by their names. */
export type PictureServer = Readonly<Record<string, PictureTool>>;

/** The description of each argument, in all tools. */
export const ARGUMENTS: Readonly<Record<string, string>> = {
  id: "The identifier, as a search or a list gives it",
  query: "What to look for: words, or a phrase in quotes",
  limit: "How many entries at most, from 1 to 100; 20 unless told",
  title: "A short title in one line",
  text: "The text, in Markdown",
  project: "The key of a project, such as WEB",
  assignee: "The name of the person who is to do it; nobody unless told",
  labels: "Names of labels, with commas between them",
  state: "open, started, waiting or closed",
  day: "A day as YYYY-MM-DD, or today, tomorrow or a day of the week",
  from: "When it begins, as YYYY-MM-DDTHH:MM in the person's time zone",
  to: "When it ends, as YYYY-MM-DDTHH:MM in the person's time zone",
  people: "Addresses of people, with commas between them",
  subject: "The subject line",
  folder: "The name of a folder, such as inbox or archive",
  space: "The name of a space, such as handbook",
  name: "The full name",
  stage: "new, talking, offered, won or lost",
  amount: "An amount in whole euros",
  metric: "The name of a metric, such as checkout.errors",
  hours: "How many hours back; 24 unless told",
  above: "The value above which it rings",
};

/** The servers by their names. */
export const SERVERS: Readonly<Record<string, PictureServer>> = {
  tracker: {
    search_issues: {
      does: "Search issues by their words. Returns key, title, state and assignee of each issue",
      takes: "query project? state? limit?",
      answers: "WEB-41  open     The total is wrong with two coupons\n" +
        "WEB-57  started  Coupons cannot be removed on a phone",
    },
    get_issue: { does: "Show one issue with its description and comments", takes: "id" },
    create_issue: {
      does: "Create an issue in a project. Returns its key",
      takes: "project title text? assignee? labels?",
      answers: "Created WEB-62",
    },
    update_issue: {
      does: "Change fields of an issue. Fields that are left out stay as they are",
      takes: "id title? text? assignee? labels? state?",
    },
    comment_issue: { does: "Add a comment to an issue, as the signed-in person", takes: "id text" },
    close_issue: { does: "Close an issue, with a last comment if one is given", takes: "id text?" },
    list_projects: { does: "List the projects that the signed-in person sees", takes: "limit?" },
    list_labels: { does: "List the labels of a project, with their colours", takes: "project" },
  },
  calendar: {
    list_events: {
      does: "List the events of a day with their times, rooms and people",
      takes: "day limit?",
      answers: "09:30-10:00  Planning, room 2\n14:00-15:00  Call with the printers",
    },
    find_free_time: {
      does: "Find times when all of these people are free, in working hours",
      takes: "people day limit?",
      answers: "10:00-12:00\n15:00-17:30",
    },
    create_event: {
      does: "Create an event and invite people. Returns the identifier of the event",
      takes: "title from to people? text?",
    },
    move_event: { does: "Move an event to another time and tell its people", takes: "id from to" },
    cancel_event: { does: "Cancel an event and tell its people why", takes: "id text?" },
    answer_invitation: { does: "Accept or decline an invitation, with a remark", takes: "id text" },
    list_rooms: { does: "List rooms with their seats, and whether each is free", takes: "from to" },
  },
  mail: {
    search_mail: {
      does: "Search messages by words, sender or subject, newest first",
      takes: "query folder? limit?",
    },
    read_message: { does: "Show one message with its headers and its text", takes: "id" },
    send_message: { does: "Send a message to people, as the owner", takes: "people subject text" },
    reply_message: { does: "Reply to the sender of a message, or to everybody", takes: "id text" },
    move_message: { does: "Move a message into another folder", takes: "id folder" },
    list_folders: { does: "List the folders and how many messages are unread", takes: "limit?" },
    save_draft: { does: "Save a message without sending it", takes: "people subject text" },
    list_attachments: { does: "List the attachments of a message with their sizes", takes: "id" },
  },
  wiki: {
    search_pages: { does: "Search pages by their words", takes: "query space? limit?" },
    read_page: { does: "Show a page as Markdown, with its history in short", takes: "id" },
    create_page: {
      does: "Create a page in a space, below no other page",
      takes: "space title text",
    },
    update_page: { does: "Replace the text of a page; the old one is kept", takes: "id text" },
    comment_page: { does: "Add a comment at the end of a page", takes: "id text" },
    list_spaces: { does: "List the spaces that can be read", takes: "limit?" },
    list_changes: { does: "List pages that changed lately in a space", takes: "space hours?" },
  },
  customers: {
    find_customer: { does: "Find customers by name, city or address", takes: "query limit?" },
    get_customer: { does: "Show a customer with contacts and open deals", takes: "id" },
    create_customer: { does: "Create a customer. Returns its identifier", takes: "name text?" },
    update_customer: { does: "Change the name or the remarks", takes: "id name? text?" },
    list_deals: { does: "List deals, by stage if one is given", takes: "stage? limit?" },
    move_deal: { does: "Move a deal to another stage, with a remark", takes: "id stage text?" },
    create_deal: { does: "Create a deal with a customer", takes: "id title amount stage?" },
    log_call: { does: "Keep a note of a call with a customer", takes: "id text" },
  },
  metrics: {
    query_metric: {
      does: "Show the values of a metric over the last hours",
      takes: "metric hours?",
    },
    list_metrics: { does: "List metrics whose names have these words", takes: "query limit?" },
    list_alerts: { does: "List alerts that ring now or rang lately", takes: "state? hours?" },
    silence_alert: {
      does: "Silence an alert for some hours, with a reason",
      takes: "id hours text",
    },
    create_alert: { does: "Create an alert on a metric", takes: "metric above people title?" },
    show_dashboard: { does: "Show the panels of a dashboard as text", takes: "name hours?" },
  },
};
