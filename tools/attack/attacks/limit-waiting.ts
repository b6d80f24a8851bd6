import type { Attack } from '../attack.ts'
import { failureOf, outcomeOf } from '../caller.ts'

const LIMIT = 1_024

export const limitWaiting: Attack = {
  name: 'limit-waiting',
  about: 'unanswered commands and queries of one caller, beyond its 1,024',
  // Reaches this limit before the limit of requests in flight.
  settings: { LIMITS_CALLER_REQUESTS_IN_FLIGHT: '4096' },
  servers: ['guarded'],
  prepare: (scene) =>
    Promise.resolve(async () => {
      const caller = scene.attacker()
      const timeout_seconds = scene.scaled(10, 3)
      await Promise.all(
        Array.from({ length: LIMIT + 300 }, async (_, index) => {
          const tool = index % 2 === 0 ? 'command_send' : 'query_send'
          try {
            const answer = await caller.tool(tool, { channel: 'attack.nobody', body: 'x', timeout_seconds })
            scene.tally.count(outcomeOf(answer))
          } catch (error) {
            scene.tally.count(failureOf(error))
          }
        }),
      )
      const waited = scene.tally.countOf('200 TIMEOUT')
      scene.tally.expect(waited <= LIMIT, `${waited} commands and queries waited at a time, and ${LIMIT} are allowed`)
    }),
}
