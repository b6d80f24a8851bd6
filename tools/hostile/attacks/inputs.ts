import { toolCall } from '@signalbox/testkit/mcp-client'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Caller } from '../attack/callers.ts'
import { outcomeOf, startAgent } from '../attack/callers.ts'
import type { Attack } from '../attack/scene.ts'
import { during, inParallel } from '../attack/scene.ts'

/** Node accepts 16 KiB of headers. */
const LONG = 15_000

/** Values on which header patterns are slow. */
const HEADERS: readonly Readonly<Record<string, string>>[] = [
  { origin: `http://[${':'.repeat(LONG)}` },
  { origin: `http://[${'1:'.repeat(LONG / 2)}x` },
  { origin: `http://[${'0'.repeat(LONG)}]` },
  { origin: `http://${'a.'.repeat(LONG / 2)}` },
  { origin: `http://${'a-'.repeat(LONG / 2)}!` },
  { 'content-type': `application/json${';'.repeat(LONG)}` },
  { 'content-type': `application/json${'; a'.repeat(LONG / 3)}` },
  { 'content-type': `application/json;${' '.repeat(LONG)}x` },
  { 'content-type': `application/json; a="${'\\"'.repeat(LONG / 2)}` },
  { 'content-type': `${'a'.repeat(LONG / 2)}/${'b'.repeat(LONG / 2)}` },
  { accept: 'text/event-stream,'.repeat(LONG / 20) },
  { accept: '*/*;q=0.1 ,'.repeat(LONG / 12) },
  { authorization: `Bearer ${'a.'.repeat(LONG / 2)}` },
  { authorization: `Bearer ${' '.repeat(LONG)}x` },
  { authorization: `Bearer ${'e30'.repeat(LONG / 3)}` },
  { forwarded: `for=${'"[::1]:1";'.repeat(LONG / 12)}` },
  { 'x-forwarded-for': '1,'.repeat(LONG / 2) },
  { 'mcp-protocol-version': '2'.repeat(LONG) },
  { 'mcp-session-id': 'x'.repeat(LONG) },
  { 'last-event-id': '9'.repeat(LONG) },
  { 'content-encoding': 'gzip,'.repeat(LONG / 6) },
  { traceparent: `00-${'0'.repeat(LONG)}` },
  { tracestate: 'a=1,'.repeat(LONG / 4) },
  { 'ce-specversion': '1.0', 'ce-type': '%'.repeat(LONG) },
  { 'ce-specversion': '1.0', 'ce-type': '%e2%82'.repeat(LONG / 6) },
]

const PATHS = ['/mcp', '/a2a/attack', '/agents/register', '/ce/send/event', '/ce/send/event?channel=attack']

/** Headers that the server reads before authentication. */
export const hostileHeaders: Attack = {
  name: 'hostile-headers',
  about: 'Origin, Content-Type and other headers with values on which patterns are slow, without a token',
  prepare: (scene) => async () => {
    const caller = scene.stranger
    const rounds = scene.scaled(20, 2)
    const all = HEADERS.flatMap((headers) => PATHS.map((path) => ({ headers, path })))
    await inParallel(all.length * rounds, 16, async (index) => {
      const { headers, path } = all[index % all.length] ?? { headers: {}, path: '/' }
      const type = { 'content-type': 'application/json' }
      await scene.tally.of(caller.ask('POST', path, { headers: { ...type, ...headers }, body: '{}' }))
    })
    await inParallel(HEADERS.length * rounds, 16, async (index) => {
      await scene.tally.of(caller.ask('OPTIONS', '/mcp', { headers: HEADERS[index % HEADERS.length] ?? {} }))
    })
    scene.tally.expect(scene.tally.countOf('5') === 0, 'the server failed over a header')
  },
}

