import type { AgentDirectory } from '@signalbox/broker-core/ports'
import { CORE_TOOL_NAMES, TOOL_NAMES, TOOLS } from '@signalbox/testkit/mcp-tools'
import { describe, expect, test } from 'vitest'

import { createTools } from '../src/tools/index.ts'

const directory: AgentDirectory = {
  list: async () => [],
  get: async () => undefined,
  request: async () => ({ executed: true, error: '', status: 200, body: new Uint8Array() }),
}
const core = createTools()
const all = createTools({ agents: directory })

const TYPES = ['queues', 'events', 'events_store', 'commands', 'queries']
const CHANNEL = { type: 'string', required: true }
const BODY = { type: 'string', required: true }
const METADATA = { type: 'string', required: false, default: '' }
const TAGS = { type: 'object', required: false, default: {} }
const MAX_MESSAGES = { type: 'integer', required: true, minimum: 1, maximum: 100 }
const AGENT_ID = { type: 'string', required: true }
const MESSAGE = { channel: CHANNEL, body: BODY, metadata: METADATA, tags: TAGS }
const FROM_ZERO = { type: 'integer', required: false, default: 0, minimum: 0 }

/** The specification's tables, "MCP tools" and "Limits", with the ranges of M7. */
const TABLES: Record<string, Record<string, object>> = {
  queue_send: {
    ...MESSAGE,
    delay_seconds: FROM_ZERO,
    expiration_seconds: FROM_ZERO,
    max_receive_count: FROM_ZERO,
    dead_letter_queue: { type: 'string', required: false, default: '' },
  },
  queue_receive: {
    channel: CHANNEL,
    max_messages: MAX_MESSAGES,
    wait_timeout_seconds: { type: 'integer', required: false, default: 5, minimum: 1, maximum: 60 },
  },
  queue_peek: { channel: CHANNEL, max_messages: MAX_MESSAGES },
  events_publish: MESSAGE,
  events_store_publish: MESSAGE,
  events_store_read: {
    channel: CHANNEL,
    from_sequence: { type: 'integer', required: false, minimum: 1 },
    from_time: { type: 'string', required: false },
    max_messages: MAX_MESSAGES,
  },
  events_store_read_latest: {
    channel: CHANNEL,
    count: { type: 'integer', required: false, default: 1, minimum: 1, maximum: 100 },
  },
  command_send: {
    ...MESSAGE,
    timeout_seconds: { type: 'integer', required: false, default: 10, minimum: 1, maximum: 3600 },
  },
  query_send: {
    ...MESSAGE,
    timeout_seconds: { type: 'integer', required: false, default: 30, minimum: 1, maximum: 3600 },
  },
  channel_list: {
    type: { type: 'string', required: false, enum: TYPES },
    pattern: { type: 'string', required: false },
    // Not in the table of the specification, but in the amendment of M10.
    limit: { type: 'integer', required: false, minimum: 1 },
    cursor: { type: 'string', required: false },
  },
  channel_info: { channel: CHANNEL, type: { type: 'string', required: true, enum: TYPES } },
  agent_list: {
    skill_tags: { type: 'array', required: false, items: { type: 'string' } },
    limit: { type: 'integer', required: false, minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
    cursor: { type: 'string', required: false },
  },
  agent_info: { agent_id: AGENT_ID },
  agent_send: {
    agent_id: AGENT_ID,
    message: { type: 'string', required: true },
    blocking: { type: 'boolean', required: false, default: true },
    context_id: { type: 'string', required: false },
    message_id: { type: 'string', required: false },
    timeout_seconds: { type: 'integer', required: false, minimum: 1 },
  },
  agent_query: {
    agent_id: AGENT_ID,
    method: { type: 'string', required: true },
    params: { type: 'object', required: false },
  },
}

/** The keywords that are a matter of record; of a technical upper bound only the existence is free. */
function recorded(schema: Record<string, unknown>, required: boolean, expected: object): object {
  const keywords = ['type', 'default', 'minimum', 'enum', 'items', ...('maximum' in expected ? ['maximum'] : [])]
  return {
    required,
    ...Object.fromEntries(keywords.filter((name) => name in schema).map((name) => [name, schema[name]])),
  }
}

function having(hint: 'readOnlyHint' | 'destructiveHint' | 'openWorldHint'): readonly string[] {
  return TOOL_NAMES.filter((name) => all.get(name)!.definition.annotations[hint])
}

describe('tools - definitions', () => {
  test('MCP-7, MCP-8 - the core tools are always there, the agent tools with an agent directory', () => {
    expect([...core.keys()]).toEqual(CORE_TOOL_NAMES)
    expect([...all.keys()]).toEqual(TOOL_NAMES)
  })

  test.each(TOOL_NAMES)(
    'TOOL-1, TOOL-5, TOOL-9, TOOL-12, TOOL-15, TOOL-18, TOOL-20, M7 - %s has the arguments of its table',
    (name) => {
      const { inputSchema } = all.get(name)!.definition
      const { properties, required = [], additionalProperties } = inputSchema
      const table = TABLES[name]!
      const shown = Object.entries(properties).map(([argument, schema]) => [
        argument,
        recorded(schema as Record<string, unknown>, required.includes(argument), table[argument] ?? {}),
      ])
      expect(Object.fromEntries(shown)).toEqual(table)
      expect(Object.keys(properties).toSorted()).toEqual(Object.keys(table).toSorted())
      expect(additionalProperties).toBe(false)
    },
  )

  test.each(TOOL_NAMES)('M10 - %s is described: title, description, schemas, annotations, every argument', (name) => {
    const { definition } = all.get(name)!
    expect(definition.name).toBe(name)
    expect(definition.title.length).toBeGreaterThan(5)
    expect(definition.description.length).toBeGreaterThan(100)
    expect(definition.outputSchema.type).toBe('object')
    for (const schema of Object.values(definition.inputSchema.properties)) {
      expect(String(Reflect.get(schema, 'description'))).toMatch(/.{5}\.$/)
    }
    expect(Object.keys(definition.annotations).toSorted()).toEqual([
      'destructiveHint',
      'idempotentHint',
      'openWorldHint',
      'readOnlyHint',
    ])
    expect(JSON.parse(JSON.stringify(definition)), 'it is plain JSON').toEqual(definition)
  })

  test('M10 - the annotations mark the tools that only read, that remove, and that act outside the broker', () => {
    const readers = TOOLS.filter(({ scope }) => scope === 'signalbox:read')
    expect(having('readOnlyHint')).toEqual(readers.map(({ name }) => name))
    expect(having('destructiveHint')).toEqual(['queue_receive', 'command_send', 'agent_send', 'agent_query'])
    expect(having('openWorldHint')).toEqual(['command_send', 'query_send', 'agent_send', 'agent_query'])
  })

  test('M5, M13 - the definitions mark the tools with their own time-out, and those that end with their client', () => {
    expect(TOOL_NAMES.filter((name) => all.get(name)!.ownTimeout)).toEqual([
      'queue_receive',
      'command_send',
      'query_send',
      'agent_send',
      'agent_query',
    ])
    expect(TOOL_NAMES.filter((name) => all.get(name)!.onDisconnect === 'cancel')).toEqual(['queue_receive'])
  })
})
