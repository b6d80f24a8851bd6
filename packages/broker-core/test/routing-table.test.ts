import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { encodeText, parseRoutingTable, Routing, RoutingTableError } from '@signalbox/broker-core'
import type { OutgoingMessage, Tags } from '@signalbox/broker-core'

function message(tags: Tags = {}): OutgoingMessage {
  return { id: 'm-1', clientId: 'ada', body: encodeText('x'), metadata: '', tags }
}

function problems(input: unknown): readonly string[] {
  try {
    parseRoutingTable(input)
  } catch (error) {
    if (error instanceof RoutingTableError) return error.problems
    throw error
  }
  return []
}

/** What the first rule says of a message; a string is the reason why it cannot tell. */
function matches(key: string, keyType: string, channel: string, tags: Tags = {}): boolean | string | undefined {
  const { rules } = parseRoutingTable([{ key, keyType, routes: 'queues:target' }])
  return rules[0]?.matches('events', channel, message(tags))
}

/** The channels that the first rule's targets are for a message with these tags. */
function targets(routes: string, tags: Tags = {}): readonly string[] {
  const { rules } = parseRoutingTable([{ key: '.*', routes }])
  return (rules[0]?.targets ?? []).map(({ type, channel }) => {
    const resolved = channel.resolve(tags)
    return 'channel' in resolved
      ? `${type}:${resolved.channel}`
      : `${resolved.problem.reason}: ${resolved.problem.detail}`
  })
}

