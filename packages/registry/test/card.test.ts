import * as fc from 'fast-check'
import { cases } from '@signalbox/testkit/property-cases'
import { expect, test } from 'vitest'

import { MAX_CARD_BYTES, validateCard } from '../src/card/validate-card.ts'
import { agentOptions, isParkable, RegistryError } from '../src/index.ts'
import { ALICE, card, openBench } from './registry-bench.ts'

const anywhere = async (): Promise<undefined> => undefined

/** The fields that are refused, in the order they are told. */
async function refused(given: unknown): Promise<readonly string[]> {
  try {
    await validateCard(given, anywhere)
    return []
  } catch (error) {
    if (!(error instanceof RegistryError) || error.code !== 'CARD_INVALID') throw error
    return error.details.map((problem) => String(Reflect.get(problem, 'field')))
  }
}

const with_ = (more: Readonly<Record<string, unknown>>): Record<string, unknown> => card('a1', more)

/** One character of two UTF-16 units and four bytes. */
const WIDE = '🙂'

test('AGENT-1 - card: agent_id has 2 to 128 characters of the pattern', async () => {
  for (const id of ['ab', '00', 'a-b', 'a--b', 'a'.repeat(128)]) expect(await refused(card(id)), id).toEqual([])
  const wrong = ['', 'a', 'a'.repeat(129), '-a', 'a-', 'aB', 'a_b', 'a.b', 'a b', 'ab\n', 'é1', 7, null, ['ab']]
  for (const agent_id of wrong) expect(await refused(with_({ agent_id })), String(agent_id)).toEqual(['agent_id'])
  expect(await refused({ name: 'n', url: 'http://a' })).toEqual(['agent_id'])
})

test('AGENT-2, AGENT-3 - card: texts are counted in characters, up to their limits', async () => {
  for (const [field, limit] of [
    ['name', 256],
    ['description', 2048],
    ['version', 64],
  ] as const) {
    for (const letter of ['x', WIDE, 'é']) {
      expect(await refused(with_({ [field]: letter.repeat(limit) })), field).toEqual([])
      expect(await refused(with_({ [field]: letter.repeat(limit + 1) })), field).toEqual([field])
    }
    for (const value of [7, null, {}, ['x']]) expect(await refused(with_({ [field]: value })), field).toEqual([field])
  }
  expect(await refused(with_({ name: '' }))).toEqual(['name'])
  expect(await refused(with_({ description: '', version: '' }))).toEqual([])
  expect(await refused({ agent_id: 'a1', url: 'http://a' })).toEqual(['name'])
})

test('AGENT-4, R8 - card: url is an absolute http or https URL without credentials', async () => {
  const good = [
    'http://a',
    'https://agent.example.com:8443/x/y?z=1#f',
    'HTTP://EXAMPLE.com',
    'http://[::1]:9/',
    'http://bücher.example/',
    'http://a/@b',
    `http://a/${'x'.repeat(2048 - 9)}`,
  ]
  for (const url of good) expect(await refused(with_({ url })), url).toEqual([])
  const bad = [
    '',
    'a',
    '/a',
    '//a',
    'http:',
    'http://',
    'http:a',
    'http:/a',
    'http:\\\\a',
    'http:///a',
    'http://?a',
    'ftp://a',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'unix:/run/x.sock',
    ' http://a',
    'http://a ',
    'http://a\nb',
    'http://a\tb/',
    'http://a:99999/',
    'http://[::1',
    'http://1.2.3.4.5/',
    'http://user@a/',
    'http://user:password@a/',
    'http://:password@a/',
    `http://a/${'x'.repeat(2048 - 8)}`,
    7,
    null,
  ]
  for (const url of bad) expect(await refused(with_({ url })), String(url)).toEqual(['url'])
  await expect(validateCard(with_({ url: 'http://user:s3cret@a/' }), anywhere)).rejects.not.toMatchObject({
    message: expect.stringContaining('s3cret'),
  })
})

