import { Buffer } from 'node:buffer'
import { setTimeout as delay } from 'node:timers/promises'

import { KeepAliveConnection, postBytes } from '@signalbox/testkit/http-connection'
import { toolCall } from '@signalbox/testkit/mcp-client'
import { WebSocket } from 'ws'

import type { Caller, HeldResponse } from '../attack/callers.ts'
import { failureOf, register } from '../attack/callers.ts'
import type { Attack, Scene } from '../attack/scene.ts'
import { during, inParallel } from '../attack/scene.ts'
import { largeCard } from './agents.ts'

/** The requests in flight, and the unanswered commands and queries, of one caller. */
const REQUEST_LIMIT = 1_024

/** The channels, and the agents, of one caller. */
const OWN_LIMIT = 1_000
const MORE = 200

/** Concurrent requests up to the limits and beyond; then all connections are broken. */
export const limitRequests: Attack = {
  name: 'limit-requests',
  about: 'long polls of one caller, beyond its 1,024 requests in flight',
  // A network address may use half.
  settings: { LIMITS_PROCESS_REQUESTS_IN_FLIGHT: String(2 * REQUEST_LIMIT) },
  prepare: (scene) => async () => {
    const caller = scene.attacker()
    let waiting = 0
    let peak = 0
    const calls = Array.from({ length: REQUEST_LIMIT + 300 }, async () => {
      waiting++
      const args = { channel: 'attack.empty', max_messages: 1, wait_timeout_seconds: scene.scaled(10, 3) }
      await scene.tally.of(caller.tool('queue_receive', args))
      waiting--
    })
    void scene.until(async () => {
      peak = Math.max(peak, await scene.metric('broker_limit_use', 'limit="process_requests"'))
      return waiting === 0
    })
    await Promise.all(calls)
    const accepted = scene.tally.countOf('200')
    scene.tally.expect(
      accepted <= REQUEST_LIMIT && accepted > 0,
      `${accepted} requests were accepted, and ${REQUEST_LIMIT} are allowed at a time`,
    )
    scene.tally.expect(peak <= REQUEST_LIMIT + 4, `${peak} requests were in flight`)
  },
}

const RATE = 200

export const limitRate: Attack = {
  name: 'limit-rate',
  about: 'one caller at full speed, with LIMITS_CALLER_REQUESTS_PER_SECOND at 200',
  settings: { LIMITS_CALLER_REQUESTS_PER_SECOND: String(RATE) },
  prepare: (scene) => async () => {
    const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    const seconds = await floodWith(scene, scene.attacker(), ping, 32)
    const accepted = scene.tally.countOf('200')
    // A burst of twice the rate is allowed.
    const most = RATE * (seconds + 2) * 1.05
    scene.tally.expect(accepted <= most, `${accepted} requests were accepted in ${seconds.toFixed(1)} s`)
    scene.tally.expect(scene.tally.countOf('429') > 0, 'no request was refused')
  },
}

const STREAM_LIMIT = 256
const MORE_STREAMS = 50

/** A network address may use half of the process's limit. */
const SETTINGS = { LIMITS_PROCESS_STREAMS: String(2 * STREAM_LIMIT) }

function expectLimit(scene: Scene, opened: number): void {
  scene.tally.expect(
    opened === STREAM_LIMIT,
    `${opened} streams of one caller were opened, and ${STREAM_LIMIT} are allowed`,
  )
}

/** Opens streams beyond the limit; the honest caller needs no stream. */
function streams(name: string, about: string, path: (index: number) => string): Attack {
  return {
    name,
    about,
    settings: SETTINGS,
    prepare: (scene) => async () => {
      const caller = scene.attacker()
      await inParallel(STREAM_LIMIT + MORE_STREAMS, 20, async (index) => {
        const stream = await scene.tally.ofStream(caller.stream(path(index)))
        if (stream?.isStream === true) stream.drain()
        else void stream?.rest()
      })
      expectLimit(scene, scene.tally.countOf('stream'))
      scene.tally.expect(scene.tally.countOf('429') === MORE_STREAMS, 'the others were not answered with 429')
    },
  }
}

export const limitMcpStreams = streams(
  'limit-streams-mcp',
  'GET /mcp streams of one caller, beyond its 256',
  () => '/mcp',
)

export const limitCeStreams = streams(
  'limit-streams-ce',
  'subscriptions of one caller to events and commands, beyond its 256',
  (index) => `/ce/subscribe/${index % 2 === 0 ? 'events' : 'commands'}?channel=attack.${index}`,
)

