import { TOOLS } from '@signalbox/testkit/mcp-tools'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { echoDirectory } from './agent-directory.ts'
import type { ToolBench } from './tool-bench.ts'
import { openToolBench, problemsOf, toolNamed } from './tool-bench.ts'

let bench: ToolBench

beforeAll(async () => {
  bench = await openToolBench(echoDirectory)
  await bench.user.commands.subscribe('c', {}, () => ({}))
  await bench.user.queries.subscribe('c', {}, () => ({}))
})

afterAll(() => bench[Symbol.asyncDispose]())

/** For each tool, arguments that are all valid, every optional one included. */
const VALID = Object.fromEntries(TOOLS.map(({ name, args }) => [name, args]))

const cases = Object.entries(VALID).flatMap(([tool, args]) => Object.keys(args).map((argument) => ({ tool, argument })))

/** One value of each JSON type, by what `typeof` a schema would call it. */
const SAMPLES: readonly [type: string, value: unknown][] = [
  ['string', '1'],
  ['string', 'true'],
  ['integer', 1],
  ['number', 1.5],
  ['boolean', true],
  ['null', null],
  ['array', [1]],
  ['array', []],
  ['object', { a: 1 }],
  ['object', {}],
]

const TYPES = 'one of queues, events, events_store, commands, queries'
const LARGE = Number.MAX_SAFE_INTEGER

/** Every range of M7 and of the specification's table of limits, with the values just outside of it. */
const RANGES = [
  ...['delay_seconds', 'expiration_seconds'].map((argument) => outside('queue_send', argument, 0, 1e12)),
  outside('queue_send', 'max_receive_count', 0, LARGE),
  ...['queue_receive', 'queue_peek', 'events_store_read'].map((tool) => outside(tool, 'max_messages', 1, 100)),
  outside('queue_receive', 'wait_timeout_seconds', 1, 60),
  outside('events_store_read', 'from_sequence', 1, LARGE),
  outside('events_store_read_latest', 'count', 1, 100),
  outside('channel_list', 'limit', 1, 10_000),
  outside('command_send', 'timeout_seconds', 1, 3600),
  outside('query_send', 'timeout_seconds', 1, 3600),
  [0, -1, 1.5].map((given) => ({
    tool: 'agent_send',
    argument: 'timeout_seconds',
    given,
    allowed: 'a whole number of at least 1',
  })),
  ['channel_list', 'channel_info'].flatMap((tool) =>
    ['', 'queue', 'QUEUES', 'events-store'].map((given) => ({ tool, argument: 'type', given, allowed: TYPES })),
  ),
  [{ tool: 'agent_query', argument: 'method', given: '', allowed: 'a string that is not empty' }],
].flat()

function outside(tool: string, argument: string, from: number, to: number) {
  const allowed = `a whole number from ${from} to ${to}`
  return [from - 1, -1000, from + 0.5, to + 1, 1e300].map((given) => ({ tool, argument, given, allowed }))
}

function schemaOf(tool: string, argument: string): Record<string, unknown> {
  return toolNamed(bench.tools, tool).definition.inputSchema.properties[argument] as Record<string, unknown>
}

