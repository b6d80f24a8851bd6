import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import process from 'node:process'
import { gzipSync } from 'node:zlib'

import { quantile } from '@signalbox/testkit/figures'
import { openNameServer } from '@signalbox/testkit/name-server'

import type { Answer, Caller } from '../attack/callers.ts'
import { consume, register, registered, startAgent, startAnsweringAgent } from '../attack/callers.ts'
import type { Attack, Scene } from '../attack/scene.ts'
import { during, inParallel } from '../attack/scene.ts'

const SMALL = { jsonrpc: '2.0', id: 1, method: 'message/send', params: { configuration: { timeout: 10 } } }

/** Addresses of the server itself, in the forms that hide it. */
function ownUrls(base: string): readonly string[] {
  const { port } = new URL(base)
  const hosts = ['127.0.0.1', 'localhost', '127.1', '2130706433', '0x7f000001', '[::ffff:127.0.0.1]', '0.0.0.0']
  return hosts.map((host) => `http://${host}:${port}/a2a/attack-own`)
}

/**
 * An agent that calls itself through the gateway. The hop count stops the loop after a few calls. An agent that omits
 * the count is bounded by its own concurrency limit and by its caller's limits.
 */
export const agentLoops: Attack = {
  name: 'agent-loops',
  about: 'agents that call themselves through /a2a, with and without the hop count, and the server as an agent',
  async prepare(scene) {
    const caller = scene.attacker()
    const forward = (agentId: string, headersOf: (headers: IncomingHttpHeaders) => Record<string, string>) =>
      startAgent((request, response) => {
        void (async () => {
          const body = await consume(request)
          try {
            const answer = await caller.post(`/a2a/${agentId}`, body, headersOf(request.headers))
            response.writeHead(200, { 'content-type': 'application/json' }).end(answer.text)
          } catch {
            response.destroy()
          }
        })()
      })
    const honestLoop = scene.use(
      await forward('attack-loop', ({ 'x-broker-hops': hops }) => ({ 'x-broker-hops': String(hops ?? '') })),
    )
    const bareLoop = scene.use(await forward('attack-bare', () => ({})))
    await registered(caller, 'attack-loop', honestLoop.url)
    await registered(caller, 'attack-bare', bareLoop.url)
    return async () => {
      for (const base of [scene.http, scene.api]) {
        for (const url of ownUrls(base)) {
          const answer = await scene.tally.of(register(caller, 'attack-own', url))
          scene.tally.expect((answer?.status ?? 0) >= 400, `${url} was registered as an agent`)
        }
      }
      const size = scene.scaled(1_000_000, 10_000)
      const large = { ...SMALL, params: { ...SMALL.params, fill: 'x'.repeat(size) } }
      for (const agentId of ['attack-loop', 'attack-bare']) {
        await inParallel(scene.scaled(40, 5), 20, async () => {
          await scene.tally.of(caller.post(`/a2a/${agentId}`, large), `${agentId} `)
        })
      }
      scene.tally.expect(scene.tally.countOf('attack-loop 200 -') > 0, 'the loop with a hop count was not stopped')
    }
  },
}

const SMALL_CHUNKS = Buffer.alloc(262_144, '1\r\n \r\n')

/** Agents that answer in chunks of one byte. */
export const agentChunks: Attack = {
  name: 'agent-chunks',
  about: '30 calls of agents whose answers, JSON and event streams, come in chunks of one byte and never end',
  async prepare(scene) {
    const caller = scene.attacker()
    const agent = scene.use(
      await startAgent((request, response) => {
        request.resume()
        const type = request.url === '/rpc' ? 'application/json' : 'text/event-stream'
        const { socket } = response
        const send = (): void => {
          for (let isTaken = socket?.writable; isTaken === true;) isTaken = socket?.write(SMALL_CHUNKS)
        }
        socket?.write(`HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\n\r\n`)
        socket?.on('drain', send)
        send()
      }),
    )
    await registered(caller, 'attack-chunks', agent.url)
    await registered(caller, 'attack-chunked-events', agent.url.replace('/rpc', '/events'))
    const stream = { ...SMALL, method: 'message/stream' }
    return () =>
      during(scene.scaled(10_000, 3_000), BOMB_CONNECTIONS, async (index) => {
        if (index % 2 === 0) await scene.tally.of(caller.post('/a2a/attack-chunks', SMALL))
        else await scene.tally.of(caller.post('/a2a/attack-chunked-events', stream, { accept: 'text/event-stream' }))
      })
  },
}

