import type { Role } from '@signalbox/http-kit'

/**
 * The paths of the routes that read. The first path is the route's name; the others are aliases.
 * Their modules are loaded at the first request, so the router has the paths from here.
 */
export const READING_PATHS = [
  ['/api/config'],
  ['/api/snapshot'],
  ['/api/nodes'],
  ['/api/map'],
  ['/v1/stats/channels', '/api/stats/channels'],
  ['/v1/stats/queues', '/api/stats/queues'],
  ['/v1/stats/events_stores', '/api/stats/events_stores'],
  ['/v1/stats/clients', '/api/stats/clients'],
  ['/api/agents'],
  ['/api/audit'],
  ['/api/webhooks'],
  ['/api/messages'],
  ['/api/message'],
  ['/api/dead_letters'],
  ['/api/dead_letter_queues'],
  ['/api/redrives'],
  ['/api/requests'],
  ['/api/tasks'],
  ['/api/streams'],
  ['/api/tools'],
  ['/api/trace'],
  ['/api/history'],
  ['/api/channels'],
  ['/api/channel_settings'],
  ['/api/schedules'],
  ['/api/subscribers'],
  ['/api/security'],
  ['/api/policy/test'],
  ['/api/settings'],
  ['/api/agent_card'],
  ['/api/agent_inboxes'],
  ['/api/agent_tasks'],
  ['/api/agent_task_events'],
  ['/api/routing'],
  ['/api/operator'],
] as const satisfies readonly (readonly [string, ...string[]])[]

export type ReadingPath = (typeof READING_PATHS)[number][0]

/** The role that a caller needs to read. */
export const READING_ROLE: Role = 'ReadOnly'

/** The actions of `POST /api/actions/{action}`, with the role that each needs. */
export const ACTION_ROLES = {
  create_channel: 'ReadWrite',
  delete_channel: 'ReadWrite',
  purge_queue: 'ReadWrite',
  pause_queue: 'ReadWrite',
  resume_queue: 'ReadWrite',
  set_channel_settings: 'ReadWrite',
  remove_channel_settings: 'ReadWrite',
  set_schedule: 'ReadWrite',
  remove_schedule: 'ReadWrite',
  pause_schedule: 'ReadWrite',
  resume_schedule: 'ReadWrite',
  trigger_schedule: 'ReadWrite',
  send_queue_message: 'ReadWrite',
  receive_queue_messages: 'ReadWrite',
  peek_queue_messages: 'ReadWrite',
  publish_event: 'ReadWrite',
  publish_event_store: 'ReadWrite',
  send_command: 'ReadWrite',
  send_query: 'ReadWrite',
  redrive_dead_letters: 'ReadWrite',
  deregister_agent: 'Admin',
  pause_webhook: 'ReadWrite',
  resume_webhook: 'ReadWrite',
  test_webhook: 'ReadWrite',
  redeliver_webhook: 'ReadWrite',
  rotate_webhook_secret: 'Admin',
  resend_message: 'ReadWrite',
  redrive_edited_message: 'ReadWrite',
  start_redrive: 'ReadWrite',
  cancel_redrive: 'ReadWrite',
  cancel_task: 'ReadWrite',
  cancel_stream: 'ReadWrite',
  call_tool: 'ReadWrite',
  call_agent: 'ReadWrite',
  cancel_agent_task: 'ReadWrite',
} as const satisfies Readonly<Record<string, Role>>

export type ActionName = keyof typeof ACTION_ROLES

/** The names of the actions, in the order of the table. */
export const ACTION_NAMES = Object.keys(ACTION_ROLES).filter((name): name is ActionName => name in ACTION_ROLES)