/** Names with a meaning for NATS, for SQL, for files, or for JavaScript objects. */
const NAMES = [
  'attack.*',
  'attack.>',
  '>',
  '*',
  'attack..x',
  '.attack',
  'attack.',
  '$JS.API.STREAM.DELETE.attack',
  '$SYS.REQ.SERVER.PING',
  '$KV.attack',
  '_INBOX.attack',
  'attack x',
  'attack\r\nPUB attack 1\r\nx',
  'attack\tx',
  'attack\u0000x',
  'attack/../../etc/passwd',
  "attack'; DROP TABLE messages; --",
  'attack.__proto__',
  'attack.constructor',
  'attack.\u202Etxt',
  'attack.\uD800',
  `attack.${'x'.repeat(10_000)}`,
  `attack.${'x.'.repeat(100)}x`,
  'attack.ä',
] as const

/** The tools that send, with the arguments of each. */
const SENDS = [
  ['queue_send', {}],
  ['queue_receive', { wait_timeout_seconds: 0 }],
  ['queue_peek', {}],
  ['events_publish', {}],
  ['events_store_publish', {}],
  ['command_send', { timeout_seconds: 1 }],
] as const

/** A name reaches subjects, streams and consumers of NATS, and statements of SQL. */
export const hostileNames: Attack = {
  name: 'hostile-names',
  about: 'channel names with wildcards, control characters, line ends, subjects of the NATS servers, or SQL',
  prepare: (scene) => async () => {
    const caller = scene.attacker()
    for (const name of NAMES) {
      const shown = JSON.stringify(name.slice(0, 40))
      for (const [tool, given] of SENDS) {
        const args = tool.startsWith('queue_') && tool !== 'queue_send' ? given : { ...given, body: 'x' }
        const answer = await scene.single(shown, () => caller.tool(tool, { channel: name, ...args }))
        const failed = answer === undefined || answer.status >= 500 || /-32603|ENGINE_/.test(answer.text)
        scene.tally.expect(!failed, `${tool} to ${shown}: ${answer?.status} ${answer?.text.slice(0, 200)}`)
      }
      const path = `/ce/subscribe/events?channel=${encodeURIComponent(name.toWellFormed())}`
      const stream = await caller.stream(path)
      scene.tally.count(stream.isStream ? 'stream' : String(stream.status))
      scene.tally.expect(stream.status < 500, `${path.slice(0, 80)}: ${stream.status}`)
      stream.close()
    }
  },
}

/** Names, and the keys of other messages that a parser must not take for them, as JSON. */
const CONFUSABLE = [
  [String.raw`"\\"`, String.raw`"\u00e9"`],
  [String.raw`"\\u"`, String.raw`"\u65e5\u672c"`],
  [String.raw`"\\u00"`, String.raw`"\u00e9l\u00e9:"`],
  [String.raw`"\\\""`, String.raw`"\"\""`],
] as const

const SENT = CONFUSABLE.flatMap((names) => names.map((name) => String(JSON.parse(name))))

/** Each name of a message is also a hint for the parser of later messages. */
export const confusableNames: Attack = {
  name: 'confusable-names',
  about: 'tags whose names begin as the escapes in the names of tags that another client sends',
  prepare: (scene) => async () => {
    const [attacker, other] = [scene.attacker(0), scene.attacker(1)]
    const call = toolCall('queue_send', { channel: 'attack.names', body: 'x', tags: {} })
    const send = (tags: string): string => call.replace('"tags":{}', `"tags":${tags}`)
    for (let round = 0; round < scene.scaled(50, 5); round++) {
      for (const [index, [poison, name]] of CONFUSABLE.entries()) {
        const first = `"first${round}.${index}":"1"`
        await scene.tally.of(attacker.post('/mcp', send(`{${first},${poison}:"x"}`)))
        await scene.tally.of(other.post('/mcp', send(`{${first},${name}:"x"}`)))
      }
      const args = { channel: 'attack.names', max_messages: SENT.length }
      const { text } = await other.tool('queue_receive', args)
      const shown = SENT.filter((name) => text.includes(`,${JSON.stringify(name)}:"x"}`))
      scene.tally.expect(shown.length === SENT.length, `names were read wrong: ${shown.join(' ')} of ${SENT.join(' ')}`)
    }
  },
}

const CHANNEL = 'attack.filters'

/** The longest filter has 4,096 characters. */
const LITERAL = 'a'.repeat(4_000)

function often(condition: string): string {
  return Array.from({ length: Math.floor(4_000 / (condition.length + 4)) }, () => condition)
    .slice(0, 240)
    .join(' OR ')
}

