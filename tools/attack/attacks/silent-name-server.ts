import process from 'node:process'

import { openNameServer } from '@signalbox/testkit/name-server'

import { quantile } from '../../bench/statistics.ts'
import { HostileAgent, register, registered } from '../agents.ts'
import type { Attack } from '../attack.ts'
import { failureOf, outcomeOf } from '../caller.ts'
import { inParallel } from '../tally.ts'

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
    const agent = scene.use(await HostileAgent.answering('{"jsonrpc":"2.0","id":1,"result":{}}'))
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
        try {
          const outcome = outcomeOf(await other.post('/a2a/attack-honest', MESSAGE))
          scene.tally.count(`honest ${outcome}`)
        } catch (error) {
          scene.tally.count(`honest ${failureOf(error)}`)
        }
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