describe('routing table', () => {
  test('routing table - an entry has a key, its type and its routes', () => {
    const table = parseRoutingTable([
      { key: "type = 'com.example.order.created'", keyType: 'cesql', routes: 'events_store:archive;queues:work' },
      { key: 'orders\\..+', routes: ' events:seen ; queues:{ce_type}.{ce_source} ' },
    ])
    expect(table.rules.map(({ index, key, keyType }) => ({ index, key, keyType }))).toEqual([
      { index: 0, key: "type = 'com.example.order.created'", keyType: 'cesql' },
      { index: 1, key: 'orders\\..+', keyType: 'regex' },
    ])
    expect(table.rules.map((rule) => rule.targets.map(({ type, channel }) => `${type}:${channel.source}`))).toEqual([
      ['events_store:archive', 'queues:work'],
      ['events:seen', 'queues:{ce_type}.{ce_source}'],
    ])
  })

  test('routing table - an empty one is valid and routes nothing', () => {
    expect(new Routing().active).toBe(false)
    expect(new Routing(parseRoutingTable([])).active).toBe(false)
  })

  test('routing table - a new table replaces the rules at once', () => {
    const routing = new Routing()
    const table = parseRoutingTable([{ key: 'a', routes: 'queues:b' }])
    routing.replace(table)
    expect(routing.table).toBe(table)
    expect(routing.active).toBe(true)
    routing.replace(parseRoutingTable([]))
    expect(routing.active).toBe(false)
  })

  test.each<[unknown, string]>([
    [undefined, 'it must be an array of {key, keyType, routes}'],
    [{ key: 'a', routes: 'queues:b' }, 'it must be an array of {key, keyType, routes}'],
    ['[]', 'it must be an array of {key, keyType, routes}'],
    [Array.from({ length: 1001 }, () => ({})), 'it has 1001 entries; at most 1000 are allowed'],
    [[null], 'entry 0: it is null; it must be an object {key, keyType, routes}'],
    [['a'], 'entry 0: it is "a"; it must be an object {key, keyType, routes}'],
    [[[]], 'entry 0: it is an array; it must be an object {key, keyType, routes}'],
    [[{ key: 'a', routes: 'queues:b', Key: 1 }], 'entry 0: unknown key "Key"; allowed are key, keyType, routes'],
    [[{ routes: 'queues:b' }], 'entry 0: key is missing; it must be a regular expression or a CESQL expression'],
    [[{ key: 7, routes: 'queues:b' }], 'entry 0: key is 7; it must be a regular expression or a CESQL expression'],
    [[{ key: ' ', routes: 'queues:b' }], 'entry 0: key is " "; it must be a regular expression or a CESQL expression'],
    [[{ key: 'a', keyType: 'glob', routes: 'queues:b' }], 'entry 0: keyType is "glob"; allowed are regex, cesql'],
    [[{ key: 'a', keyType: null, routes: 'queues:b' }], 'entry 0: keyType is null; allowed are regex, cesql'],
    [[{ key: 'a' }], 'entry 0: routes is missing; it must be targets such as "queues:work;events_store:archive"'],
    [
      [{ key: 'a', routes: ['queues:b'] }],
      'entry 0: routes is an array; it must be targets such as "queues:work;events_store:archive"',
    ],
    [
      [{ key: 'a', keyType: 'cesql', routes: 'queues:b' }],
      'entry 0: key: the expression must give true or false, by a comparison, LIKE, IN or EXISTS for example',
    ],
    [
      [{ key: "LOWER('a')", keyType: 'cesql', routes: 'queues:b' }],
      'entry 0: key: the expression must give true or false, by a comparison, LIKE, IN or EXISTS for example',
    ],
    [
      [{ key: 'type =', keyType: 'cesql', routes: 'queues:b' }],
      'entry 0: key: expected a value, but the expression ends (at character 7)',
    ],
    [
      [{ key: 'NOW() = 1', keyType: 'cesql', routes: 'queues:b' }],
      expect.stringMatching(/^entry 0: key: there is no function NOW; the functions are LENGTH, /),
    ],
    [[{ key: 'a(', routes: 'queues:b' }], expect.stringMatching(/^entry 0: key: Invalid regular expression/)],
    [[{ key: 'a)|(b', routes: 'queues:b' }], expect.stringMatching(/^entry 0: key: Invalid regular expression/)],
    [
      [{ key: 'a'.repeat(4097), routes: 'queues:b' }],
      'entry 0: key: the regular expression has 4097 characters; at most 4096 are allowed',
    ],
  ])('routing table - %o is refused', (input, problem) => {
    expect(problems(input)).toEqual([problem])
  })

  test.each([
    ['b', '"b": allowed is type:channel with type queues, events, events_store'],
    ['', '"": allowed is type:channel with type queues, events, events_store'],
    ['Queues:b', '"Queues:b": allowed is type:channel with type queues, events, events_store'],
    [
      'commands:b',
      '"commands:b": commands need an answer; allowed is type:channel with type queues, events, events_store',
    ],
    [
      'queries:b',
      '"queries:b": queries need an answer; allowed is type:channel with type queues, events, events_store',
    ],
    ['queues:', '"queues:": it is empty'],
    ['queues: b', '"queues: b": it begins or ends with a blank'],
    ['queues:a..b', '"queues:a..b": it has an empty part before, between or after dots'],
    ['events:a.*', '"events:a.*": its part * is a wildcard, which only subscriptions to events may use'],
    ['queues:_AGENTS_.x', '"queues:_AGENTS_.x": channels beginning with _AGENTS_. belong to the broker'],
    [
      'events:_AGENTS_.{ce_type}',
      '"events:_AGENTS_.{ce_type}": channels beginning with _AGENTS_. belong to the broker',
    ],
    ...['{type}', '{ce_}', '{ce_Type}', '{ce_a_b}', '{ce_type', 'ce_type}', '{{ce_type}}', '{}'].map((channel) => [
      `queues:${channel}`,
      `"queues:${channel}": braces may only hold a placeholder {ce_<attribute>}, the attribute in lower-case letters and digits`,
    ]),
  ])('M8 - routing table - target %j is refused', (target, problem) => {
    expect(problems([{ key: 'a', routes: target === '' ? 'queues:c;' : target }])).toEqual([
      `entry 0: routes: target ${problem}`,
    ])
  })

  test('routing table - an error lists all problems', () => {
    expect(
      problems([
        { key: 'ok', routes: 'queues:a' },
        { key: '(', keyType: 'cesql', routes: 'commands:a;queues:b;queues:b', more: true },
        { keyType: 'x' },
      ]),
    ).toEqual([
      'entry 1: unknown key "more"; allowed are key, keyType, routes',
      'entry 1: key: expected a value, but the expression ends (at character 2)',
      'entry 1: routes: target "commands:a": commands need an answer; allowed is type:channel with type queues, events, events_store',
      'entry 1: routes: target "queues:b" is listed twice',
      'entry 2: keyType is "x"; allowed are regex, cesql',
      'entry 2: key is missing; it must be a regular expression or a CESQL expression',
      'entry 2: routes is missing; it must be targets such as "queues:work;events_store:archive"',
    ])
    expect(() => parseRoutingTable([{ key: 'a' }])).toThrow(
      'the routing table is not valid: entry 0: routes is missing',
    )
  })

  test('routing table - anything at all is either a table or a RoutingTableError', () => {
    const entry = fc.record(
      {
        key: fc.oneof(fc.string(), fc.constantFrom('orders.*', "type = 'x'", '(', '')),
        keyType: fc.oneof(fc.constantFrom('regex', 'cesql', 'glob'), fc.anything()),
        routes: fc.oneof(fc.string(), fc.constantFrom('queues:a', 'queues:a;events:{ce_type}', 'x')),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(
        fc.oneof(fc.anything(), fc.array(fc.oneof({ weight: 9, arbitrary: entry }, fc.anything()))),
        (input) => {
          for (const problem of problems(input)) expect(problem).toMatch(/^(?:entry \d+: |it (?:must|has) )/)
        },
      ),
      { seed: 17, numRuns: 1000 },
    )
  })
})

describe('keys', () => {
  test.each([
    ['orders', 'orders', true],
    ['orders', 'orders.eu', false],
    ['orders', 'my.orders', false],
    ['a|b', 'b', true],
    ['a|b', 'ab', false],
    ['orders\\..+', 'orders.eu', true],
    ['orders\\..+', 'orders-eu', false],
    ['.', '🙂', true],
    ['\\p{L}+', 'größe', true],
  ])('routing regex - %s is for the whole of %s: %s', (key, channel, expected) => {
    expect(matches(key, 'regex', channel)).toBe(expected)
  })

  test.each<[string, boolean | string, Tags]>([
    ["type = 'order'", true, { ce_type: 'order' }],
    ["type = 'order'", false, { ce_type: 'invoice' }],
    ["type = 'order'", false, { type: 'order' }],
    ['priority > 3', true, { ce_priority: '4' }],
    ['priority > 3', 'the event has no attribute priority', { ce_type: 'order' }],
    ['priority > 3', '"high" is not a 32-bit integer', { ce_priority: 'high' }],
    ['EXISTS priority AND priority > 3', false, {}],
    // What every event has is there in any case.
    ["id = 'm-1' AND specversion = '1.0'", true, {}],
    ["type = 'signalbox.message' AND source = '/signalbox/events/orders.eu'", true, {}],
    ["id = 'e-9' AND source = '/shop'", true, { ce_id: 'e-9', ce_source: '/shop' }],
    ["source = '/signalbox/events/orders.eu'", true, { ce_type: 'order' }],
    // What an event may lack, only a message that is none has.
    ["subject = 'orders.eu' AND LENGTH(time) = 24", true, { other: 'x' }],
    ['EXISTS subject OR EXISTS time', false, { ce_type: 'order' }],
    ["subject = 'cart'", true, { ce_subject: 'cart' }],
    ['EXISTS constructor', false, {}],
  ])('routing cesql - %s gives %o', (key, expected, tags) => {
    expect(matches(key, 'cesql', 'orders.eu', tags)).toBe(expected)
  })
})

describe('targets', () => {
  test.each<[string, Tags, readonly string[]]>([
    ['queues:a;events_store:b;events:c', {}, ['queues:a', 'events_store:b', 'events:c']],
    ['queues:host:1;queues:größe 🙂', {}, ['queues:host:1', 'queues:größe 🙂']],
    ['queues:by.{ce_type}.x', { ce_type: 'order.new' }, ['queues:by.order.new.x']],
    ['queues:{ce_type}{ce_id}', { ce_type: 'a', ce_id: '1' }, ['queues:a1']],
    ['queues:{ce_type}', { ce_type: '{ce_id}', ce_id: '1' }, ['queues:{ce_id}']],
    ['queues:{ce_type}', { type: 'a' }, ['placeholder: the message has no tag ce_type']],
    ['queues:{ce_type}', {}, ['placeholder: the message has no tag ce_type']],
    ['queues:{ce_type}', { ce_type: '' }, ['channel: channel "": it is empty']],
    [
      'queues:x.{ce_type}',
      { ce_type: '*' },
      ['channel: channel "x.*": its part * is a wildcard, which only subscriptions to events may use'],
    ],
    [
      'queues:{ce_type}',
      { ce_type: 'x'.repeat(300) },
      [`channel: channel "${'x'.repeat(64)}…": it is longer than 255 bytes`],
    ],
    [
      'queues:{ce_type}',
      { ce_type: '_AGENTS_.audit' },
      ['channel: channel "_AGENTS_.audit": channels beginning with _AGENTS_. belong to the broker'],
    ],
    [
      'queues:_AGENTS{ce_type}',
      { ce_type: '_.audit' },
      ['channel: channel "_AGENTS_.audit": channels beginning with _AGENTS_. belong to the broker'],
    ],
  ])('M8 - routing targets - %s with %o', (routes, tags, expected) => {
    expect(targets(routes, tags)).toEqual(expected)
  })
})