test('AGENT-5, AGENT-7, AGENT-8 - card: free-form fields, lists of strings and opaque fields', async () => {
  for (const field of ['capabilities', 'metadata']) {
    expect(await refused(with_({ [field]: {} }))).toEqual([])
    expect(await refused(with_({ [field]: { a: [{ b: null }] } }))).toEqual([])
    for (const value of [[], null, 'x', 1, true]) expect(await refused(with_({ [field]: value }))).toEqual([field])
  }
  for (const field of ['defaultInputModes', 'defaultOutputModes', 'protocolVersions']) {
    expect(await refused(with_({ [field]: [] }))).toEqual([])
    expect(await refused(with_({ [field]: ['text/plain', ''] }))).toEqual([])
    for (const value of [{}, null, 'x', 1]) expect(await refused(with_({ [field]: value }))).toEqual([field])
    expect(await refused(with_({ [field]: ['a', 1, 'b', null] }))).toEqual([`${field}[1]`, `${field}[3]`])
  }
  for (const field of ['supportedInterfaces', 'securitySchemes', 'security']) {
    for (const value of [{}, [], null, 'x', 1, false]) {
      expect(await validateCard(with_({ [field]: value }), anywhere)).toMatchObject({ [field]: value })
    }
  }
})

test('AGENT-6 - card: skills have id and name, optionally description and tags, and keep other fields', async () => {
  const skills = [
    { id: 's', name: 'S' },
    { id: 't', name: 'T', description: '', tags: ['a', 'b'], examples: [1] },
  ]
  expect(await validateCard(with_({ skills }), anywhere)).toMatchObject({ skills })
  expect(await refused(with_({ skills: [] }))).toEqual([])
  for (const value of [{}, null, 'x']) expect(await refused(with_({ skills: value }))).toEqual(['skills'])
  const wrong = [{ name: 'S' }, { id: 's' }, {}, { id: '', name: '' }, 7, null, { id: 's', name: 'S', tags: ['a', 1] }]
  expect(await refused(with_({ skills: [...skills, ...wrong] }))).toEqual([
    'skills[2].id',
    'skills[3].name',
    'skills[4].id',
    'skills[4].name',
    'skills[5].id',
    'skills[5].name',
    'skills[6]',
    'skills[7]',
    'skills[8].tags[1]',
  ])
  expect(await refused(with_({ skills: [{ id: 's', name: 'S', description: 1, tags: 'a' }] }))).toEqual([
    'skills[0].description',
    'skills[0].tags',
  ])
})

test('AGENT-9, R2 - card: missing fields get defaults, unknown ones are kept, those that the server sets are ignored', async () => {
  const given = JSON.parse('{"agent_id":"a1","name":"A","url":"http://a","x":{"y":[null]},"__proto__":{"z":1}}')
  const checked = await validateCard(
    { ...given, registered_by: 7, registered_at: 'never', last_seen: [], offline: 1 },
    anywhere,
  )
  expect(JSON.parse(JSON.stringify(checked))).toEqual({ ...given, protocolVersions: ['1.0'] })
  expect(Object.hasOwn(checked, '__proto__')).toBe(true)
  expect(await validateCard(with_({ protocolVersions: ['0.3'] }), anywhere)).toMatchObject({
    protocolVersions: ['0.3'],
  })
})

test('R1 - card: an error lists every problem, with its value and the allowed values', async () => {
  const problem = validateCard(
    { agent_id: 'A', name: 'x'.repeat(300), version: 1, url: 'ftp://a', skills: [{}], metadata: [] },
    anywhere,
  )
  await expect(problem).rejects.toMatchObject({
    details: [
      { field: 'agent_id', given: '"A"', allowed: expect.stringContaining('2 to 128 characters') },
      { field: 'name', given: expect.stringMatching(/^"x{64}"… \(300\)$/), allowed: expect.stringContaining('256') },
      { field: 'version', given: '1', allowed: 'a string of at most 64 characters' },
      { field: 'skills[0].id', allowed: 'a string that is not empty' },
      { field: 'skills[0].name', allowed: 'a string that is not empty' },
      { field: 'metadata', given: 'an array of 0', allowed: 'an object' },
      { field: 'url', given: '"ftp://a"', allowed: expect.stringContaining('http://') },
    ],
    message: expect.stringContaining('skills[0].id is missing; it must be'),
  })
  expect(await refused({ skills: Array.from({ length: 5_000 }, () => ({})) })).toHaveLength(100)
})

