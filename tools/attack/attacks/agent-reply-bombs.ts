import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'

import { consume, HostileAgent, registered } from '../agents.ts'
import type { Attack } from '../attack.ts'
import type { Answer, Caller } from '../caller.ts'
import type { Scene } from '../scene.ts'
import { inParallel } from '../tally.ts'

const REPLY = Buffer.from(`{"jsonrpc":"2.0","id":1,"result":"${'x'.repeat(10_000_000)}"}`)
const GZIP = gzipSync(REPLY)
const JSON_TYPE = { 'content-type': 'application/json' }
const CONNECTIONS = 30

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
    const agent = scene.use(
      await HostileAgent.start((request, response) => void consume(request).then(() => reply(response))),
    )
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
        await inParallel(calls, CONNECTIONS, async (index) => {
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