/** Resolves with the status of a refusal, or with `stream`. */
function openMonitor(scene: Scene, caller: Caller): Promise<string> {
  const socket = new WebSocket(`${scene.api.replace('http', 'ws')}/api/monitor`, {
    headers: caller.identity.headers,
    localAddress: caller.identity.address,
    perMessageDeflate: false,
  })
  scene.use({ [Symbol.dispose]: () => socket.terminate() })
  return new Promise((resolve) => {
    socket.once('open', () => resolve('stream'))
    socket.once('unexpected-response', (_request, response) => resolve(String(response.statusCode)))
    socket.on('error', (error) => resolve(failureOf(error)))
  })
}

export const limitMonitors: Attack = {
  name: 'limit-streams-monitor',
  about: 'monitors of one operator, beyond its 256 streams',
  settings: SETTINGS,
  prepare: (scene) => async () => {
    await inParallel(STREAM_LIMIT + MORE_STREAMS, 20, async () => {
      scene.tally.count(await openMonitor(scene, scene.viewer))
    })
    expectLimit(scene, scene.tally.countOf('stream'))
  },
}

const MOST = 32 * 2 ** 20
const EVENT_BYTES = 4_000_000
const READERS = 40

/** A reader that reads nothing is cut off after 30 s, and after 30 s more for data that was written before. */
const SLOW_MS = 60_000
const LATE_MS = 15_000

/**
 * With 64 MiB of unread bytes in total, a caller has 32. Streams beyond that are cut off at once, the others after a
 * minute without a read.
 */
export const limitUnread: Attack = {
  name: 'limit-unread',
  about: 'readers of one caller that leave 4 MB each unread, beyond its 32 MiB; all are cut off after a minute',
  settings: { LIMITS_PROCESS_UNREAD_BYTES: String(2 * MOST) },
  async prepare(scene) {
    const caller = scene.attacker()
    const body = 'x'.repeat(EVENT_BYTES)
    for (let n = 0; n < 3; n++) await caller.tool('events_store_publish', { channel: 'attack.stored', body })
    return async () => {
      let peak = 0
      const unread = async (): Promise<number> => {
        const bytes = await scene.metric('broker_limit_use', 'limit="process_unread_bytes"')
        peak = Math.max(peak, bytes)
        return bytes
      }
      const streams: HeldResponse[] = []
      for (let n = 0; n < READERS; n++) {
        const stream = await scene.tally.ofStream(
          caller.stream('/ce/subscribe/events-store?channel=attack.stored&events_store_type=2'),
        )
        if (stream !== undefined) streams.push(stream)
        await unread()
      }
      const end = performance.now() + scene.scaled(SLOW_MS + LATE_MS, 1_000)
      let left = 0
      while (performance.now() < end) {
        left = await unread()
        if (left === 0) break
        await new Promise((resolve) => setTimeout(resolve, 250))
      }
      scene.tally.count(`at most ${Math.round(peak / 2 ** 20)} MiB unread`)
      // The event that exceeded the limit is already written.
      const allowed = MOST + 2 * EVENT_BYTES
      scene.tally.expect(peak <= allowed, `${peak} bytes were unread, and ${allowed} are allowed`)
      scene.tally.expect(scene.scaled(left, 0) === 0, `${left} bytes are unread after ${(SLOW_MS + LATE_MS) / 1_000} s`)
      for (const stream of streams) stream.close()
    }
  },
}

const TOOLS = ['queue_send', 'events_publish', 'events_store_publish'] as const

export const limitChannels: Attack = {
  name: 'limit-channels',
  about: 'new channels of one caller, beyond its 1,000; the other caller creates one afterwards',
  // A network address may use half.
  settings: { MAX_CHANNELS: String(2 * OWN_LIMIT) },
  prepare: (scene) => async () => {
    const caller = scene.attacker()
    await inParallel(OWN_LIMIT + MORE, 32, async (index) => {
      const tool = TOOLS[index % TOOLS.length] ?? 'queue_send'
      await scene.tally.of(caller.tool(tool, { channel: `attack.${index}`, body: 'x' }))
    })
    const made = scene.tally.countOf('200') - scene.tally.countOf('200 ')
    scene.tally.expect(made <= OWN_LIMIT, `one caller made ${made} channels, and ${OWN_LIMIT} are allowed`)
    const other = await scene.tally.of(scene.attacker(1).tool('queue_send', { channel: 'attack.other', body: 'x' }))
    scene.tally.expect(other?.text.includes('"isError":false') === true, 'another caller could not create a channel')
  },
}

