/** A tool of `/mcp`, for the tests that list, count or call every tool. */
export interface KnownTool {
  readonly name: string
  /** The action of the policy that it needs. */
  readonly action: 'send' | 'receive' | 'peek' | 'read' | 'list' | 'call'
  /** The OAuth scope that it needs; a tool with `signalbox:read` only reads. */
  readonly scope: 'signalbox:read' | 'signalbox:write' | 'signalbox:agents'
  /** Valid arguments, every optional one included: the channel `c`, and the agent `echo`. */
  readonly args: Readonly<Record<string, unknown>>
}

const MESSAGE = { channel: 'c', body: 'b', metadata: 'm', tags: {} }
const REQUEST = { ...MESSAGE, timeout_seconds: 1 }

/** The tools that every server has, in the order of `tools/list`. */
export const CORE_TOOLS: readonly KnownTool[] = [
  {
    name: 'queue_send',
    action: 'send',
    scope: 'signalbox:write',
    args: {
      ...MESSAGE,
      tags: { a: 'b' },
      delay_seconds: 1,
      expiration_seconds: 60,
      max_receive_count: 3,
      dead_letter_queue: 'd',
    },
  },
  {
    name: 'queue_receive',
    action: 'receive',
    scope: 'signalbox:write',
    args: { channel: 'c', max_messages: 1, wait_timeout_seconds: 1 },
  },
  { name: 'queue_peek', action: 'peek', scope: 'signalbox:read', args: { channel: 'c', max_messages: 1 } },
  { name: 'events_publish', action: 'send', scope: 'signalbox:write', args: MESSAGE },
  { name: 'events_store_publish', action: 'send', scope: 'signalbox:write', args: MESSAGE },
  {
    name: 'events_store_read',
    action: 'read',
    scope: 'signalbox:read',
    args: { channel: 'c', from_sequence: 1, max_messages: 1 },
  },
  { name: 'events_store_read_latest', action: 'read', scope: 'signalbox:read', args: { channel: 'c', count: 1 } },
  { name: 'command_send', action: 'send', scope: 'signalbox:write', args: REQUEST },
  { name: 'query_send', action: 'send', scope: 'signalbox:write', args: REQUEST },
  {
    name: 'channel_list',
    action: 'list',
    scope: 'signalbox:read',
    args: { type: 'queues', pattern: 'c', limit: 1, cursor: 'cXVldWVzIGE' },
  },
  { name: 'channel_info', action: 'list', scope: 'signalbox:read', args: { channel: 'c', type: 'queues' } },
]

/** The tools of a server with agents; they follow the core tools. */
export const AGENT_TOOLS: readonly KnownTool[] = [
  {
    name: 'agent_list',
    action: 'list',
    scope: 'signalbox:read',
    args: { skill_tags: ['a'], limit: 1, cursor: 'a' },
  },
  { name: 'agent_info', action: 'list', scope: 'signalbox:read', args: { agent_id: 'echo' } },
  {
    name: 'agent_send',
    action: 'call',
    scope: 'signalbox:agents',
    args: { agent_id: 'echo', message: 'hi', blocking: true, context_id: 'x', message_id: 'm', timeout_seconds: 1 },
  },
  {
    name: 'agent_query',
    action: 'call',
    scope: 'signalbox:agents',
    args: { agent_id: 'echo', method: 'tasks/get', params: { id: '1' } },
  },
]

export const TOOLS: readonly KnownTool[] = [...CORE_TOOLS, ...AGENT_TOOLS]

export const CORE_TOOL_NAMES: readonly string[] = CORE_TOOLS.map(({ name }) => name)
export const AGENT_TOOL_NAMES: readonly string[] = AGENT_TOOLS.map(({ name }) => name)
export const TOOL_NAMES: readonly string[] = TOOLS.map(({ name }) => name)