describe('M7 - arguments are strict', () => {
  test('the table of this test covers every argument', () => {
    for (const [name, tool] of bench.tools) {
      const covered = Object.keys(VALID[name]!)
      const missing = Object.keys(tool.definition.inputSchema.properties).filter(
        (argument) => !covered.includes(argument),
      )
      expect(missing, name).toEqual(name === 'events_store_read' ? ['from_time'] : [])
    }
  })

  test.each(Object.keys(VALID))('%s takes its valid arguments', async (tool) => {
    const outcome = await bench.call(tool, VALID[tool])
    await outcome.settlement?.commit()
    expect(outcome.text).toBeTypeOf('string')
  })

  test.each(cases)(
    'MCP-5 - $tool without $argument is refused if it is required, else served',
    async ({ tool, argument }) => {
      const { [argument]: _left, ...rest } = VALID[tool]!
      const required = toolNamed(bench.tools, tool).definition.inputSchema.required ?? []
      if (!required.includes(argument)) {
        const outcome = await bench.call(tool, rest)
        await outcome.settlement?.commit()
        return
      }
      const error = await bench.refused(tool, rest)
      expect(error.code).toBe(-32602)
      expect(error.message).toContain(`invalid arguments for ${tool}: ${argument} is missing; it must be `)
      expect(problemsOf(error)).toEqual([{ argument, allowed: expect.any(String) }])
    },
  )

  test.each(cases)('$tool treats null for an optional $argument as absent', async ({ tool, argument }) => {
    const args = { ...VALID[tool], [argument]: null }
    const required = toolNamed(bench.tools, tool).definition.inputSchema.required ?? []
    if (!required.includes(argument)) {
      const outcome = await bench.call(tool, args)
      await outcome.settlement?.commit()
      return
    }
    const error = await bench.refused(tool, args)
    expect(problemsOf(error)).toEqual([{ argument, given: 'null', allowed: expect.any(String) }])
  })

  test.each(cases)('$tool with a mistyped $argument is refused, and nothing is coerced', async ({ tool, argument }) => {
    const { type } = schemaOf(tool, argument)
    const required = toolNamed(bench.tools, tool).definition.inputSchema.required ?? []
    const holdsStrings = argument === 'tags' || argument === 'skill_tags'
    for (const [sampleType, value] of SAMPLES) {
      const empty = Object.keys(Object(value)).length === 0
      if (sampleType === type && (empty || !holdsStrings)) continue
      if (value === null && !required.includes(argument)) continue
      const error = await bench.refused(tool, { ...VALID[tool], [argument]: value })
      expect(error.code).toBe(-32602)
      const [problem, ...others] = problemsOf(error)
      expect(others).toEqual([])
      expect(problem!.argument.split('.')[0]).toBe(argument)
      expect(problem!.given).toBeTypeOf('string')
      expect(error.message).toContain(problem!.argument)
      expect(error.message).toContain(problem!.allowed)
    }
  })

  test.each(RANGES)(
    '$tool refuses $argument $given, saying what is allowed',
    async ({ tool, argument, given, allowed }) => {
      const error = await bench.refused(tool, { ...VALID[tool], [argument]: given })
      expect(problemsOf(error)).toEqual([{ argument, given: JSON.stringify(given), allowed }])
      expect(error.message).toContain(`${argument} is ${JSON.stringify(given)}; it must be ${allowed}`)
    },
  )

  test.each(Object.keys(VALID))('%s refuses an unknown argument, and __proto__ is one', async (tool) => {
    for (const extra of ['channels', 'Body', '__proto__', 'constructor', 'line\nbreak']) {
      const args: unknown = JSON.parse(`{${JSON.stringify(extra)}:"x",${JSON.stringify(VALID[tool]).slice(1)}`)
      const error = await bench.refused(tool, args)
      const [problem, ...others] = problemsOf(error)
      expect(others).toEqual([])
      expect(problem!.argument).toBe(extra === 'line\nbreak' ? '"lineU+000Abreak"' : extra)
      expect(problem!.allowed).toContain(Object.keys(VALID[tool]!)[0])
    }
  })

  test.each(Object.keys(VALID))('%s refuses arguments that are no object', async (tool) => {
    for (const args of [null, [], 'x', 5, true]) {
      const error = await bench.refused(tool, args)
      expect(error.message).toContain('it must be an object')
    }
  })

  test.each(['channel_list', 'agent_list'])(
    '%s, of which nothing is required, refuses what it does not know',
    async (tool) => {
      expect((await bench.refused(tool, { nothing: 1 })).message).toContain('nothing is unknown')
      expect((await bench.call(tool, {})).isError).toBe(false)
    },
  )

  test('every problem is listed, and long values are truncated', async () => {
    const error = await bench.refused('queue_send', {
      channel: 'x'.repeat(10_000),
      delay_seconds: -1,
      tags: { good: 'x', bad: 1, 'a\nb': null },
      more: 1,
    })
    expect(problemsOf(error).map(({ argument }) => argument)).toEqual([
      'channel',
      'body',
      'tags.bad',
      'tags."aU+000Ab"',
      'delay_seconds',
      'more',
    ])
    expect(error.message.length).toBeLessThan(2000)
  })

  test('hundreds of unknown arguments make a short answer', async () => {
    const many = Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`k${i}`, i]))
    const error = await bench.refused('queue_peek', { ...many, channel: 'c', max_messages: 1 })
    expect(problemsOf(error)).toHaveLength(20)
    expect(error.message.length).toBeLessThan(2000)
    const tags = await bench.refused('queue_send', { channel: 'c', body: '', tags: many })
    expect(problemsOf(tags)).toHaveLength(20)
    const list = await bench.refused('agent_list', { skill_tags: Array(9_000).fill(1) })
    expect(problemsOf(list)).toHaveLength(20)
  })

  test('limits - a call takes 256 tags, and the text for one more names the limit', async () => {
    const tags = Object.fromEntries(Array.from({ length: 256 }, (_, i) => [`k${i}`, '']))
    expect(await bench.call('queue_send', { channel: 'c', body: '', tags })).toMatchObject({ isError: false })
    const error = await bench.refused('queue_send', { channel: 'c', body: '', tags: { ...tags, more: '' } })
    expect(problemsOf(error)).toEqual([
      { argument: 'tags', given: 'an object', allowed: 'an object whose values are strings, with at most 256 keys' },
    ])
  })

  test('two arguments that exclude each other are refused', async () => {
    const error = await bench.refused('events_store_read', {
      channel: 'c',
      from_sequence: 1,
      from_time: '2026-01-01T00:00:00Z',
      max_messages: 1,
    })
    expect(problemsOf(error)).toEqual([
      { argument: 'from_time', given: '"2026-01-01T00:00:00Z"', allowed: expect.stringContaining('from_sequence') },
    ])
  })

  test('M9 - a dead-letter queue that is the queue itself is refused', async () => {
    const error = await bench.refused('queue_send', { channel: 'same', body: 'b', dead_letter_queue: 'same' })
    expect(error.message).toContain('dead_letter_queue is "same"; it must be another queue than channel')
    expect(await bench.engine.channels.info('queues', 'same')).toBeUndefined()
  })

  test.each([
    'yesterday',
    '',
    '2026-01-01',
    '2026-01-01T00:00:00',
    '2026-01-01 00:00:00Z',
    '2026-1-1T0:0:0Z',
    '2026-02-30T00:00:00Z',
    '2025-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-01T24:00:01Z',
    '2026-01-01T00:60:00Z',
    '2026-01-01T00:00:00+25:00',
    '2026-01-01T00:00:00.Z',
    '1767225600000',
    ' 2026-01-01T00:00:00Z',
    '2026-01-01t00:00:00z',
    '2026-01-01T00:00:00Z[Europe/Berlin]',
    '2026-01-01T00:00:00.1234567890Z',
    '2016-12-31T23:59:60Z',
  ])('from_time %j is refused, saying what is allowed', async (from_time) => {
    const error = await bench.refused('events_store_read', { channel: 'c', from_time, max_messages: 1 })
    expect(problemsOf(error)).toEqual([
      { argument: 'from_time', given: JSON.stringify(from_time), allowed: expect.stringContaining('ISO 8601') },
    ])
  })

  test.each([
    '2026-01-01T00:00:00Z',
    '2024-02-29T23:59:59.5+05:30',
    '2026-01-01T00:00:00.123456789-00:00',
    '1969-07-20T20:17:40Z',
    '2026-01-01T09:30Z',
    '2026-01-01T09:30:00.250000+0100',
  ])('from_time %j is taken', async (from_time) => {
    expect(await bench.json('events_store_read', { channel: 'none', from_time, max_messages: 1 })).toEqual([])
  })

  test('from_time without a time zone is refused, and the text says why', async () => {
    const from_time = '2026-01-01T00:00:00'
    const error = await bench.refused('events_store_read', { channel: 'c', from_time, max_messages: 1 })
    expect(error.message).toMatch(/^invalid arguments?.*from_time is .*it has no time zone/i)
  })

  test('half a surrogate pair is refused in all stored text, because it would change', async () => {
    const half = 'a\ud800'
    for (const part of [{ body: half }, { metadata: half }, { tags: { a: half } }, { tags: { [half]: 'a' } }]) {
      const error = await bench.refused('queue_send', { channel: 'half', body: 'b', ...part })
      expect(error.message).toContain('valid Unicode')
    }
    expect(await bench.engine.channels.info('queues', 'half')).toBeUndefined()
  })

  test('agent_query refuses a deadline that is not a positive number', async () => {
    for (const timeout of [0, -1, '5', null, {}]) {
      const args = { agent_id: 'echo', method: 'tasks/get', params: { configuration: { timeout } } }
      const error = await bench.refused('agent_query', args)
      expect(problemsOf(error)[0]!.argument).toBe('params.configuration.timeout')
    }
  })
})