/** Far above the time of one filter, and of other work on a busy machine. */
const MAX_MS = 750

const FILTERS = [
  `long LIKE '%${LITERAL}b'`,
  `long LIKE '%b${LITERAL}%'`,
  `long LIKE '%_${LITERAL}b%'`,
  `long LIKE '${'%a'.repeat(2_000)}%b'`,
  often(`long LIKE '%_b%'`),
  often(`LENGTH(long)=1`),
  often(`LOWER(long)=''`),
  often(`TRIM(long)=''`),
]

export const hostileFilters: Attack = {
  name: 'hostile-filters',
  about: 'eight subscriptions whose filters compare patterns of 4,000 characters with events of 60 KB',
  settings: {
    WEBHOOKS_ENABLE: 'true',
    WEBHOOKS_KEY_FILE: join(tmpdir(), `attack-webhooks-${process.pid}.key`),
    WEBHOOKS_ALLOW: '127.0.0.1',
  },
  async prepare(scene) {
    const attacker = scene.attacker()
    const sink = scene.use(
      await startAgent((_, response) => response.writeHead(200, { 'WebHook-Allowed-Origin': '*' }).end()),
    )
    for (const sql of FILTERS) {
      const config = { channel: CHANNEL, type: 'events' }
      const { status, text } = await attacker.post('/ce/subscriptions', { sink: sink.url, config, filters: [{ sql }] })
      if (status !== 201) throw new Error(`the subscription was not created: ${status} ${text.slice(0, 300)}`)
    }
    return async () => {
      const event = { channel: CHANNEL, body: 'x', tags: { ce_type: 't', ce_long: 'a'.repeat(60_000) } }
      let longest = 0
      await during(scene.floodMs, 2, async () => {
        const begin = performance.now()
        await scene.tally.of(attacker.tool('events_publish', event))
        longest = Math.max(longest, performance.now() - begin)
      })
      scene.tally.expect(longest < MAX_MS, `an answer waited ${Math.round(longest)} ms for filters`)
    }
  },
}

/** A little below MAX_BODY_BYTES. */
const LARGE = 9_900_000

const HEAD = '"specversion":"1.0","id":"1","source":"/a","type":"t","subject":"attack.ce"'

function event(members: string): string {
  return `{${HEAD}${members}}`
}

interface Hostile {
  readonly name: string
  readonly type: string
  readonly body: string
  /** True if the server must refuse the event. */
  readonly refused: boolean
}

const STRUCTURED = 'application/cloudevents+json'
const BATCH = 'application/cloudevents-batch+json'

function attributes(count: number): string {
  return Array.from({ length: count }, (_, index) => `,"a${index}":"x"`).join('')
}

function repeatTo(bytes: number, text: string, glue = ''): string {
  return Array.from({ length: Math.floor(bytes / (text.length + glue.length)) }, () => text).join(glue)
}

function hostilities(large: number): readonly Hostile[] {
  const levels = Math.floor(large / 12)
  const minimal = '{"specversion":"1.0","id":"1","source":"/","type":"t","subject":"attack.ce"}'
  return [
    {
      name: 'deep data',
      type: STRUCTURED,
      body: event(`,"data":${'['.repeat(levels)}${']'.repeat(levels)}`),
      refused: true,
    },
    {
      name: 'deep objects',
      type: STRUCTURED,
      body: event(`,"data":${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`),
      refused: true,
    },
    { name: 'deep and open', type: STRUCTURED, body: `{"data":${'['.repeat(large)}`, refused: true },
    {
      name: 'deep attribute',
      type: STRUCTURED,
      body: event(`,"ext":${'['.repeat(levels)}${']'.repeat(levels)}`),
      refused: true,
    },
    { name: '1,000 attributes', type: STRUCTURED, body: event(attributes(1_000)), refused: true },
    {
      name: 'attributes without end',
      type: STRUCTURED,
      body: event(attributes(Math.floor(large / 16))),
      refused: true,
    },
    {
      name: 'keys without end',
      type: STRUCTURED,
      body: event(`,"data":{"k":0${attributes(Math.floor(large / 16))}}`),
      refused: true,
    },
    { name: 'one key again and again', type: STRUCTURED, body: event(repeatTo(large, ',"a":1')), refused: true },
    { name: 'a long array', type: STRUCTURED, body: event(`,"data":[${repeatTo(large, '1', ',')}]`), refused: false },
    { name: 'empty objects', type: STRUCTURED, body: event(`,"data":[${repeatTo(large, '{}', ',')}]`), refused: false },
    { name: 'escapes', type: STRUCTURED, body: event(`,"data":"${repeatTo(large, '\\u0041')}"`), refused: false },
    { name: 'base64', type: STRUCTURED, body: event(`,"data_base64":"${'A'.repeat(large)}!"`), refused: true },
    { name: 'a huge batch', type: BATCH, body: `[${repeatTo(large, minimal, ',')}]`, refused: true },
    { name: 'a batch of nothing', type: BATCH, body: `[${repeatTo(large, '0', ',')}]`, refused: true },
    { name: 'a deep batch', type: BATCH, body: `${'['.repeat(levels)}${']'.repeat(levels)}`, refused: true },
  ]
}