export const limitAgents: Attack = {
  name: 'limit-agents',
  about: 'agents of one caller, beyond its 1,000; another caller registers one afterwards',
  // A network address may own half.
  settings: { CONNECTORSA2_A_MAX_AGENTS: String(2 * OWN_LIMIT) },
  prepare: (scene) => async () => {
    const url = 'http://127.0.0.1:9/'
    await inParallel(OWN_LIMIT + MORE, 32, async (index) => {
      await scene.tally.of(register(scene.attacker(), `attack-${index}`, url))
    })
    const made = scene.tally.countOf('200')
    scene.tally.expect(made <= OWN_LIMIT, `one caller registered ${made} agents, and ${OWN_LIMIT} are allowed`)
    const other = await scene.tally.of(register(scene.attacker(1), 'attack-other', url))
    scene.tally.expect(other?.status === 200, 'another caller could not register an agent')
  },
}

export const limitWaiting: Attack = {
  name: 'limit-waiting',
  about: 'unanswered commands and queries of one caller, beyond its 1,024',
  // Reaches this limit before the limit of requests in flight.
  settings: { LIMITS_CALLER_REQUESTS_IN_FLIGHT: '4096' },
  servers: ['guarded'],
  prepare: (scene) => async () => {
    const caller = scene.attacker()
    const timeout_seconds = scene.scaled(10, 3)
    await Promise.all(
      Array.from({ length: REQUEST_LIMIT + 300 }, async (_, index) => {
        const tool = index % 2 === 0 ? 'command_send' : 'query_send'
        await scene.tally.of(caller.tool(tool, { channel: 'attack.nobody', body: 'x', timeout_seconds }))
      }),
    )
    const waited = scene.tally.countOf('200 TIMEOUT')
    scene.tally.expect(
      waited <= REQUEST_LIMIT,
      `${waited} commands and queries waited at a time, and ${REQUEST_LIMIT} are allowed`,
    )
  },
}

const CARDS = 6_000

/** The agents that one attacker registers: its limit. */
const BY_ONE = 1_000

/** Cards stay in memory while their agents are registered; no other data of a caller does. */
export const limitMemory: Attack = {
  name: 'limit-memory',
  about: '6,000 cards of 60 KB by six callers, half of them of empty arrays: more than the heap of the guarded server',
  servers: ['guarded'],
  prepare: (scene) => async () => {
    const cards = [largeCard(), { metadata: { values: Array.from({ length: 20_000 }, () => []) } }]
    await inParallel(scene.scaled(CARDS, 1_000), 16, async (index) => {
      if (scene.process.exited) return
      const caller = scene.attacker(Math.floor(index / BY_ONE))
      const card = cards[index % 2] ?? {}
      await scene.tally.of(register(caller, `attack-card-${index}`, 'http://127.0.0.1:9/', card))
    })
    scene.tally.expect(scene.tally.countOf('4') > 0, 'no card was refused')
  },
}

/**
 * Sends the same request repeatedly on many connections and counts the answers; resolves with the duration, in seconds.
 */
async function floodWith(scene: Scene, caller: Caller, body: string, connections: number): Promise<number> {
  const request = postBytes(`${scene.http}/mcp`, body, caller.identity.headers)
  const open = await Promise.all(
    Array.from({ length: connections }, () =>
      KeepAliveConnection.open(scene.http, { localAddress: caller.identity.address }),
    ),
  )
  const begin = performance.now()
  await during(scene.floodMs, connections, async (_index, worker) => {
    const connection = open[worker]
    if (connection === undefined) return
    const answer = connection.request(request)
    await scene.tally.of(answer.then(({ status, body }) => ({ status, text: body.toString() })))
  })
  for (const connection of open) connection.close()
  return (performance.now() - begin) / 1000
}

/** There is no rate limit: the other callers share the processor with one that sends at full speed. */
export const flood: Attack = {
  name: 'flood',
  about: 'one caller that sends queue messages over 64 connections at full speed',
  prepare: (scene) => async () => {
    await floodWith(scene, scene.attacker(), toolCall('queue_send', { channel: 'attack.flood', body: 'x' }), 64)
  },
}

/** The connections of a flood that are reset. */
const RESET_CONNECTIONS = 5

