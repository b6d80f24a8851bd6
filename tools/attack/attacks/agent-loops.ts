import type { IncomingHttpHeaders } from 'node:http'

import { consume, HostileAgent, register, registered } from '../agents.ts'
import type { Attack } from '../attack.ts'
import { failureOf, outcomeOf } from '../caller.ts'
import { inParallel } from '../tally.ts'

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
      HostileAgent.start((request, response) => {
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
          try {
            scene.tally.count(`${agentId} ${outcomeOf(await caller.post(`/a2a/${agentId}`, large))}`)
          } catch (error) {
            scene.tally.count(`${agentId} ${failureOf(error)}`)
          }
        })
      }
      scene.tally.expect(scene.tally.countOf('attack-loop 200 -') > 0, 'the loop with a hop count was not stopped')
    }
  },
}