export const hostileEvents: Attack = {
  name: 'hostile-events',
  about:
    'CloudEvents with deep nesting, endless attributes or keys, and huge batches; also from a caller without permissions',
  async prepare(scene) {
    const bodies = hostilities(scene.scaled(LARGE, 2_000_000))
    const callers: readonly Caller[] = scene.guarded ? [scene.attacker(), scene.nobody] : [scene.attacker()]
    return async () => {
      for (const caller of callers) {
        for (const { name, type, body, refused } of bodies) {
          await inParallel(2, 2, async (index) => {
            const path = index % 2 === 0 ? '/ce/send/event' : '/ce/queue/send'
            const asked = caller.ask('POST', path, { headers: { 'content-type': type }, body })
            const answer = await scene.tally.of(asked)
            const { status = 0 } = answer ?? {}
            scene.tally.expect(!refused || status >= 400, `${name}: answered with ${status}`)
            scene.tally.expect(
              caller !== scene.nobody || status >= 400,
              `${name}: ${status} for a caller without permission`,
            )
          })
        }
      }
    }
  },
}

const PING = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })

/** Requests that a page of another site, or of a rebound name, makes a browser send. */
const FOREIGN: readonly Readonly<Record<string, string>>[] = [
  { host: 'evil.example:9090' },
  { host: '127.0.0.1.evil.example' },
  { host: 'localhost.evil.example:9090' },
  { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' },
  { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
  { origin: 'https://evil.example' },
  { origin: 'null' },
]

export const rebinding: Attack = {
  name: 'rebinding',
  about: 'requests that foreign pages make a browser send: rebound names, navigations, other origins',
  prepare: (scene) => async () => {
    const { http, api, stranger: caller } = scene
    const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const requests: readonly (readonly [method: string, url: string, headers: Readonly<Record<string, string>>])[] = [
      ['POST', `${http}/mcp`, json],
      ['GET', `${http}/mcp`, { accept: 'text/event-stream' }],
      ['POST', `${http}/a2a/attack`, json],
      ['GET', `${http}/a2a/attack/stream?message=x`, {}],
      ['GET', `${http}/agents`, {}],
      ['POST', `${http}/agents/register`, json],
      ['GET', `${http}/ce/subscribe/commands?channel=honest`, {}],
      ['POST', `${http}/ce/send/event?channel=honest`, { 'content-type': 'text/plain' }],
      ['GET', `${api}/api/config`, {}],
      ['GET', `${api}/metrics`, {}],
      ['POST', `${api}/api/actions/purge_queue`, json],
    ]
    for (const foreign of FOREIGN) {
      for (const [method, url, headers] of requests) {
        const options = { headers: { ...headers, ...foreign }, ...(method === 'POST' ? { body: PING } : {}) }
        const answer = await scene.tally.of(caller.ask(method, url, { ...options, timeoutMs: 5_000 }))
        const refused = answer !== undefined && (answer.status >= 400 || outcomeOf(answer).includes(' -32'))
        scene.tally.expect(refused, `${method} ${url} with ${JSON.stringify(foreign)} was served`)
      }
    }
  },
}