/** Connections that fill each read of the server with as much work as possible: it is parsed in one tick. */
function connectionFlood(
  name: string,
  about: string,
  bytes: (scene: Scene, caller: Caller) => readonly Buffer[],
): Attack {
  return {
    name,
    about: `50 connections that send ${about}, and connect again; some are reset`,
    prepare(scene) {
      const caller = scene.attacker()
      const floods = bytes(scene, caller)
      return async () => {
        const begin = performance.now()
        await during(scene.floodMs, 50, async (_index, worker) => {
          const socket = await caller.socket()
          if (worker < RESET_CONNECTIONS) {
            // Most of these wait to be served then. They send nothing, so that the server still reads, and sees the reset.
            await delay(50)
            socket?.resetAndDestroy()
            scene.tally.count('reset')
            return
          }
          socket?.resume().write(floods[worker % floods.length] ?? '')
          const left = Math.max(1, begin + scene.floodMs - performance.now())
          const closed = socket && new Promise((resolve) => socket.once('close', () => resolve('closed')))
          scene.tally.count(String(await Promise.race([closed ?? 'refused', delay(left, 'open')])))
          socket?.destroy()
        })
        scene.tally.expect(scene.tally.countOf('closed') > 0, 'no connection was closed')
      }
    },
  }
}

const FLOOD_BYTES = 262_144

function repeated(part: Uint8Array): Buffer {
  return Buffer.alloc(FLOOD_BYTES, part)
}

export const requestsAhead = connectionFlood(
  'requests-ahead',
  'thousands of requests without waiting for answers',
  (scene, caller) => [
    repeated(Buffer.from(`GET /health HTTP/1.1\r\nHost: ${new URL(scene.http).host}\r\n\r\n`)),
    repeated(postBytes(`${scene.http}/mcp`, '{"jsonrpc":"2.0","id":1,"method":"ping"}', caller.identity.headers)),
  ],
)

export const smallChunks = connectionFlood('small-chunks', 'bodies in chunks of one byte', (scene, caller) => {
  const chunked = { ...caller.identity.headers, 'Transfer-Encoding': 'chunked' }
  return ['/mcp', '/ce/queue/send', '/nothing'].map((path) => {
    const [head = ''] = String(postBytes(`${scene.http}${path}`, '', chunked)).split('Content-Length')
    return Buffer.concat([Buffer.from(`${head}\r\n`), repeated(Buffer.from('1\r\n \r\n'))])
  })
})

/** A flood of a few seconds makes a few entries for each caller, action and minute. */
const MOST_ENTRIES = 50

interface AuditPage {
  readonly data: { readonly items: readonly unknown[] }
}

export const denials: Attack = {
  name: 'denials',
  about: 'a flood of calls that the policy denies, and of callers without a token',
  servers: ['guarded'],
  prepare: (scene) => async () => {
    const { nobody, stranger } = scene
    await during(scene.floodMs, 32, async (index) => {
      if (index % 8 === 7) await scene.tally.of(stranger.tool('queue_send', { channel: 'honest', body: 'x' }))
      else if (index % 8 === 6) await scene.tally.of(nobody.ask('GET', '/ce/subscribe/events?channel=honest'))
      else await scene.tally.of(nobody.tool('queue_send', { channel: `honest.${index}`, body: 'x' }))
    })
    const { text } = await scene.operator.ask('GET', `${scene.api}/api/audit?outcome=denied&limit=1000`)
    const entries = (JSON.parse(text) as AuditPage).data.items.length
    scene.tally.count('audit entry', entries)
    scene.tally.expect(entries > 0, 'no denial was audited')
    scene.tally.expect(entries <= MOST_ENTRIES, `${entries} entries of denials were stored`)
  },
}

const OPEN_FILES = 1_024
const CONNECTIONS = 1_000

/** Connections of one address, silent or with half a head, up to the process's open-file limit and beyond it. */
export const connections: Attack = {
  name: 'connections',
  about: '1,000 connections of one address to a server with 1,024 open files',
  openFiles: OPEN_FILES,
  prepare: (scene) => async () => {
    let open = 0
    await inParallel(CONNECTIONS, 50, async (index) => {
      const socket = await scene.attacker().socket()
      if (socket === undefined) {
        scene.tally.count('refused')
        return
      }
      open++
      socket.once('close', () => {
        open--
        scene.tally.count('closed')
      })
      socket.resume()
      if (index % 2 === 0) socket.write('POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-')
    })
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    scene.tally.count('open', open)
    // A quarter of the open files is reserved; an address may use half of the rest.
    const most = (OPEN_FILES * 3) / 4 / 2
    scene.tally.expect(open <= most, `${open} connections of one address are open, and ${most} are allowed`)
  },
}