const REPLY = Buffer.from(`{"jsonrpc":"2.0","id":1,"result":"${'x'.repeat(10_000_000)}"}`)
const GZIP = gzipSync(REPLY)
const JSON_TYPE = { 'content-type': 'application/json' }
const BOMB_CONNECTIONS = 30

/** The part of an unfinished reply that is sent. */
const UNFINISHED = REPLY.subarray(0, -1)

type Reply = (response: ServerResponse) => unknown

const REPLIES: Readonly<Record<string, Reply>> = {
  plain: (response) => response.writeHead(200, JSON_TYPE).end(REPLY),
  gzip: (response) => response.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }).end(GZIP),
  unfinished: (response) => response.writeHead(200, JSON_TYPE).write(UNFINISHED),
  event: (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: ')
    response.write(UNFINISHED)
  },
}

/** The ways in which a caller reaches an agent. */
const WAYS: readonly ((caller: Caller, agentId: string, id: number) => Promise<Answer>)[] = [
  (caller, agentId, id) => caller.post(`/a2a/${agentId}`, { jsonrpc: '2.0', id, method: 'message/send', params: {} }),
  (caller, agent_id) => caller.tool('agent_send', { agent_id, message: 'x' }),
  (caller, agent_id) => caller.tool('agent_query', { agent_id, method: 'tasks/get' }),
  (caller, agentId, id) => caller.post(`/a2a/${agentId}`, { jsonrpc: '2.0', id, method: 'message/stream', params: {} }),
]

async function prepared(scene: Scene, caller: Caller): Promise<void> {
  for (const [name, reply] of Object.entries(REPLIES)) {
    const agent = scene.use(await startAgent((request, response) => void consume(request).then(() => reply(response))))
    await registered(caller, `attack-bomb-${name}`, agent.url)
  }
}

export const agentReplyBombs: Attack = {
  name: 'agent-reply-bombs',
  about: '150 calls on 30 connections to agents that reply with 10 MB: plain, gzip, and without an end',
  async prepare(scene) {
    const caller = scene.attacker()
    await prepared(scene, caller)
    const most = await scene.processLimit('process_body_bytes')
    return async () => {
      const calls = scene.scaled(150, 60)
      for (const name of ['plain', 'gzip']) {
        await inParallel(calls, BOMB_CONNECTIONS, async (index) => {
          const way = WAYS[index % WAYS.length]
          if (way !== undefined) await scene.tally.of(way(caller, `attack-bomb-${name}`, index))
        })
      }
      const open = Array.from({ length: calls }, (_, index) => {
        const way = WAYS[index % WAYS.length]
        return way?.(caller, `attack-bomb-${index % 2 === 0 ? 'unfinished' : 'event'}`, index).catch(() => {})
      })
      await new Promise((resolve) => setTimeout(resolve, 3_000))
      const held = await scene.metric('broker_limit_use', 'limit="process_body_bytes"')
      scene.tally.expect(held > 1_000_000, `${held} bytes are counted while replies of 10 MB are held`)
      scene.tally.expect(held <= most, `${held} bytes are held, and ${most} are allowed`)
      const refused = await scene.metric('broker_limit_refusals_total', 'limit="caller_body_bytes"')
      scene.tally.expect(refused > 0, 'no reply was refused')
      void open
    }
  },
}

