import type { Attack } from '../attack.ts'
import { failureOf, outcomeOf } from '../caller.ts'

const LIMIT = 1_024

/** Concurrent requests up to the limits and beyond; then all connections are broken. */
export const limitRequests: Attack = {
  name: 'limit-requests',
  about: 'long polls of one caller, beyond its 1,024 requests in flight',
  // A network address may use half.
  settings: { LIMITS_PROCESS_REQUESTS_IN_FLIGHT: String(2 * LIMIT) },
  prepare: (scene) =>
    Promise.resolve(async () => {
      const caller = scene.attacker()
      let waiting = 0
      let peak = 0
      const calls = Array.from({ length: LIMIT + 300 }, async () => {
        waiting++
        try {
          const answer = await caller.tool('queue_receive', {
            channel: 'attack.empty',
            max_messages: 1,
            wait_timeout_seconds: scene.scaled(10, 3),
          })
          scene.tally.count(outcomeOf(answer))
        } catch (error) {
          scene.tally.count(failureOf(error))
        } finally {
          waiting--
        }
      })
      void scene.until(async () => {
        peak = Math.max(peak, await scene.metric('broker_limit_use', 'limit="process_requests"'))
        return waiting === 0
      })
      await Promise.all(calls)
      const accepted = scene.tally.countOf('200')
      scene.tally.expect(
        accepted <= LIMIT && accepted > 0,
        `${accepted} requests were accepted, and ${LIMIT} are allowed at a time`,
      )
      scene.tally.expect(peak <= LIMIT + 4, `${peak} requests were in flight`)
    }),
}