test('M7 - a refused value shows control and direction characters as code points', async () => {
  const error = await bench.refused('queue_peek', { channel: 'safe\u202egnp\n.exe', max_messages: 'a\u001b[31m' })
  expect(problemsOf(error).map(({ given }) => given)).toEqual(['"safeU+202EgnpU+000A.exe"', '"aU+001B[31m"'])
  expect(error.message).toContain('channel is "safeU+202EgnpU+000A.exe"; it must be')
  const unknown = await bench.refused('queue_peek', { channel: 'a', max_messages: 1, 'x\u2066y': 1 })
  expect(problemsOf(unknown)[0]).toMatchObject({ argument: '"xU+2066y"' })
})

const CHANNEL_ARGUMENTS = cases.filter(({ argument }) => argument === 'channel' || argument === 'dead_letter_queue')

const BAD_NAMES: readonly [what: string, name: string, reason: RegExp][] = [
  ['10,000 characters', 'x'.repeat(10_000), /longer than 255 bytes/],
  ['256 bytes of two-byte characters', 'é'.repeat(128), /longer than 255 bytes/],
  ['a NUL', 'a\0b', /control character/],
  ['a line break', 'a\nb', /control character/],
  ['DEL', 'a\u007fb', /control character/],
  ['a control of the direction of text', 'a\u202eb', /control character U\+202E/],
  ['a blank at the end', 'a ', /begins or ends with a blank/],
  ['a star', '*', /wildcard/],
  ['a star as a part', 'a.*.b', /wildcard/],
  ['a rest wildcard', 'a.>', /wildcard/],
  ['a rest wildcard alone', '>', /wildcard/],
  ['an empty part', 'a..b', /empty part/],
  ['a dot at the start', '.a', /empty part/],
  ['half a surrogate pair', 'a\udc00', /not valid Unicode/],
]