const LEVELS = 5_000
const DEEP = `${'['.repeat(LEVELS)}${']'.repeat(LEVELS)}`
const DEEP_REPLIES = [
  `{"jsonrpc":"2.0","id":1,"result":${DEEP}}`,
  `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"deep","data":${DEEP}}}`,
  `${'{"a":'.repeat(LEVELS)}1${'}'.repeat(LEVELS)}`,
]

/** Replies of agents, nested 5,000 levels deep, on every route to an agent. */
export const deepAgentReplies: Attack = {
  name: 'deep-agent-replies',
  about: 'replies of agents nested 5,000 levels deep, through agent_send, agent_query and /a2a',
  async prepare(scene) {
    const caller = scene.attacker()
    for (const [index, reply] of DEEP_REPLIES.entries()) {
      const agent = scene.use(await startAnsweringAgent(reply))
      await registered(caller, `attack-deep-${index}`, agent.url)
    }
    return async () => {
      await inParallel(scene.scaled(200, 10), 8, async (index) => {
        for (let agent = 0; agent < DEEP_REPLIES.length; agent++) {
          const agent_id = `attack-deep-${agent}`
          await scene.tally.of(caller.tool('agent_send', { agent_id, message: 'x' }))
          await scene.tally.of(caller.tool('agent_query', { agent_id, method: 'tasks/get' }))
          const call = { jsonrpc: '2.0', id: index, method: 'message/send', params: {} }
          await scene.tally.of(caller.post(`/a2a/${agent_id}`, call))
        }
      })
      const invalid = scene.tally.countOf('200 INVALID_RESPONSE') + scene.tally.countOf('200 -32004')
      const all = scene.tally.countOf('')
      scene.tally.expect(invalid === all, `${all - invalid} of ${all} replies were not refused as invalid`)
    }
  },
}

/** An address of loopback for each process, because the settings name it before the name server is open. */
const HOST = `127.53.${(process.pid >> 8) & 255}.${process.pid & 255}`
const PORT = 5_300

const HONEST = 'agent.honest.test'

const MESSAGE = { jsonrpc: '2.0', id: 1, method: 'message/send', params: { configuration: { timeout: 15 } } }

/** The median and the longest call to the honest agent, in milliseconds. Hanging names once made each 8 to 10 s. */
const MAX_MEDIAN_MS = 500
const MAX_CALL_MS = 5_000