const nested = (levels: number): unknown => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`)

test('R1 - card: it is an object of at most 64 KiB and 128 levels', async () => {
  for (const given of [undefined, null, 7, 'card', true, [], [card('a1')], () => 1, { ...card('a1'), n: 1n }]) {
    expect(await refused(given)).toEqual(['card'])
  }
  const filled = (bytes: number): unknown => {
    const empty = with_({ filler: '' })
    return { ...empty, filler: 'x'.repeat(bytes - JSON.stringify(empty).length) }
  }
  expect(await refused(filled(MAX_CARD_BYTES))).toEqual([])
  expect(await refused(filled(MAX_CARD_BYTES + 1))).toEqual(['card'])
  expect(await refused(with_({ security: nested(127) }))).toEqual([])
  for (const levels of [128, 30_000]) expect(await refused(with_({ security: nested(levels) }))).toEqual(['card'])
})

const text = (max: number) =>
  fc.oneof(
    fc
      .integer({ min: max - 2, max: max + 2 })
      .chain((length) => fc.constantFrom('x'.repeat(length), WIDE.repeat(length))),
    fc.string({ unit: 'grapheme', maxLength: 5 }),
    fc.constant(''),
  )

const isText = (value: unknown, min: number, max = Infinity): boolean =>
  typeof value === 'string' && Array.from(value).length >= min && Array.from(value).length <= max

/** The problems a card has, by a reading of the tables of its own. */
const expected = (given: Record<string, unknown>): readonly string[] => {
  const wrong: string[] = []
  const check = (name: string, ok: (value: unknown) => boolean, required = false): void => {
    if (given[name] === undefined ? required : !ok(given[name])) wrong.push(name)
  }
  check('agent_id', (value) => typeof value === 'string' && /^[a-z0-9][a-z0-9-]*[a-z0-9]$/.test(value), true)
  check('name', (value) => isText(value, 1, 256), true)
  check('description', (value) => isText(value, 0, 2048))
  check('version', (value) => isText(value, 0, 64))
  const { skills } = given
  if (Array.isArray(skills)) {
    for (const [at, each] of skills.entries()) {
      if (typeof each !== 'object') continue
      if (!isText(each.id, 1)) wrong.push(`skills[${at}].id`)
      if (!isText(each.name, 1)) wrong.push(`skills[${at}].name`)
      if (each.tags !== undefined && !Array.isArray(each.tags)) wrong.push(`skills[${at}].tags`)
    }
  } else if (skills !== undefined) wrong.push('skills')
  check('metadata', (value) => typeof value === 'object' && value !== null && !Array.isArray(value))
  check('url', (value) => value === 'http://a' || value === 'https://b/c', true)
  return wrong
}

test('R1, AGENT-1, AGENT-2, AGENT-3, AGENT-6 - card: any card is accepted exactly when the tables allow it', async () => {
  const other = fc.oneof(fc.integer(), fc.constant(null), fc.constant([]), fc.constant({}), fc.boolean())
  const field = <T>(good: fc.Arbitrary<T>) =>
    fc.option(fc.oneof({ weight: 6, arbitrary: good }, { weight: 1, arbitrary: other }), { nil: undefined, freq: 8 })
  const skill = fc.record({
    id: field(text(3)),
    name: field(text(3)),
    tags: field(fc.array(text(3), { maxLength: 2 })),
  })
  const cards = fc.record({
    agent_id: field(fc.stringMatching(/^[a-zA-Z0-9-]{1,4}$/)),
    name: field(text(256)),
    description: field(text(2048)),
    version: field(text(64)),
    url: field(fc.constantFrom('http://a', 'https://b/c', 'ftp://a', 'a', '')),
    skills: field(fc.array(skill, { maxLength: 3 })),
    metadata: field(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2 })),
  })
  await fc.assert(
    fc.asyncProperty(cards, async (given) => {
      expect([...(await refused(given))].sort()).toEqual([...expected(given)].sort())
    }),
    { seed: 20_261_121, numRuns: cases(500) },
  )
})

test('AGENT-2 - card: names hold no character that a terminal or a page obeys, and the error names it', async () => {
  const problemOf = async (name: string): Promise<object> => {
    const error: unknown = await validateCard(with_({ name }), anywhere).catch((reason: unknown) => reason)
    return error instanceof RegistryError ? (error.details[0] ?? {}) : {}
  }
  for (const [name, given, character] of [
    ['\u001b[31mRed', '"U+001B[31mRed"', 'U+001B ESCAPE'],
    ['a\u009b31m', '"aU+009B31m"', 'U+009B CONTROL SEQUENCE INTRODUCER'],
    ['a\u0001', '"aU+0001"', 'U+0001'],
    ['two\nlines', '"twoU+000Alines"', 'U+000A LINE FEED'],
    ['invoice\u202efdp.exe', '"invoiceU+202Efdp.exe"', 'U+202E RIGHT-TO-LEFT OVERRIDE'],
    ['\u2067a', '"U+2067a"', 'U+2067 RIGHT-TO-LEFT ISOLATE'],
  ] as const) {
    const allowed = `text without control and direction characters (it holds ${character})`
    expect(await problemOf(name)).toEqual({ field: 'name', given, allowed })
  }
  for (const name of ['Grüße 🙂', 'سلام', 'שלום', '👩\u200d🚀 crew', 'a\u00a0b'])
    expect(await refused(with_({ name }))).toEqual([])
  const skills = [
    { id: 'a\u0007', name: 'ok' },
    { id: 'b', name: 'x\u200fy', description: 'line\nline' },
  ]
  expect(await refused(with_({ skills }))).toEqual(['skills[0].id', 'skills[1].name'])
  expect(
    await refused(with_({ description: 'two\nlines', skills: Array.from({ length: 900 }, () => skills[0]) })),
  ).toHaveLength(100)
})

test('R1 - card: links that a page may show are http or https, and no other URL has a scheme that a browser runs', async () => {
  const script = 'javascript:alert(document.domain)'
  for (const url of [script, 'JavaScript:x', ' javascript:x', 'java\nscript:x', 'data:text/html,x', 'ftp://x', '//x']) {
    const links = { documentationUrl: url, iconUrl: url, icon_url: url, provider: { organization: 'Us', url } }
    expect(await refused(with_(links)), url).toEqual(['documentationUrl', 'iconUrl', 'icon_url', 'provider.url'])
  }
  const addresses = {
    supportedInterfaces: [{ url: 'https://a.example' }, { url: script }],
    additionalInterfaces: [{ url: 'java\tscript:x' }],
    securitySchemes: { login: { type: 'oauth2', flows: { authorizationCode: { authorizationUrl: script } } } },
  }
  expect(await refused(with_(addresses))).toEqual([
    'supportedInterfaces[1].url',
    'additionalInterfaces[0].url',
    'securitySchemes.login.flows.authorizationCode.authorizationUrl',
  ])
  const fine = {
    documentationUrl: 'https://us.example/docs',
    iconUrl: '',
    provider: { organization: 'Us', url: 'http://us.example' },
    supportedInterfaces: [{ url: 'grpc://10.0.0.7' }, { url: 'agent.example:50051', protocolBinding: 'GRPC' }],
    securitySchemes: { login: { description: 'data: see javascript:' } },
    metadata: { url: script },
    own: script,
  }
  expect(await refused(with_(fine))).toEqual([])
})

async function problems(a2a: unknown): Promise<readonly (readonly [unknown, unknown])[]> {
  try {
    await validateCard(card('a1', { a2a }), anywhere)
    return []
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error
    return error.details.map((problem) => [Reflect.get(problem, 'field'), Reflect.get(problem, 'allowed')])
  }
}

test('options - wire and v03 are kept with the card, and shown by the registry', async () => {
  const { node } = await openBench()
  const registry = await node()
  for (const a2a of [{}, { wire: '1.0' }, { wire: '0.3', v03: false }, { wire: 'auto', v03: true }]) {
    expect(await registry.register(card('a1', { a2a }), ALICE)).toMatchObject({ a2a })
    expect(registry.get('a1')?.['a2a']).toEqual(a2a)
  }
})

test('options - another value is refused with its field and the allowed values', async () => {
  expect(await problems({ wire: '2.0', v03: 'no', wires: '1.0' })).toEqual([
    ['a2a.wire', '1.0, 0.3 or auto'],
    ['a2a.v03', 'true or false'],
    ['a2a', 'an object with wire, v03, credentials, liveness, durable, offline, pull and queue alone'],
  ])
  for (const a2a of [null, [], 'auto', 7]) expect(await problems(a2a)).toEqual([['a2a', 'an object']])
})

test('options - credentials beside a2a are refused without being shown: everybody may read a card', async () => {
  const refusal = validateCard(with_({ credentials: { bearer: 'secret-1' } }), anywhere)
  await expect(refusal).rejects.toThrow(/^((?!secret-1).)*it must be in a2a, as a2a\.credentials((?!secret-1).)*$/)
})

const QUEUE = { ttlSeconds: 604_800, maxMessages: 1_000, maxPerCaller: 100, maxAttempts: 5 }
const DEFAULTS = {
  wire: 'auto',
  v03: true,
  credentials: undefined,
  liveness: 'heartbeat',
  durable: false,
  offline: 'refuse',
  pull: false,
  queue: QUEUE,
}

test('options - a card without them, or with values of an earlier version, has the defaults', () => {
  const early = { wire: '9', v03: 'no', durable: 1, offline: 'keep', pull: 'yes', queue: { ttl_seconds: 0 } }
  for (const a2a of [undefined, null, 'x', {}, early]) expect(agentOptions({ a2a })).toEqual(DEFAULTS)
  expect(agentOptions({ a2a: { wire: '0.3', v03: false } })).toEqual({ ...DEFAULTS, wire: '0.3', v03: false })
})

test('options - agents with an inbox are durable, and the bounds of the inbox have defaults', () => {
  expect(agentOptions({ a2a: { durable: true } })).toEqual({ ...DEFAULTS, durable: true })
  expect(agentOptions({ url: 'http://a', a2a: { offline: 'queue' } })).toMatchObject({
    durable: true,
    offline: 'queue',
  })
  expect(agentOptions({ a2a: { pull: true, durable: false } })).toMatchObject({ durable: true, pull: true })
  // An earlier version registered any options: an agent with a url is called.
  expect(agentOptions({ url: 'http://a', a2a: { pull: true } })).toEqual(DEFAULTS)
  const queue = { ttl_seconds: 60, max_messages: 1e9, max_per_caller: 1.5, max_attempts: 1 }
  expect(agentOptions({ a2a: { pull: true, queue } }).queue).toEqual({ ...QUEUE, ttlSeconds: 60, maxAttempts: 1 })
  const parkable = [{ pull: true }, { offline: 'queue' }, { durable: true }, { offline: 'refuse' }, undefined]
  expect(parkable.map((a2a) => isParkable({ a2a }))).toEqual([true, true, false, false, false])
})

test('options - durable, offline, pull and queue are refused with other values, and the problem names the allowed ones', async () => {
  expect(await problems({ durable: 'yes', offline: 'keep', pull: 1, queue: [] })).toEqual([
    ['a2a.durable', 'true or false'],
    ['a2a.offline', 'refuse or queue'],
    ['a2a.pull', 'true or false'],
    ['a2a.queue', 'an object'],
  ])
  const queue = { ttl_seconds: 0, max_messages: 100_001, max_per_caller: '5', max_attempts: 1.5, max_size: 1 }
  expect(await problems({ offline: 'queue', queue })).toEqual([
    ['a2a.queue.ttl_seconds', 'a whole number from 1 to 31536000'],
    ['a2a.queue.max_messages', 'a whole number from 1 to 100000'],
    ['a2a.queue.max_per_caller', 'a whole number from 1 to 100000'],
    ['a2a.queue.max_attempts', 'a whole number from 1 to 100'],
    ['a2a.queue', 'an object with ttl_seconds, max_messages, max_per_caller, max_attempts alone'],
  ])
  const most = { ttl_seconds: 31_536_000, max_messages: 100_000, max_per_caller: 100_000, max_attempts: 100 }
  expect(await problems({ offline: 'queue', queue: most })).toEqual([])
  const absent = [['a2a.queue', 'absent unless a2a.pull is true or a2a.offline is queue']]
  expect(await problems({ queue: {} })).toEqual(absent)
  expect(await problems({ durable: true, offline: 'refuse', queue: {} })).toEqual(absent)
})

test('options - a pull agent has no address, no instances, no probes, and no second inbox', async () => {
  const { url: _none, ...pull } = card('a1', { a2a: { pull: true, queue: { max_attempts: 1 } } })
  expect(await refused(pull)).toEqual([])
  const a2a = { pull: true, liveness: 'probe', offline: 'queue' }
  const all = { ...pull, url: 'http://a', instance_id: 'a', agent_card_url: 'http://a/card', a2a }
  expect(await refused(all)).toEqual(['url', 'instance_id', 'agent_card_url', 'a2a.liveness', 'a2a.offline'])
  expect(await refused({ ...pull, url: 'http://inbox.invalid/' })).toEqual(['url'])
  expect(await refused({ ...pull, a2a: { pull: false } })).toEqual(['url'])
  expect(await refused({ a2a: { pull: true } })).toEqual(['agent_id', 'name'])
})

test('options - a server without a log refuses what needs one, and names the setting', async () => {
  const { node } = await openBench()
  const registry = await node({ log: 'off' })
  for (const [name, value] of [
    ['durable', true],
    ['offline', 'queue'],
    ['pull', true],
  ] as const) {
    const { url, ...rest } = card('a1', { a2a: { [name]: value } })
    await expect(registry.register(name === 'pull' ? rest : { ...rest, url }, ALICE)).rejects.toMatchObject({
      code: 'CARD_INVALID',
      details: [{ field: `a2a.${name}`, allowed: expect.stringContaining('CONNECTORSA2_A_LOG is off') }],
    })
  }
  await registry.register(card('a1', { a2a: { durable: false, offline: 'refuse', pull: false } }), ALICE)
})

test("security schemes - the SDK's tagged unions become the members that A2A has; everything else is kept", async () => {
  const flow = { tokenUrl: 'https://id.example/token', scopes: { a: 'A' } }
  const leaked = {
    bearer: { scheme: { $case: 'httpAuthSecurityScheme', value: { scheme: 'bearer', description: '' } } },
    oauth: {
      scheme: {
        $case: 'oauth2SecurityScheme',
        value: { flows: { flow: { $case: 'clientCredentials', value: flow } }, oauth2MetadataUrl: '' },
      },
    },
  }
  const { securitySchemes } = await validateCard(card('a1', { securitySchemes: leaked }), anywhere)
  expect(securitySchemes).toEqual({
    bearer: { httpAuthSecurityScheme: { scheme: 'bearer', description: '' } },
    oauth: { oauth2SecurityScheme: { flows: { clientCredentials: flow }, oauth2MetadataUrl: '' } },
  })
  const proper = {
    old: { type: 'http', scheme: 'bearer' },
    key: { apiKeySecurityScheme: { location: 'header', name: 'X' } },
    odd: {
      scheme: { $case: 7, value: {} },
      both: { $case: 'old', value: 1 },
      old: 2,
      list: [{ $case: 'x', value: 1 }],
    },
    nothing: null,
  }
  for (const given of [proper, 'none', null, []]) {
    expect((await validateCard(card('a1', { securitySchemes: given }), anywhere)).securitySchemes).toEqual(given)
  }
  expect('securitySchemes' in (await validateCard(card('a1'), anywhere))).toBe(false)
})