const GOOD_NAMES = [
  'a',
  'x'.repeat(255),
  'é'.repeat(127),
  '🦊.🚀',
  'a*b',
  'a>b.c',
  '_AGENTS_',
  '_agents_.x',
  'two words',
  '/a-b_c',
  '$SYS.x',
]

describe('C1, M7 - channel names', () => {
  test.each(CHANNEL_ARGUMENTS)('$tool names the problem of a bad $argument', async ({ tool, argument }) => {
    const bad = argument === 'channel' ? [['nothing', '', /empty/] as const, ...BAD_NAMES] : BAD_NAMES
    for (const [what, name, reason] of bad) {
      const error = await bench.refused(tool, { ...VALID[tool], [argument]: name })
      expect(error.code, what).toBe(-32602)
      const [problem, ...others] = problemsOf(error)
      expect(others).toEqual([])
      expect(problem!.argument).toBe(argument)
      expect(problem!.allowed).toMatch(reason)
      expect(error.message.length).toBeLessThan(500)
    }
  })

  test.each(GOOD_NAMES)('a queue may be called %j', async (channel) => {
    await bench.call('queue_send', { channel, body: 'b' })
    expect(await bench.json('queue_peek', { channel, max_messages: 1 })).toMatchObject([{ body: 'b' }])
  })
})

describe('M8 - the reserved prefix', () => {
  const names = ['_AGENTS_.x', '_AGENTS_.discovery', '_AGENTS_.agents/echo', '_AGENTS_.']

  test.each(CHANNEL_ARGUMENTS)(
    'MCP-4 - $tool refuses a reserved $argument as a tool error',
    async ({ tool, argument }) => {
      for (const name of names) {
        const { text, isError } = await bench.call(tool, { ...VALID[tool], [argument]: name })
        expect(isError).toBe(true)
        expect(text).toContain('CHANNEL_RESERVED')
        expect(text).toContain('_AGENTS_.')
      }
    },
  )

  test.each(CHANNEL_ARGUMENTS)(
    'M7 - $tool looks at the arguments before the prefix of $argument',
    async ({ tool, argument }) => {
      const error = await bench.refused(tool, { ...VALID[tool], [argument]: '_AGENTS_.x', unknown: 1 })
      expect(error.code).toBe(-32602)
      expect(problemsOf(error).map((problem) => problem.argument)).toEqual(['unknown'])
    },
  )

  test('a reserved name is refused as reserved, also if it has other problems', async () => {
    const names = [`_AGENTS_.${'x'.repeat(10_000)}`, '_AGENTS_.*', '_AGENTS_.a..b']
    for (const channel of names) {
      const { text, isError } = await bench.call('queue_send', { channel, body: '', dead_letter_queue: channel })
      expect(isError).toBe(true)
      expect(text).toContain('CHANNEL_RESERVED')
      expect(text.length).toBeLessThan(500)
    }
  })

  test('no channel is created under the prefix, and lists hide existing ones', async () => {
    const reserved = (await bench.engine.channels.list()).filter(({ name }) => name.startsWith('_AGENTS_.'))
    expect(reserved.map(({ type, name }) => `${type} ${name}`)).toEqual(['queries _AGENTS_.agents/echo'])
    for (const pattern of ['_AGENTS_.', '_AGENTS_.*', '*', '']) {
      const listed = (await bench.json('channel_list', { pattern })) as { name: string }[]
      expect(listed.filter(({ name }) => name.startsWith('_AGENTS_.'))).toEqual([])
    }
  })
})