/** Agents whose name server never answers, and one whose addresses are valid for a second. */
export const silentNameServer: Attack = {
  name: 'silent-name-server',
  about: 'calls and registrations of agents and webhooks whose name server is silent, and calls to another agent',
  settings: { DNS_SERVERS: `${HOST}:${PORT}` },
  async prepare(scene) {
    const [caller, other] = [scene.attacker(0), scene.attacker(1)]
    const names = await openNameServer((name) => (name === HONEST ? { addresses: ['127.0.0.1'], ttl: 1 } : 'silent'), {
      host: HOST,
      port: PORT,
    })
    scene.use({ [Symbol.dispose]: () => void names[Symbol.asyncDispose]() })
    const agent = scene.use(await startAnsweringAgent('{"jsonrpc":"2.0","id":1,"result":{}}'))
    await registered(other, 'attack-honest', `http://${HONEST}:${new URL(agent.url).port}/rpc`)
    const hanging = scene.scaled(100, 20)
    await inParallel(hanging, hanging, (index) =>
      registered(caller, `attack-hang-${index}`, `http://hang${index}.test/rpc`),
    )
    return async () => {
      const over = new AbortController()
      const calls = inParallel(hanging, hanging, async (index) => {
        for (let round = 0; !over.signal.aborted && round < 3; round++) {
          await scene.tally.of(caller.post(`/a2a/attack-hang-${index}`, MESSAGE))
          await scene.tally.of(register(caller, `attack-hang-${index}`, `http://hang${index}-${round}.test/rpc`))
        }
      })
      const times: number[] = []
      const end = performance.now() + scene.scaled(10_000, 4_000)
      while (performance.now() < end) {
        const startedAt = performance.now()
        await scene.tally.of(other.post('/a2a/attack-honest', MESSAGE), 'honest ')
        times.push(performance.now() - startedAt)
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      over.abort()
      await calls
      const failed = scene.tally.countOf('honest') - scene.tally.countOf('honest 200')
      scene.tally.expect(failed === 0, `${failed} calls to the other agent failed`)
      const [median, longest] = [quantile(times, 0.5), quantile(times, 1)]
      scene.tally.count(`median ${Math.round(median)} ms, longest ${Math.round(longest)} ms`)
      scene.tally.expect(median < MAX_MEDIAN_MS, `half of the calls to the other agent took ${Math.round(median)} ms`)
      scene.tally.expect(longest < MAX_CALL_MS, `a call to the other agent took ${Math.round(longest)} ms`)
    }
  },
}

const AGENTS = 2_000

/** The agents of one attacker: fewer than the limit of one caller. */
const MANY_BY_ONE = 500

/** The most resident memory of the server, in bytes. */
const MOST_RSS = 512 * 2 ** 20

export const manyAgents: Attack = {
  name: 'many-agents',
  about: '2,000 agents with cards of 60 KB, of four callers',
  prepare: (scene) => async () => {
    const card = largeCard()
    await inParallel(scene.scaled(AGENTS, 200), 16, async (index) => {
      const caller = scene.attacker(Math.floor(index / MANY_BY_ONE))
      const url = `http://127.0.0.1:${10_000 + index}/`
      await scene.tally.of(register(caller, `attack-many-${index}`, url, card))
    })
    const rss = await scene.metric('process_resident_memory_bytes')
    scene.tally.expect(rss <= MOST_RSS, `the server has ${rss} bytes in memory, and ${MOST_RSS} are expected at most`)
  },
}

/** A card may be 64 KiB. */
const CARD_BYTES = 60_000

/** The agents that one attacker registers: fewer than the limit of one caller. */
const BY_ONE = 900

/** The largest list of agents in bytes, including JSON-RPC and the tool's text, which escape quotes twice. */
const MOST_LIST_BYTES = 4 * 2 ** 20 * 2.5

export function largeCard(): object {
  const skills = Array.from({ length: 20 }, (_, index) => ({
    id: `s${index}`,
    name: 's'.repeat(CARD_BYTES / 40),
    tags: ['attack'],
  }))
  return { description: 'd'.repeat(2_000), skills, metadata: { fill: 'm'.repeat(CARD_BYTES / 2 - 6_000) } }
}

async function registerMany(scene: Scene, count: number): Promise<void> {
  const card = largeCard()
  await inParallel(count, 16, async (index) => {
    const caller = scene.attacker(Math.floor(index / BY_ONE))
    const answer = await register(caller, `attack-card-${index}`, 'http://127.0.0.1:9/', card)
    // Cards may take a quarter of the heap limit, those of one caller half of that.
    if (answer.status !== 200 && !answer.text.includes('AGENT_LIMIT')) {
      throw new Error(`card ${index}: ${answer.status} ${answer.text.slice(0, 300)}`)
    }
  })
}

export const largeCards: Attack = {
  name: 'large-cards',
  about: '3,000 cards of 60 KB, and then agent_list and GET /agents, eight at a time',
  async prepare(scene) {
    await registerMany(scene, scene.scaled(3_000, 150))
    return async () => {
      const caller = scene.attacker()
      let largest = 0
      await during(scene.floodMs, 8, async (index) => {
        const path = index % 4 === 2 ? '/agents?skill_tags=attack' : '/agents'
        const asked = index % 2 === 0 ? caller.tool('agent_list', {}) : caller.ask('GET', path)
        const answer = await scene.tally.of(asked)
        largest = Math.max(largest, answer?.text.length ?? 0)
      })
      scene.tally.expect(largest <= MOST_LIST_BYTES, `a list of agents had ${largest} bytes`)
    }
  },
}
